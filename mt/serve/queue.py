"""Requests in batches: what waits is collected for a few milliseconds, and translated by one thread that has the model to itself."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from mt.decode.abreast import StoppedError, stopped_by
from mt.errors import MTError
from mt.serve.limits import Limits, RefusedError

Ask = TypeVar("Ask", bound=Hashable)
Found = TypeVar("Found")

LONGEST_RETRY = 60
"""Seconds that a client is asked to wait at most."""
LEARNT = 0.2
"""Share of the last batch in what is known of the speed."""

log = logging.getLogger("mt.serve")


class Line(NamedTuple):
    """A sentence to be translated."""

    text: str
    prefix: str = ""
    """How its translation begins."""


@dataclass(eq=False)
class Ticket(Generic[Ask, Found]):
    """A request that waits: lines that all ask for the same."""

    ask: Ask
    lines: Sequence[Line]
    done: Callable[[list[Found] | BaseException], None]
    """Told the translations of all lines, or why there are none; called by the thread that has the model."""
    since: float
    found: list[Found] = field(default_factory=list)
    taken: int = 0
    """Lines handed out."""
    gone: bool = False
    """Nobody waits for it any more."""

    @property
    def left(self) -> int:
        """Lines that are not handed out."""
        return 0 if self.gone else len(self.lines) - self.taken

    def take(self, most: int) -> Sequence[Line]:
        """The next lines."""
        lines = self.lines[self.taken : self.taken + most]
        self.taken += len(lines)
        return lines


class Share(NamedTuple, Generic[Ask, Found]):
    """What a batch has of a request."""

    ticket: Ticket[Ask, Found]
    lines: Sequence[Line]


class Queue(Generic[Ask, Found]):
    """Collects lines that ask for the same into batches for `search`, which is called by one thread.

    A batch begins with what has waited longest; where there is more than fits, each request has an equal share of it, so that a long
    text does not keep short ones waiting. `told`, if given, is called after each batch with its lines and seconds.
    """

    def __init__(
        self,
        search: Callable[[Ask, Sequence[Line]], Sequence[Found]],
        limits: Limits,
        *,
        told: Callable[[int, float], object] = lambda _lines, _seconds: None,
    ) -> None:
        self._search, self._limits, self._told = search, limits, told
        self._changed = threading.Condition()
        self._waiting: deque[Ticket[Ask, Found]] = deque()
        self._open: set[Ticket[Ask, Found]] = set()
        self._ended = False
        self._abandoned = False
        self._running: Sequence[Share[Ask, Found]] = ()
        self._stop = threading.Event()
        """Ends the search that goes on."""
        self._speed = 0.0
        self._free = 0.0
        """When the last batch was done: whoever was answered may have more to ask at once."""
        self._thread = threading.Thread(target=self._work, name="translator", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def end(self) -> None:
        """Finish what waits, and no more; returns when that is done."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def abandon(self, seconds: float) -> bool:
        """Give up what waits and what is begun, and say so; whether the thread has ended within so many seconds."""
        with self._changed:
            self._ended = self._abandoned = True
            self._waiting.clear()
            self._stop.set()
            self._changed.notify()
            for ticket in self._open:
                ticket.done(self._ending())
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def __len__(self) -> int:
        """Requests that are translated or wait for it."""
        return len(self._open)

    @property
    def retry_after(self) -> int:
        """Seconds until what waits now will be done, as far as can be told."""
        lines = sum(ticket.left for ticket in list(self._waiting))
        return min(LONGEST_RETRY, max(1, math.ceil(lines / self._speed) if self._speed else 1))

    async def translate(self, ask: Ask, lines: Sequence[Line], *, seconds: float) -> list[Found]:
        """The translations of the lines, in order.

        Raises RefusedError if too many requests wait (503), or if it takes longer than so many seconds (504), and what `search` raises. Who
        is cancelled leaves the queue.
        """
        if not lines:
            return []
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Found]] = loop.create_future()

        def done(found: list[Found] | BaseException) -> None:
            if future.done():
                return
            if isinstance(found, BaseException):
                future.set_exception(found)
            else:
                future.set_result(found)

        def from_thread(found: list[Found] | BaseException) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(done, found)

        ticket = Ticket[Ask, Found](ask, lines, from_thread, time.monotonic())
        self._enter(ticket)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            cure = "send less text at a time, or later"
            raise RefusedError(504, f"not done within {seconds:g} seconds: {cure}", retry_after=self.retry_after) from None
        finally:
            self._leave(ticket)

    def _enter(self, ticket: Ticket[Ask, Found]) -> None:
        with self._changed:
            if self._ended:
                raise self._ending()
            if len(self._open) >= self._limits.queue:
                retry = self.retry_after
                raise RefusedError(503, f"{len(self._open)} requests wait already: try again in {retry} seconds", retry_after=retry)
            self._open.add(ticket)
            self._waiting.append(ticket)
            self._changed.notify()

    def _ending(self) -> RefusedError:
        return RefusedError(503, "the server is ending: try again later", retry_after=self.retry_after, close=True)

    def _leave(self, ticket: Ticket[Ask, Found]) -> None:
        with self._changed:
            ticket.gone = True
            self._open.discard(ticket)
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if self._running and all(share.ticket.gone for share in self._running):
                self._stop.set()

    # ── the thread that has the model ───────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while batch := self._next():
            self._translate(batch)
            self._free = time.monotonic()

    def _next(self) -> list[Share[Ask, Found]]:
        """The next batch, once it is full or its oldest line has waited long enough; none when all is done."""
        with self._changed:
            while True:
                if not self._waiting:
                    if self._ended:
                        return []
                    self._changed.wait()
                    continue
                ask, since = self._waiting[0].ask, self._waiting[0].since
                lines = sum(ticket.left for ticket in self._waiting if ticket.ask == ask)
                rest = max(since, self._free) + self._limits.batch_seconds - time.monotonic()
                if rest <= 0 or lines >= self._limits.batch or self._ended:
                    return self._take(ask)
                self._changed.wait(rest)

    def _take(self, ask: Ask) -> list[Share[Ask, Found]]:
        room = self._limits.batch
        chosen = [ticket for ticket in self._waiting if ticket.ask == ask][:room]
        taken: dict[Ticket[Ask, Found], list[Line]] = {ticket: [] for ticket in chosen}
        while room and (open_ := [ticket for ticket in chosen if ticket.left]):
            for ticket in open_:
                lines = ticket.take(min(room, max(1, room // len(open_))))
                taken[ticket] += lines
                room -= len(lines)
        for ticket in chosen:  # what goes on does so behind the others
            self._waiting.remove(ticket)
            if ticket.left:
                self._waiting.append(ticket)
        return [Share(ticket, lines) for ticket, lines in taken.items() if lines]

    def _begin(self, batch: Sequence[Share[Ask, Found]]) -> bool:
        """Whether a batch is to be translated: somebody waits for it, and all is not given up."""
        with self._changed:
            if self._abandoned or all(share.ticket.gone for share in batch):
                return False
            self._running, self._stop = batch, threading.Event()
            return True

    def _translate(self, batch: Sequence[Share[Ask, Found]]) -> None:
        if not self._begin(batch):
            return
        lines = [line for share in batch for line in share.lines]
        began = time.monotonic()
        try:
            with stopped_by(self._stop):
                answers = self._search(batch[0].ticket.ask, lines)
            found = iter([answer for _, answer in zip(lines, answers, strict=True)])
        except StoppedError:
            return
        except Exception as error:
            self._blame(batch, error)
            return
        seconds = time.monotonic() - began
        speed = len(lines) / max(seconds, 1e-6)
        self._speed = speed if not self._speed else (1 - LEARNT) * self._speed + LEARNT * speed
        self._told(len(lines), seconds)
        for ticket, own in batch:
            ticket.found += [next(found) for _ in own]
            if len(ticket.found) == len(ticket.lines):
                ticket.done(ticket.found)

    def _blame(self, batch: Sequence[Share[Ask, Found]], error: Exception) -> None:
        """A batch failed: its halves are tried, down to whoever it is the fault of, so that nobody else has to suffer for it."""
        half = len(batch) // 2
        if half:
            self._translate(batch[:half])
            self._translate(batch[half:])
            return
        if not isinstance(error, MTError):
            log.error("a batch of %d lines failed", len(batch[0].lines), exc_info=error)
        self._fail(batch[0].ticket, error)

    def _fail(self, ticket: Ticket[Ask, Found], error: Exception) -> None:
        with self._changed:
            ticket.gone = True
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        ticket.done(error)
