"""Work shared among processes: in order, few items on the way, ended with the one who asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt.data.workers import in_order
from mt.errors import DataError


def squared(number: int) -> tuple[int, int]:
    """The square, and who made it."""
    return number * number, os.getpid()


def killed(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refused(number: int) -> int:
    if number == 5:
        raise DataError("line 5")
    return number


def test_results_are_in_the_order_of_the_items_and_the_first_are_made_here() -> None:
    found = list(in_order(squared, range(40), workers=2, alone=3))
    assert [square for square, _ in found] == [n * n for n in range(40)]
    makers = [maker for _, maker in found]
    assert set(makers[:3]) == {os.getpid()}
    assert os.getpid() not in makers[3:]


@pytest.mark.parametrize(("count", "workers"), [(0, 2), (3, 2), (9, 1), (9, 0)])
def test_little_work_starts_no_process(count: int, workers: int) -> None:
    assert list(in_order(squared, range(count), workers=workers, alone=3)) == [(n * n, os.getpid()) for n in range(count)]


def test_few_items_are_on_the_way() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = in_order(squared, items(), workers=2)
    assert next(results)[0] == 0
    assert len(taken) <= 6
    results.close()
    assert len(taken) <= 6


@pytest.mark.parametrize(("work", "message"), [(killed, "a process that was reading the corpora has been killed"), (refused, "line 5")])
def test_trouble_in_a_worker_arrives_here(work: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(in_order(work, range(40), workers=2))  # type: ignore[type-var]


ORPHANS = """
import os, signal, sys
from mt.data.workers import in_order
from tests.data.test_workers import squared
if __name__ == "__main__":
    results = in_order(squared, iter(int, 1), workers=2)  # endless
    makers = set()
    while len(makers) < 2:
        makers.add(next(results)[1])
    print(*makers, flush=True)
    os.kill(os.getpid(), signal.Signals[sys.argv[1]])
    next(results)
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, name: str) -> None:
    """However it ends; a pipe that they hold is at its end only when all are gone."""
    program = tmp_path / "program.py"
    program.write_text(ORPHANS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, program, name], capture_output=True, env=environment, timeout=120)
    assert done.returncode != 0
    assert len(done.stdout.split()) == 2
    assert done.stderr.count(b"Traceback") == (name == "SIGINT")  # of the parent alone
