"""Requests in batches, with a search that can be held up and looked into."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from mt.decode.abreast import go_on
from mt.errors import DecodeError
from mt.serve.limits import Limits, RefusedError
from mt.serve.queue import Line, Queue


class Search:
    """Answers a line with itself in capitals, once its gate is open; notes each batch."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[str]]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()

    def __call__(self, ask: str, lines: Sequence[Line]) -> list[str]:
        texts = [line.text for line in lines]
        self.batches.append((ask, texts))
        self.begun.set()
        assert self.gate.wait(20)
        if "wrong" in texts:
            raise DecodeError("cannot be")
        if "fault" in texts:
            raise ZeroDivisionError
        if "few" in texts:
            return []
        return [text.upper() for text in texts]


def with_queue(work: Callable[[Queue[str, str], Search], Awaitable[Any]], **limits: Any) -> Any:
    search = Search()
    queue: Queue[str, str] = Queue(search, Limits(**limits))

    async def worked() -> Any:
        queue.start()
        try:
            return await work(queue, search)
        finally:
            search.gate.set()
            await asyncio.to_thread(queue.end)

    return asyncio.run(worked())


def lines(*texts: str) -> list[Line]:
    return [Line(text) for text in texts]


async def started(search: Search) -> None:
    assert await asyncio.to_thread(search.begun.wait, 20)


def test_what_comes_together_is_one_batch_and_each_gets_its_own() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        found = await asyncio.gather(*(queue.translate("a", lines(f"x{i}", f"y{i}"), seconds=20) for i in range(5)))
        assert found == [[f"X{i}", f"Y{i}"] for i in range(5)]
        assert len(search.batches) == 1

    with_queue(work, batch_seconds=0.5, batch=10)


def test_what_asks_for_something_else_is_another_batch() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        asks = ["a", "b", "a", "b"]
        found = await asyncio.gather(*(queue.translate(ask, lines(f"{ask}{i}"), seconds=20) for i, ask in enumerate(asks)))
        assert found == [[f"{ask}{i}".upper()] for i, ask in enumerate(asks)]
        assert all(text.startswith(ask) for ask, texts in search.batches for text in texts)
        assert len(search.batches) == 2

    with_queue(work, batch_seconds=0.2)


def test_a_long_text_keeps_no_short_one_waiting() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        search.gate.clear()
        long = asyncio.create_task(queue.translate("a", lines(*(f"l{i}" for i in range(100))), seconds=20))
        await started(search)
        short = asyncio.create_task(queue.translate("a", lines("s"), seconds=20))
        await asyncio.sleep(0.05)
        search.gate.set()
        assert await short == ["S"]
        assert await long == [f"L{i}" for i in range(100)]
        assert "s" in search.batches[1][1]
        assert all(len(texts) <= 10 for _, texts in search.batches)

    with_queue(work, batch=10)


def test_who_goes_away_while_waiting_is_not_searched_for() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        search.gate.clear()
        first = asyncio.create_task(queue.translate("a", lines("first"), seconds=20))
        await started(search)
        gone = asyncio.create_task(queue.translate("a", lines("gone"), seconds=20))
        stays = asyncio.create_task(queue.translate("a", lines("stays"), seconds=20))
        await asyncio.sleep(0.05)
        assert len(queue) == 3
        gone.cancel()
        await asyncio.wait({gone})
        assert len(queue) == 2
        search.gate.set()
        assert [await first, await stays] == [["FIRST"], ["STAYS"]]
        assert [texts for _, texts in search.batches] == [["first"], ["stays"]]

    with_queue(work)


def test_a_full_queue_refuses_at_once_and_takes_more_when_there_is_room() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        search.gate.clear()
        waiting = [asyncio.create_task(queue.translate("a", lines(str(i)), seconds=20)) for i in range(3)]
        await started(search)
        await asyncio.sleep(0.05)
        with pytest.raises(RefusedError, match="3 requests wait already") as refused:
            await asyncio.wait_for(queue.translate("a", lines("more"), seconds=20), 1)
        assert refused.value.status == 503
        assert int(refused.value.headers["Retry-After"]) >= 1
        search.gate.set()
        await asyncio.gather(*waiting)
        assert await queue.translate("a", lines("more"), seconds=20) == ["MORE"]

    with_queue(work, queue=3)


def test_a_request_has_its_time_and_leaves_the_queue_after_it() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        search.gate.clear()
        first = asyncio.create_task(queue.translate("a", lines("first"), seconds=20))
        await started(search)
        with pytest.raises(RefusedError, match=r"not done within 0\.05 seconds") as refused:
            await queue.translate("a", lines("late"), seconds=0.05)
        assert refused.value.status == 504
        search.gate.set()
        await first
        assert [texts for _, texts in search.batches] == [["first"]]

    with_queue(work)


@pytest.mark.parametrize(("text", "error"), [("wrong", DecodeError), ("fault", ZeroDivisionError), ("few", ValueError)])
def test_what_one_asks_for_wrongly_fails_no_other(text: str, error: type[Exception]) -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        texts = [*"abcde", text, *"fghijklmno"]
        asked = (queue.translate("a", lines(one), seconds=20) for one in texts)
        found = await asyncio.gather(*asked, return_exceptions=True)
        place = texts.index(text)
        assert isinstance(found.pop(place), error)
        assert found == [[one.upper()] for one in texts if one != text]
        assert len(search.batches) < len(texts)  # by halves

    with_queue(work, batch_seconds=0.2)


def test_the_thread_outlives_a_fault() -> None:
    async def work(queue: Queue[str, str], _: Search) -> None:
        with pytest.raises(ZeroDivisionError):
            await queue.translate("a", lines("fault"), seconds=20)
        assert await queue.translate("a", lines("next"), seconds=20) == ["NEXT"]

    with_queue(work)


def test_the_end_finishes_what_waits_and_takes_no_more() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        search.gate.clear()
        waiting = [asyncio.create_task(queue.translate("a", lines(str(i)), seconds=20)) for i in range(3)]
        await started(search)
        ended = asyncio.create_task(asyncio.to_thread(queue.end))
        await asyncio.sleep(0.05)
        with pytest.raises(RefusedError, match="ending"):
            await queue.translate("a", lines("more"), seconds=20)
        search.gate.set()
        assert await asyncio.gather(*waiting) == [["0"], ["1"], ["2"]]
        await ended

    with_queue(work)


def test_nothing_to_translate_needs_no_thread() -> None:
    async def work(queue: Queue[str, str], search: Search) -> None:
        assert await queue.translate("a", [], seconds=20) == []
        assert search.batches == []

    with_queue(work)


def endless(_ask: str, _lines: Sequence[Line]) -> list[str]:
    """A search of which only the stop is the end."""
    began = time.monotonic()
    while time.monotonic() < began + 20:
        go_on()
    raise AssertionError("was not stopped")


def test_a_search_that_nobody_waits_for_is_stopped() -> None:
    done: list[str] = []

    def search(ask: str, own: Sequence[Line]) -> list[str]:
        return endless(ask, own) if own[0].text == "long" else [done.append(line.text) or line.text for line in own]  # type: ignore[func-returns-value]

    queue: Queue[str, str] = Queue(search, Limits(batch=1))

    async def work() -> None:
        queue.start()
        with pytest.raises(RefusedError) as refused:
            await queue.translate("a", lines("long"), seconds=0.2)
        assert refused.value.status == 504
        assert await queue.translate("a", lines("short"), seconds=10) == ["short"]
        await asyncio.to_thread(queue.end)

    asyncio.run(work())
    assert done == ["short"]


def test_what_is_begun_can_be_given_up() -> None:
    queue: Queue[str, str] = Queue(endless, Limits(batch=1))

    async def work() -> None:
        queue.start()
        asked = [asyncio.create_task(queue.translate("a", lines(text), seconds=15)) for text in ("one", "two")]
        await asyncio.sleep(0.1)
        assert await asyncio.to_thread(queue.abandon, 10)
        for error in await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 5):
            assert isinstance(error, RefusedError)
            assert (error.status, "ending" in error.message) == (503, True)

    asyncio.run(work())
