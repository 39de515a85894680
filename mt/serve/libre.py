"""Routes that clients of LibreTranslate know."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from mt.clean import identify
from mt.extras import install
from mt.serve.asked import DetectAsked, LibreAsked, asked, refuse_too_much
from mt.serve.guard import Keys
from mt.serve.language_names import named
from mt.serve.limits import Limits, RefusedError
from mt.serve.routes import body_schema, note_of, unless_gone
from mt.serve.texts import Service


def add(app: FastAPI, service: Service, limits: Limits, keys: Keys) -> None:
    """Give an application these routes."""
    model = service.model

    @app.post("/translate", summary="As LibreTranslate's.", openapi_extra=body_schema(LibreAsked, form=True))
    async def translate(request: Request) -> Response:
        wanted = await asked(request, LibreAsked, form=True)
        keys.check(request, wanted.api_key)
        texts = [wanted.q] if isinstance(wanted.q, str) else wanted.q
        refuse_too_much(texts, limits)
        if wanted.alternatives >= limits.beam:
            raise RefusedError(422, f"alternatives: this server gives {limits.beam - 1} at most")
        target = model.target(wanted.target)
        model.refuse_source(wanted.source)
        ask = model.ask(target=target, n_best=wanted.alternatives + 1, limits=limits)
        work = service.texts(texts, ask, note_of(request), target=target, form=wanted.format, source=wanted.source)
        found = await unless_gone(request, work)
        one = isinstance(wanted.q, str)
        content: dict[str, Any] = {"translatedText": found[0].text if one else [text.text for text in found]}
        if wanted.alternatives:
            more = [[text for text in own.ranked(wanted.alternatives + 1) if text != own.text] for own in found]
            content["alternatives"] = more[0] if one else more
        if wanted.source == "auto" and model.source:
            detected = {"confidence": 100.0, "language": model.source.code}  # the only one there is
            content["detectedLanguage"] = detected if one else [detected] * len(texts)
        return JSONResponse(content)

    @app.get("/languages", summary="As LibreTranslate's.")
    async def languages() -> Response:
        known = dict.fromkeys((*model.sources, *model.targets))
        to = {code: [other for other in model.targets if other != code] if code in model.sources else [] for code in known}
        return JSONResponse([{"code": code, "name": named(code), "targets": to[code]} for code in known])

    @app.get("/frontend/settings", summary="As LibreTranslate's.")
    async def settings() -> Response:
        source, target = (codes[0] if codes else "" for codes in (model.sources, model.targets))
        return JSONResponse(
            {
                "apiKeys": bool(keys),
                "charLimit": limits.characters,
                "frontendTimeout": 500,
                "keyRequired": bool(keys),
                "language": {
                    "source": {"code": source, "name": named(source) if source else ""},
                    "target": {"code": target, "name": named(target) if target else ""},
                },
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    @app.post("/detect", summary="As LibreTranslate's.", openapi_extra=body_schema(DetectAsked, form=True))
    async def detect(request: Request) -> Response:
        wanted = await asked(request, DetectAsked, form=True)
        keys.check(request, wanted.api_key)
        refuse_too_much([wanted.q], limits)
        if not identify.installed():
            raise RefusedError(501, f"languages are told apart by an extra: {install('languages')}")
        code, confidence = await asyncio.to_thread(_detected, wanted.q)
        return JSONResponse([{"confidence": round(100 * confidence, 1), "language": code}])


def _detected(text: str) -> tuple[str, float]:
    """The likeliest language, and how probable it is: not at all where there are no letters. Raises RefusedError for nothing."""
    if not text.strip():
        raise RefusedError(422, "q: is blank; send a text whose language is to be told")
    code, confidence = identify.likeliest(text)
    return code, confidence if any(map(str.isalpha, text)) else 0.0
