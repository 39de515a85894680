"""What stands before every route: who may ask, how much and how slowly a body may come, and what is noted of each request."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mt.serve.access_log import Note, log
from mt.serve.gauges import Gauges
from mt.serve.limits import Limits, RefusedError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LINGER = 2.0
"""Seconds for which the rest of a body that is too large is read and dropped: who is still sending would not see the answer."""
FILE_ROUTE = "/v1/file"
"""Whose bodies may be as large as a file."""
NOTED = "mt.note"
"""Where a request's scope holds its note."""

ABSOLUTE = re.compile(rb"(?i)https?://([^/]*)(.*)", re.DOTALL)
"""The target of a request that names the server, too, as those that are meant for a proxy do."""
CORS_METHODS, CORS_HEADERS = ("GET", "POST"), ("authorization", "content-type", "x-api-key")
"""What pages of sites that may ask may ask with."""

ALWAYS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "x-frame-options": "DENY"}
"""Headers of every answer."""
USUALLY = {"cache-control": "no-store", "content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
"""Headers of an answer that does not have its own."""


class State:
    """What guard, routes and server share."""

    def __init__(self) -> None:
        self.draining = False
        """The server was asked to end: nothing new is begun."""
        self.active = 0
        """Requests that are not answered yet."""
        self.of_client: Counter[str] = Counter()
        """The same for each address."""
        self.abandon: Callable[[float], bool] = lambda _seconds: True
        """Gives up what is begun; whether that ended within so many seconds."""

    def enter(self, client: str) -> None:
        """A request came."""
        self.active += 1
        self.of_client[client] += 1

    def leave(self, client: str) -> None:
        """A request was answered."""
        self.active -= 1
        self.of_client[client] -= 1
        self.of_client += Counter()  # forgets those without any


class Keys:
    """Those that clients may show; none: everybody may ask."""

    def __init__(self, keys: Collection[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, request: Request, given: str | None = None) -> None:
        """Raise RefusedError unless a request shows one of them: in its head, or as it was `given` in its body."""
        if not self._digests:
            return
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        shown = given or request.headers.get("x-api-key") or (bearer.strip() if scheme.lower() == "bearer" else "")
        if not shown:
            raise RefusedError(401, "this server needs a key: send it as Authorization: Bearer KEY", www="Bearer")
        digest = _digest(shown)
        if not any([hmac.compare_digest(digest, known) for known in self._digests]):  # a list: all are compared
            raise RefusedError(401, "the key is not one of this server's", www="Bearer")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


def is_loopback(host: str) -> bool:
    """Whether a host name or address stands for this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: App,
        *,
        limits: Limits,
        state: State,
        gauges: Gauges,
        hosts: Collection[str] | None,
        origins: Collection[str] = (),
    ) -> None:
        """`hosts`: names it may be called by, besides those of this machine; None: any. `origins`: other sites that may ask."""
        self._app, self._limits, self.state, self._gauges = app, limits, state, gauges
        self._hosts = None if hosts is None else {host.lower() for host in hosts}
        self._origins = set(origins)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        scope.update(in_origin_form(scope))
        client = scope.get("client")
        note = Note(uuid.uuid4().hex[:12], client[0] if client else "-", scope["method"])
        scope[NOTED] = note
        self.state.enter(note.client)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                note.status = message["status"]
                headers = [(name.lower(), value) for name, value in message.get("headers", [])]
                known = {name for name, _ in headers}
                more = ALWAYS | USUALLY | {"x-request-id": note.id} | ({"connection": "close"} if self.state.draining else {})
                headers += [(name.encode(), value.encode()) for name, value in more.items() if name.encode() not in known]
                message = {**message, "headers": headers}
            await send(message)

        try:
            body = Body(receive, scope, self._limits, file=scope["path"] == FILE_ROUTE)
            try:
                self._refuse_strangers(scope)
                if self.state.draining and scope["method"] == "POST":
                    retry = int(self._limits.drain_seconds) or 1
                    raise RefusedError(503, "the server is ending: try again later", retry_after=retry, close=True)
                most = self._limits.per_client
                if most and self.state.of_client[note.client] > most:
                    raise RefusedError(429, f"{most} requests of this address are being answered: wait for one", retry_after=1)
                body.refuse_declared()
            except RefusedError as error:
                note.error = error.noted
                await body.drop()
                await answer(error, sending)
            else:
                await self._app(scope, body, sending)
        except BaseException:
            note.status = note.status or 500
            raise
        finally:
            self.state.leave(note.client)
            note.route = getattr(scope.get("route"), "path", "-")
            note.seconds = time.monotonic() - began
            self._gauges.answered(note.route, note.status, note.seconds, note.characters)
            log.info("request", extra={"note": note})

    def _refuse_strangers(self, scope: MutableMapping[str, Any]) -> None:
        """Raise RefusedError for what a web page elsewhere makes a browser ask: by another name for this machine, or from its own."""
        headers = dict(scope["headers"])  # of what is there twice the last
        host = headers.get(b"host", b"").decode("latin-1")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if self._hosts is not None and not name:
            raise RefusedError(403, "the request names no host: send one, such as Host: localhost")
        if self._hosts is not None and not (is_loopback(name) or name in self._hosts):
            raise RefusedError(403, f"host {name[:60]!r} is not known here: start the server with --allowed-host {name[:60]}")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and scope["method"] == "POST" and origin not in self._origins and netloc_of(origin) != host.lower():
            raise RefusedError(403, stranger(origin))


def in_origin_form(scope: MutableMapping[str, Any]) -> dict[str, Any]:
    """Path and headers of a request whose target names the server (`POST http://host/path`), which is its host then, whatever it says
    besides (RFC 9112, 3.2.2); nothing for any other. Servers have to take such a target, and uvicorn has it for the path.
    """
    found = ABSOLUTE.fullmatch(scope["raw_path"])
    if not found:
        return {}
    path = found[2] or b"/"
    headers = [(b"host", found[1]), *(pair for pair in scope["headers"] if pair[0] != b"host")]
    return {"path": unquote(path.decode("ascii")), "raw_path": path, "headers": headers}


class Invited(CORSMiddleware):
    """What lets browsers show answers to pages of some sites; who asks beforehand in vain is told why, as JSON like all refusals."""

    def __init__(self, app: App, origins: Collection[str]) -> None:
        super().__init__(app, allow_origins=list(origins), allow_methods=CORS_METHODS, allow_headers=CORS_HEADERS)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Whether the page may ask what it is about to."""
        found = super().preflight_response(request_headers)
        if found.status_code == 200:
            return found
        origin = request_headers["origin"]
        what = f"pages of other sites may ask with {' and '.join(CORS_METHODS)}, and the headers {', '.join(CORS_HEADERS)}"
        return JSONResponse({"error": what if self.is_allowed_origin(origin) else stranger(origin)}, status_code=403)


def stranger(origin: str) -> str:
    """What pages of an origin are told that may not ask."""
    return f"origin {origin[:60]!r} may not ask: {cure_of(origin)}"


def cure_of(origin: str) -> str:
    """What lets pages of an origin ask. That of a file on a disk is `null`, as are pages of any site that wants to hide its name."""
    if origin == "null":
        return "open the page over HTTP (python -m http.server 8080), and start this server with --cors http://localhost:8080"
    return f"start the server with --cors {origin[:60]}"


def netloc_of(origin: str) -> str:
    """Host and port of an origin; empty for one without, such as `null`."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


class Body:
    """The body of a request as it comes in: no more than there may be, and no slower. Raises RefusedError (413, 408)."""

    def __init__(self, receive: Receive, scope: MutableMapping[str, Any], limits: Limits, *, file: bool) -> None:
        self._receive, self._scope = receive, scope
        self._most = limits.file_bytes if file else limits.body_bytes
        self._seconds = limits.body_seconds
        self._until = time.monotonic() + limits.body_seconds
        self._bytes = 0
        self._whole = False

    def refuse_declared(self) -> None:
        """Raise RefusedError for a body that says that it will be too large."""
        declared = dict(self._scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared[:20]) > self._most:
            raise self._too_large()

    def _too_large(self) -> RefusedError:
        return RefusedError(413, f"the body is too large: send {self._most} bytes at a time at most", close=True)

    async def __call__(self) -> Message:
        """The next message of a request."""
        if self._whole:  # what comes now is that the client is gone
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, self._until - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            raise RefusedError(408, f"the body did not come within {self._seconds:g} seconds: send it at once", close=True) from None
        self._bytes += len(message.get("body", b""))
        self._whole = message["type"] == "http.disconnect" or not message.get("more_body", False)
        if self._bytes > self._most:
            error = self._too_large()
            await self.drop()
            raise error
        return message

    async def drop(self) -> None:
        """Read what still comes of the body, for a while, unless the client waits to be asked for it."""
        if dict(self._scope["headers"]).get(b"expect", b"").lower() == b"100-continue" and not self._bytes:
            return
        try:
            async with asyncio.timeout(LINGER):
                while not self._whole:
                    message = await self._receive()
                    self._whole = message["type"] == "http.disconnect" or not message.get("more_body", False)
        except TimeoutError:
            pass


async def answer(error: RefusedError, send: Send) -> None:
    """Send a refusal."""
    body = json.dumps(error.content, ensure_ascii=False).encode("utf-8", "replace")
    headers = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
    encoded = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
