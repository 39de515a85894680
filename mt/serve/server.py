"""uvicorn, with what it lacks: time limits for the heads of requests, an end that finishes what is begun, and its exit code."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mt.errors import MTError
from mt.serve.access_log import log
from mt.serve.guard import App, State
from mt.serve.limits import Limits

HEAD_BYTES = 16 * 1024
"""Of a request."""
KEEP_SECONDS = 5
"""For a connection on which nothing is asked."""
BACKLOG = 2048
"""Connections that wait to be taken."""
LAST_SECONDS = 5
"""For answers to be read, once what was begun is done."""
NO_HTTP = f"this is no request of HTTP/1.1 over plain http://, or its head has more than {HEAD_BYTES} bytes"


class Connection(H11Protocol):
    """A connection that closes itself where a head does not come or an answer is not read, and at once where there are too many."""

    limits: Limits
    waiting: asyncio.TimerHandle | None = None
    unread: float | None = None
    """Since when there is something to read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the head of its first request."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.abort()
        else:
            self.wait()

    def wait(self) -> None:
        """For a head."""
        self.waiting = self.loop.call_later(self.limits.header_seconds, self.give_up)

    def wait_no_longer(self) -> None:
        """It is there, or not awaited any more."""
        if self.waiting:
            self.waiting.cancel()
            self.waiting = None

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def give_up(self) -> None:
        """Close."""
        if not self.busy and not self.transport.is_closing():
            self.transport.close()

    def look(self, now: float) -> None:
        """Close at once where nobody reads: what is sent would be kept for ever."""
        if not self.transport.get_write_buffer_size():
            self.unread = None
        elif self.unread is None:
            self.unread = now
        elif now - self.unread > self.limits.answer_seconds:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """A refusal like all others."""
        del msg
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": NO_HTTP}).encode()
            head = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
            for event in h11.Response(status_code=400, headers=head, reason=b"Bad Request"), h11.Data(data=body), h11.EndOfMessage():
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _should_upgrade(self) -> bool:
        """Never; whoever asks for it gets an answer as it is."""
        return False

    def data_received(self, data: bytes) -> None:
        """A head is there, or begun, or still to come."""
        super().data_received(data)
        if self.busy:
            self.wait_no_longer()
        elif self.waiting is None and not self.transport.is_closing():
            self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nothing to wait for."""
        self.wait_no_longer()
        super().connection_lost(exc)


def protocol(of: Limits) -> type[Connection]:
    """Connections with such limits."""

    class Limited(Connection):
        limits = of

    return Limited


class Server(uvicorn.Server):
    """Ends in two steps: it takes no new requests and finishes those it has, then it goes; asked a second time it goes at once."""

    def __init__(self, config: uvicorn.Config, *, state: State, limits: Limits, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self.state, self.limits, self.ready = state, limits, ready
        self.asked: int | None = None
        """The signal that asked it to end."""
        self.code = 0
        """The exit code: 0 if all that was begun was finished."""
        self._until = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came."""
        del frame
        if self.asked is None:
            self.asked, self.state.draining = sig, True
            self._until = time.monotonic() + self.limits.drain_seconds
        else:
            self.code, self.force_exit, self.should_exit = 128 + sig, True, True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self.ready()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        self._each(lambda connection: connection.look(time.monotonic()))
        if self.asked is not None and not self.should_exit:
            if not self.state.active:
                self.should_exit = True
            elif time.monotonic() > self._until:
                log.warning("%d requests were not done in time", self.state.active)
                self.code, self.force_exit, self.should_exit = 128 + self.asked, True, True
        if self.force_exit:
            self.state.abandon(0)  # whoever waits is told so while connections are closed
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what there is; who does not read is not waited for."""
        end = asyncio.get_running_loop().call_later(LAST_SECONDS, self._each, lambda connection: connection.transport.abort())
        await super().shutdown(sockets)
        end.cancel()

    def _each(self, do: Callable[[Connection], None]) -> None:
        for connection in list(self.server_state.connections):
            assert isinstance(connection, Connection)
            do(connection)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but that nothing is raised at the end: the exit code says it."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def listen(host: str, port: int) -> socket.socket:
    """A socket, of IPv4 where a name stands for both. Raises MTError where the address cannot be had."""
    found: socket.socket | None = None
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, number, _, address = min(known, key=lambda one: one[0] != socket.AF_INET)
        found = socket.socket(family, kind, number)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        if found:
            found.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise MTError(f"--host {host} --port {port}: cannot listen there ({reason.lower()}); choose another --port, or --host") from None
    return found


def configured(app: App, limits: Limits) -> uvicorn.Config:
    """How uvicorn is run."""
    settings: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "proxy_headers": False, "ws": "none"}
    return uvicorn.Config(
        app,
        http=protocol(limits),
        loop="asyncio",
        lifespan="on",
        timeout_keep_alive=min(KEEP_SECONDS, limits.header_seconds),  # type: ignore[arg-type] # it is a delay like any
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_graceful_shutdown=LAST_SECONDS + 1,
        **settings,
    )


def serve(app: App, listening: socket.socket, *, state: State, limits: Limits, ready: Callable[[], object]) -> int:
    """Answer requests until a signal comes; the exit code."""
    server = Server(configured(app, limits), state=state, limits=limits, ready=ready)
    server.run([listening])
    if server.code and not state.abandon(LAST_SECONDS):  # the thread that translates would be cut down by the end of the program
        logging.shutdown()
        os._exit(server.code)
    return server.code
