"""Ratios of lengths, judged against the corpus's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from mt.doctor.lengths import LengthLog, far


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Callable[..., LengthLog]]:
    """A log of some lengths, given in so many parts."""
    with ExitStack() as stack:

        def log(lengths: list[tuple[int, int]], *, parts: int = 1) -> LengthLog:
            found = stack.enter_context(LengthLog(tmp_path))
            for part in np.array_split(np.array(lengths, dtype=np.int32), parts):
                found.add(part)
            return found

        yield log


def test_the_usual_ratio_is_the_corpus_s_own(log: Callable[..., LengthLog]) -> None:
    """Chinese is a third as long as English: nothing about that is odd, and an equal length is."""
    usual = [(length, length // 3) for length in range(30, 330)]
    assert log(usual).outliers() == 0
    assert log([*usual, *[(0, 0)] * 1000]).medians() == log(usual).medians()
    found = log([*usual, (90, 100), (50, 3), (0, 70)], parts=7)
    assert found.outliers() == 2
    assert abs(found.usual().ratio - 1 / 3) < 0.01


def test_short_lines_may_have_any_ratio(log: Callable[..., LengthLog]) -> None:
    found = log([(50, 50)] * 100 + [(3, 12), (2, 9), (4, 30)])
    assert found.outliers() == 1


def test_a_corpus_of_free_translations_has_wider_bounds(log: Callable[..., LengthLog]) -> None:
    rng = np.random.default_rng(1)
    src = rng.integers(40, 200, 5000)
    tight, free = ((src * rng.lognormal(0, spread, 5000)).astype(int) for spread in (0.1, 0.5))
    assert log([*zip(src, tight, strict=True), (100, 400)]).outliers() == 1
    assert log(list(zip(src, free, strict=True))).outliers() < 5


def test_counts_are_those_of_all_pairs_at_once(log: Callable[..., LengthLog]) -> None:
    rng = np.random.default_rng(2)
    lengths = rng.integers(0, 200, (3000, 2)).astype(np.int32)
    found = log(lengths.tolist(), parts=11)
    assert found.outliers() == far(lengths, found.usual()).sum()
    whole = [np.sort(side[side > 0]) for side in lengths.T]
    assert found.medians() == tuple(int(side[(len(side) - 1) // 2]) for side in whole)
