"""Work shared among processes, its results in the order of its items, with few items on the way at once."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from mt.errors import DataError

MOST = 8
SIGNALS = signal.SIGINT, signal.SIGTERM

Item = TypeVar("Item")
Result = TypeVar("Result")


def core_count() -> int:
    """Processes to share work among: one for each core that this process may use, at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST)


def in_order(work: Callable[[Item], Result], items: Iterable[Item], *, workers: int, alone: int = 0) -> Generator[Result]:
    """`work` of each item. The first `alone` items are done here, the others in processes, if there are more and `workers` is above 1.

    `work`, items and results have to be such that can be pickled. Closing the iterator, or an exception, ends the processes; so does the
    end of this one, whatever its kind. Raises DataError if one of them is killed.
    """
    rest = iter(items)
    yield from map(work, islice(rest, alone))
    first = list(islice(rest, 1))
    if not first or workers < 2:
        yield from map(work, chain(first, rest))
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin, initargs=(work,))
    try:
        waiting: deque[Any] = deque()
        for item in chain(first, rest):
            waiting.append(pool.submit(_work, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise DataError("a process that was reading the corpora has been killed; is there enough memory? start again") from None
    finally:
        pool.shutdown(cancel_futures=True)


_the_work: Callable[[Any], Any]


def _begin(work: Callable[[Any], Any]) -> None:
    global _the_work
    _the_work = work
    follow_parent()


def follow_parent() -> None:
    """To be called in a new process: it leaves Ctrl-C and SIGTERM to the process that started it, and ends with that, however that ends."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(item: Any) -> Any:
    return _the_work(item)
