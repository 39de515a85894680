"""Chance as a function: permutations without a list, seeds without a state."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.data.chance import Permutation, seed_of

keys = st.integers(0, 2**32 - 1)


def order(count: int, *key: int) -> list[int]:
    return Permutation(count, *key)(np.arange(count)).tolist()


@settings(max_examples=200)
@given(count=st.integers(1, 300), key=keys)
def test_each_place_is_reached_once(count: int, key: int) -> None:
    assert sorted(order(count, key)) == list(range(count))


@settings(max_examples=50)
@given(count=st.integers(1, 300), key=keys, data=st.data())
def test_any_part_can_be_computed_by_itself(count: int, key: int, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=20))
    whole = order(count, key)
    assert Permutation(count, key)(np.array(places, dtype=np.int64)).tolist() == [whole[place] for place in places]


def test_large_counts_cost_nothing_and_stay_in_range() -> None:
    count = 10**15
    places = np.arange(count - 1000, count)
    found = Permutation(count, 1)(places)
    assert len(set(found.tolist())) == 1000
    assert 0 <= found.min() <= found.max() < count
    assert found.std() == pytest.approx(count / 12**0.5, rel=0.1)


def test_another_key_is_another_order() -> None:
    assert len({tuple(order(50, *key)) for key in [(1, 0), (1, 1), (0, 1), (2, 0), (1,), (1, 0, 0)]}) == 6


def test_every_place_is_as_likely() -> None:
    """Where places 0, 3 and 6 of 7 go, over 3500 keys: 500 times to each of 7, with a standard deviation of 21."""
    orders = [order(7, key) for key in range(3500)]
    for place in (0, 3, 6):
        counts = Counter(one[place] for one in orders)
        assert set(counts) == set(range(7))
        assert max(abs(count - 500) for count in counts.values()) < 105


def test_neighbours_do_not_stay_neighbours() -> None:
    found = np.array(order(10_000, 1))
    assert abs(float(np.corrcoef(found[:-1], found[1:])[0, 1])) < 0.05
    assert int((np.abs(np.diff(found)) == 1).sum()) < 10  # 2 are expected


def test_seeds_are_a_function_of_all_numbers_in_their_order() -> None:
    assert seed_of(1, 2, 3) == seed_of(1, 2, 3)
    assert len({seed_of(*numbers) for numbers in [(1, 2, 3), (3, 2, 1), (1, 2), (12, 3), (1, 23), (1, 2, 3, 0)]}) == 6
    assert 0 <= seed_of(0) < 2**64
