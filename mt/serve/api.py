"""The routes: this program's own under /v1, those of LibreTranslate beside them, and what keeps a server running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

import mt
from mt.errors import MTError, TooLargeError
from mt.serve import libre, own_docs
from mt.serve.answering import Answer, Ask, Model
from mt.serve.asked import AlternativesAsked, FileAsked, TranslateAsked, asked, body_of, checked, fields, refuse_too_much
from mt.serve.gauges import Gauges
from mt.serve.guard import FILE_ROUTE, App, Guard, Invited, Keys, State
from mt.serve.language_names import named
from mt.serve.limits import MOST_SAID, Limits, RefusedError
from mt.serve.queue import Line, Queue
from mt.serve.routes import body_schema, note_of, query_schema, unless_gone
from mt.serve.texts import Service, word_after
from mt.serve.uploads import FORMATS, safe_name, translated_file

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
PAGE_FILES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}
"""What belongs to the page, by suffix; all of it is called playground.*."""


def application(
    model: Model,
    limits: Limits,
    *,
    keys: Collection[str] = (),
    hosts: Collection[str] | None = (),
    origins: Collection[str] = (),
    state: State | None = None,
) -> App:
    """The ASGI application; it begins and ends the thread that has the model as its lifespan begins and ends.

    `keys`: one of these has to be shown; `hosts`: names it may be called by besides those of this machine, None: any; `origins`: web
    sites whose pages may ask.
    """
    state = state or State()
    gauges = Gauges(lambda: len(queue))
    queue: Queue[Ask, Answer] = Queue(model.search, limits, told=gauges.batch)
    state.abandon = queue.abandon
    service = Service(model, queue, limits)
    guard_keys = Keys(keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        queue.start()
        try:
            yield
        except asyncio.CancelledError:  # the server ends at once, and has given up what is begun
            return
        await asyncio.to_thread(queue.end)

    app = FastAPI(
        title="mt",
        version=mt.__version__,
        summary="Translations over HTTP.",
        lifespan=lifespan,
        docs_url=None,
        redirect_slashes=False,
        redoc_url=None,
        exception_handlers={RefusedError: _refused, MTError: _unable, HTTPException: _other, Exception: _fault},
    )
    _add_own(app, service, limits, guard_keys, state)
    _add_page(app)
    libre.add(app, service, limits, guard_keys)
    own_docs.add(app)

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        guard_keys.check(request)
        return Response(gauges.text(), media_type=gauges.content_type)

    guarded: App = Guard(app, limits=limits, state=state, gauges=gauges, hosts=hosts, origins=origins)
    if origins:
        guarded = Invited(guarded, origins)
    return guarded


def _add_own(app: FastAPI, service: Service, limits: Limits, keys: Keys, state: State) -> None:
    model = service.model

    @app.head("/health", include_in_schema=False)
    @app.get("/health", summary="Whether it is up, and how many requests are translated or wait.")
    async def health() -> Response:
        content = {"status": "draining" if state.draining else "ok", "model": model.name, "queue": len(service.queue)}
        return JSONResponse(content, status_code=503 if state.draining else 200)

    @app.get("/v1/info", summary="What the model translates, and what may be asked.")
    async def info() -> Response:
        source = model.source
        return JSONResponse(
            {
                "model": model.name,
                "source": source._asdict() if source else None,
                "targets": [{"code": code, "name": named(code)} for code in model.targets],
                "limits": {"characters": limits.characters, "file_bytes": limits.file_bytes, "beam": limits.beam},
                "version": mt.__version__,
                "needs_key": bool(keys),
                "formats": list(FORMATS),
            }
        )

    @app.post("/v1/translate", summary="Translate texts.", openapi_extra=body_schema(TranslateAsked))
    async def translate(request: Request) -> Response:
        keys.check(request)
        wanted = await asked(request, TranslateAsked)
        texts = [wanted.text] if isinstance(wanted.text, str) else wanted.text
        refuse_too_much(texts, limits)
        target = model.target(wanted.target)
        model.refuse_source(wanted.source)
        ask = model.ask(
            target=target,
            beam=wanted.beam,
            n_best=wanted.n_best,
            length_penalty=wanted.length_penalty,
            glossary=wanted.glossary or (),
            details=wanted.details,
            limits=limits,
        )
        how: dict[str, Any] = {"form": wanted.format, "prefix": wanted.prefix or "", "source": wanted.source}
        found = await unless_gone(request, service.texts(texts, ask, note_of(request), target=target, **how))
        return JSONResponse({"translations": [one.as_json(n_best=wanted.n_best, details=wanted.details) for one in found]})

    @app.post("/v1/alternatives", summary="What else could come next in a translation.", openapi_extra=body_schema(AlternativesAsked))
    async def alternatives(request: Request) -> Response:
        keys.check(request)
        wanted = await asked(request, AlternativesAsked)
        refuse_too_much([wanted.text + wanted.prefix], limits)
        model.refuse_prefix(wanted.text, wanted.prefix)
        target = model.target(wanted.target)
        ask = model.ask(target=target, alternatives=wanted.n, glossary=wanted.glossary or (), limits=limits)
        found = await unless_gone(request, service.lines([Line(wanted.text, wanted.prefix)], ask, note_of(request)))
        translation = found[0].translation
        return JSONResponse(
            {
                "alternatives": [
                    {"text": text, "next": word_after(text, wanted.prefix, target), "probability": following.probability}
                    for (text, _), following in zip(translation.hypotheses, translation.following, strict=True)
                ]
            }
        )

    running = asyncio.Semaphore(limits.files)

    @app.post(
        FILE_ROUTE,
        summary="Translate a file, sent as it is.",
        openapi_extra={
            "requestBody": {"required": True, "content": {"application/octet-stream": {}}},
            "parameters": query_schema(FileAsked),
        },
    )
    async def file(request: Request) -> Response:
        keys.check(request)
        wanted = checked(FileAsked, fields(request.scope["query_string"]))
        safe = safe_name(wanted.name)
        code = model.target(wanted.target)
        ask = model.ask(target=code, beam=wanted.beam, length_penalty=wanted.length_penalty, glossary=wanted.glossary or (), limits=limits)
        data = await body_of(request)
        if running.locked():
            raise RefusedError(503, f"{limits.files} files are being translated: try again later", retry_after=30)
        async with running:
            work = translated_file(service, data, safe, ask, note_of(request), target=code)
            found = await unless_gone(request, work)
        headers = {"content-disposition": f'attachment; filename="{safe}"'}
        return Response(found, media_type="application/octet-stream", headers=headers)


def _add_page(app: FastAPI) -> None:
    folder = files("mt.serve")
    names = {one.name for one in folder.iterdir() if one.name.startswith("playground.")}

    def sent(name: str) -> Response:
        suffix = name[name.rindex(".") :]
        headers = {"content-security-policy": PAGE_POLICY, "cache-control": "no-cache"}
        return Response((folder / name).read_bytes(), media_type=PAGE_FILES[suffix], headers=headers)

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return sent("playground.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in names or name[name.rindex(".") :] not in PAGE_FILES:
            raise RefusedError(404, "there is no such file")
        return sent(name)


# ── what went wrong ─────────────────────────────────────────────────────────────────────────────────────────────────


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    note_of(request).error = error.noted
    return JSONResponse(error.content, status_code=error.status, headers=error.headers)


async def _unable(request: Request, error: Exception) -> Response:
    """What cannot be met is the client's; too little memory is ours."""
    note_of(request).error = type(error).__name__
    status = 503 if isinstance(error, TooLargeError) else 422
    line = str(error).splitlines()[0]
    return JSONResponse({"error": line if len(line) <= MOST_SAID else f"{line[:MOST_SAID]}…"}, status_code=status)


async def _other(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = Headers(error.headers).get("allow", "another method")
    cure = {
        404: "there is no such page; GET /docs lists what there is",
        405: f"{request.method} is not for this page, {allowed} is; GET /docs lists what there is",
    }
    return JSONResponse({"error": cure.get(error.status_code, str(error.detail))}, status_code=error.status_code, headers=error.headers)


async def _fault(request: Request, _: Exception) -> Response:
    note_of(request).error = "fault"
    return JSONResponse({"error": "a fault of the server; its log says more"}, status_code=500)
