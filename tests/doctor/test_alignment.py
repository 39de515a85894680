"""The test for shifted lines: it finds what was shifted, and nothing in what was not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mt.doctor.alignment import Shift, find_shift, strangers, surplus_at

Lengths = NDArray[np.int64]


def partners(count: int, *, seed: int = 0, spread: float = 0.2) -> tuple[Lengths, Lengths]:
    """Lengths of sentences and of their translations, whose ratio varies by so much."""
    rng = np.random.default_rng(seed)
    src = rng.lognormal(4, 0.5, count).astype(int) + 1
    return src, (src * rng.lognormal(0.1, spread, count)).astype(int) + 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [60, 1000, 30_000])
def test_no_alarm_where_nothing_is_shifted(count: int, seed: int) -> None:
    src, tgt = partners(count, seed=seed)
    assert find_shift(src, tgt) is None
    assert strangers(src, tgt) is None


@pytest.mark.parametrize("seed", range(20))
def test_no_alarm_where_lengths_tell_nothing(seed: int) -> None:
    src, tgt = partners(30_000, seed=seed)
    shuffled = np.random.default_rng(seed).permutation(tgt)
    assert find_shift(src, shuffled) is None
    assert strangers(src, shuffled) == (1, 30_000)


def test_no_alarm_where_lines_are_sorted_by_length_or_all_alike() -> None:
    src, tgt = partners(5000)
    order = np.argsort(src)
    assert find_shift(src[order], tgt[order]) is None
    same = np.full(5000, 40)
    assert find_shift(same, same) is None
    assert strangers(same, same) is None


@pytest.mark.parametrize("ahead", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("place", [0, 700, 2000])
def test_a_shift_is_found_where_it_begins(ahead: int, place: int) -> None:
    src, tgt = partners(3000)
    tgt = np.insert(tgt, place, [30] * ahead) if ahead > 0 else np.delete(tgt, slice(place, place - ahead))
    count = min(len(src), len(tgt))
    found = find_shift(src[:count], tgt[:count])
    assert found is not None
    assert found.ahead == ahead
    assert abs(found.line - 1 - place) <= 8
    surplus = surplus_at(src, tgt)
    assert surplus is not None
    assert abs(surplus - 1 - place) <= 8


def test_the_first_of_several_shifts_is_told() -> None:
    src, tgt = partners(4000)
    twice = np.delete(tgt, [1000, 2500])
    found = find_shift(src, twice)
    assert found is not None
    assert found == Shift(found.line, -1)
    assert abs(found.line - 1001) <= 8


def test_a_surplus_is_located_in_the_shortest_files() -> None:
    src = np.array([40, 12, 90, 33, 60])
    assert surplus_at(src, np.array([42, 13, 0, 95, 30, 61])) == 3
    assert surplus_at(src, np.array([42, 13, 95, 30, 61, 7])) is None, "the last line is too much: nothing is shifted"


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    src, tgt = partners(3000)
    for place in (5, 1500, 2900):
        cut = np.delete(tgt, place)
        found = surplus_at(src, cut), find_shift(src, cut)
        with monkeypatch.context() as patched:
            patched.setattr("mt.doctor.alignment.CHUNK", 7)
            assert (surplus_at(src, cut), find_shift(src, cut)) == found


def test_a_stretch_of_strangers() -> None:
    src, tgt = partners(12_000)
    tgt[4000:8000] = np.random.default_rng(1).permutation(tgt[4000:8000])
    assert strangers(src, tgt) == (4001, 8000)
