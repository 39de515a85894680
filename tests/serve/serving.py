"""For tests of the server: a model that makes something of each line, its routes without a network, and a real server on a socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from mt.serve.answering import Model
from mt.serve.api import application
from mt.serve.guard import App, State
from mt.serve.limits import Limits
from mt.serve.server import Server, configured, listen
from mt.translator import Translator
from tests.translating import lively_run

T = TypeVar("T")

LANGS = "langs={src: en, tgt: de}"


def small_run(folder: Path, *overrides: str) -> Path:
    """A run from English to German, which it does not know."""
    return lively_run(folder, *(overrides or (LANGS,)), "decode.max_length_factor=1", "decode.max_length_extra=2").path


def lively_model(folder: Path, *overrides: str) -> Model:
    """Its model."""
    return Model(Translator.load(small_run(folder, *overrides)), "runs/demo")


@asynccontextmanager
async def client_of(app: App) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an application that has begun."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    began, ended = asyncio.Event(), asyncio.Event()

    async def send(message: Any) -> None:
        (began if message["type"] == "lifespan.startup.complete" else ended).set()

    life = asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, messages.get, send))
    await messages.put({"type": "lifespan.startup"})
    await began.wait()
    try:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
            yield client
    finally:
        await messages.put({"type": "lifespan.shutdown"})
        await ended.wait()
        await life


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """What it comes to."""
    return asyncio.run(work)


class Asking:
    """An application that is asked things, one after the other."""

    def __init__(self, make: Callable[[], App]) -> None:
        self._make = make

    def __call__(self, method: str, path: str, **named: Any) -> httpx2.Response:
        async def asked() -> httpx2.Response:
            async with client_of(self._make()) as client:
                return await client.request(method, path, **named)

        return asyncio.run(asked())


def asking(model: Model, limits: Limits | None = None, **named: Any) -> Asking:
    """The routes of a model."""
    return Asking(lambda: application(model, limits or Limits(), **named))


@contextmanager
def served(model: Model, limits: Limits | None = None, **named: Any) -> Iterator[tuple[str, int]]:
    """A real server in a thread, on a port of its own."""
    with running(model, limits, **named) as (_, address):
        yield address


@contextmanager
def running(model: Model, limits: Limits | None = None, **named: Any) -> Iterator[tuple[Server, tuple[str, int]]]:
    """The same, with the server itself."""
    limits, state = limits or Limits(), State()
    app = application(model, limits, state=state, **named)
    ready = threading.Event()
    with listen("127.0.0.1", 0) as listening:
        server = Server(configured(app, limits), state=state, limits=limits, ready=ready.set)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert ready.wait(20)
            yield server, listening.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
