"""Batches side by side: a CPU is better used by several searches with a share of its threads each than by one after the other with all.

Products of few rows share out badly, what lies between them not at all. Python's own part of a step, a tenth, is for one worker at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from threading import Event, Lock, local
from typing import TypeVar

import torch

Batch = TypeVar("Batch")
Found = TypeVar("Found")

MOST = 4
"""More would wait for Python."""
FEW = 16
"""Rows: products of fewer gain next to nothing from more threads than a worker has (docs/log.md), and lose where others want the cores."""


class Threads:
    """How many threads a product has, a number of torch's that is one for all: whoever shares them out while others do knows of these."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sharing = 0
        self._all = 0

    def all(self) -> int:
        """As many as there are while nobody shares them out."""
        with self._lock:
            return self._all if self._sharing else torch.get_num_threads()

    @contextmanager
    def shared(self, workers: int) -> Iterator[None]:
        """For a while products have a share of the threads each."""
        with self._lock:
            if not self._sharing:
                self._all = torch.get_num_threads()
            self._sharing += 1
            torch.set_num_threads(max(1, self._all // workers))
        try:
            yield
        finally:
            with self._lock:
                self._sharing -= 1
                torch.set_num_threads(self._all)


THREADS = Threads()
_WORKER = local()


class StoppedError(Exception):
    """Ends a search whose result is no longer wanted."""


def go_on() -> None:
    """For a search to ask at each step. Raises StoppedError where a search beside it failed, all were interrupted, or nobody waits."""
    stop: Event | None = getattr(_WORKER, "stop", None)
    if stop and stop.is_set():
        raise StoppedError


@contextmanager
def stopped_by(stop: Event) -> Iterator[None]:
    """Within, searches of this thread, and those abreast that it begins, end with StoppedError at their next step once it is set."""
    before, _WORKER.stop = getattr(_WORKER, "stop", None), stop
    try:
        yield
    finally:
        _WORKER.stop = before


def workers_on(device: torch.device) -> int:
    """How many batches are searched at a time."""
    return min(THREADS.all(), MOST) if device.type == "cpu" else 1


def abreast(search: Callable[[Batch], Found], batches: Sequence[Batch], device: torch.device, *, rows: int = FEW) -> Iterator[Found]:
    """What the search finds for each batch, in order.

    `rows` is those of all batches: where they are few, a batch by itself has no more threads than one among many.
    """
    most = workers_on(device)
    workers = min(most, len(batches))
    if workers <= 1:
        with THREADS.shared(most) if rows < FEW else nullcontext():
            yield from map(search, batches)
        return
    stop = getattr(_WORKER, "stop", None) or Event()

    def searched(batch: Batch) -> Found:
        _WORKER.stop = stop
        return search(batch)

    with THREADS.shared(workers), ThreadPoolExecutor(workers) as pool:
        try:
            yield from pool.map(searched, batches)
        except BaseException:  # Ctrl-C, too: nobody waits for the end of searches that nobody wants
            stop.set()
            raise
