"""Batches side by side give what they give one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from mt.decode.abreast import FEW, MOST, abreast, go_on, workers_on

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
@pytest.mark.parametrize("batches", [0, 1, 2, 7])
def test_what_is_found_comes_in_the_order_of_the_batches(threads: int, batches: int) -> None:
    torch.set_num_threads(threads)

    def slowest_first(batch: int) -> int:
        time.sleep(0.002 * (batches - batch))
        return batch * batch

    assert list(abreast(slowest_first, range(batches), CPU)) == [batch * batch for batch in range(batches)]
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("threads", "batches", "workers", "each"), [(1, 5, 1, 1), (2, 5, 2, 1), (2, 1, 1, 2), (8, 5, MOST, 2), (9, 3, 3, 3)]
)
def test_workers_share_the_threads(threads: int, batches: int, workers: int, each: int) -> None:
    torch.set_num_threads(threads)
    assert workers_on(CPU) == min(threads, MOST)
    together = threading.Barrier(workers)

    def search(batch: int) -> int:
        if batch < workers:
            together.wait(timeout=10)  # broken, with an error, if fewer are at work
        return torch.get_num_threads()

    assert list(abreast(search, range(batches), CPU)) == [each] * batches


@pytest.mark.parametrize(("threads", "rows", "has"), [(1, 1, 1), (2, FEW - 1, 1), (2, FEW, 2), (8, 1, 2)])
def test_a_batch_of_few_rows_has_the_threads_of_one_among_many(threads: int, rows: int, has: int) -> None:
    torch.set_num_threads(threads)
    assert list(abreast(lambda _: torch.get_num_threads(), range(1), CPU, rows=rows)) == [has]
    assert torch.get_num_threads() == threads


def test_elsewhere_one_batch_comes_after_the_other() -> None:
    torch.set_num_threads(4)
    assert workers_on(torch.device("cuda")) == 1
    names = list(abreast(lambda _: threading.current_thread().name, range(3), torch.device("cuda")))
    assert names == [threading.current_thread().name] * 3


def test_the_first_error_ends_it_and_the_threads_are_given_back() -> None:
    torch.set_num_threads(2)
    begun = []

    def search(batch: int) -> int:
        begun.append(batch)
        time.sleep(0.01)
        if batch == 1:
            raise ValueError(batch)
        return batch

    with pytest.raises(ValueError, match="1"):
        list(abreast(search, range(50), CPU))
    assert len(begun) < 50
    assert torch.get_num_threads() == 2


def test_whoever_searches_at_the_same_time_leaves_as_many_threads_as_there_were() -> None:
    torch.set_num_threads(4)
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()
    seen = {}

    def first() -> None:
        def search(_: int) -> None:
            first_is_in.set()
            assert second_is_in.wait(10)

        list(abreast(search, range(4), CPU))
        first_is_out.set()

    def second() -> None:
        assert first_is_in.wait(10)
        seen["workers"] = workers_on(CPU)

        def search(_: int) -> None:
            second_is_in.set()
            assert first_is_out.wait(10)

        list(abreast(search, range(4), CPU))
        seen["second"] = torch.get_num_threads()

    both = [threading.Thread(target=one) for one in (first, second)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    later = threading.Thread(target=lambda: seen.update(later=torch.get_num_threads()))
    later.start()
    later.join()
    assert seen == {"workers": 4, "second": 4, "later": 4}
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_searches_that_are_under_way_stop_at_their_next_step(error: type[BaseException]) -> None:
    torch.set_num_threads(2)
    begun = threading.Barrier(2)

    def search(batch: int) -> int:
        begun.wait(10)
        if batch == 0:
            raise error
        until = time.monotonic() + 30
        while time.monotonic() < until:
            go_on()
            time.sleep(0.001)
        return batch

    start = time.monotonic()
    with pytest.raises(error):
        list(abreast(search, range(2), CPU))
    assert time.monotonic() - start < 20
    go_on()  # here nothing is stopped
