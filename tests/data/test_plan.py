"""The order of the data: every pair as often as its weight says, batches within the budget, a pure function of seed and epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mt.data import plan
from mt.data.plan import cut, epoch_batches, epoch_order, shares
from mt.data.store import Span

Lengths = NDArray[np.int64]

sides = st.tuples(st.integers(1, 30), st.integers(1, 30))
lengths_of = st.lists(sides, min_size=1, max_size=40).map(lambda rows: np.array(rows, dtype=np.int64))
seeds = st.integers(0, 2**32 - 1)


def whole(lengths_N2: Lengths) -> list[Span]:
    return [Span(0, len(lengths_N2))]


def listed(batches: Sequence[Lengths]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


def captions(count: int) -> Lengths:
    """Lengths as of image captions cut into sub-words: 14 pieces or so, the target a little longer and close to the source."""
    rng = np.random.default_rng(0)
    src = np.exp(rng.normal(2.6, 0.33, count))
    tgt = src * np.exp(rng.normal(0.05, 0.2, count))
    return np.maximum(1, np.stack([src, tgt], axis=1).round()).astype(np.int64)


@settings(max_examples=60)
@given(lengths_N2=lengths_of, budget=st.integers(1, 200), seed=seeds, epoch=st.integers(0, 3))
def test_each_pair_once_an_epoch_and_within_the_budget(lengths_N2: Lengths, budget: int, seed: int, epoch: int) -> None:
    batches = epoch_batches(lengths_N2, whole(lengths_N2), budget=budget, seed=seed, epoch=epoch)
    assert sorted(i for batch in listed(batches) for i in batch) == list(range(len(lengths_N2)))
    for batch in batches:
        assert len(batch) * (lengths_N2[batch].max() + 1) <= budget or len(batch) == 1


@settings(max_examples=30)
@given(lengths_N2=lengths_of, seed=seeds, epoch=st.integers(0, 3))
def test_the_same_pairs_in_the_same_batches_for_the_same_seed_and_epoch(lengths_N2: Lengths, seed: int, epoch: int) -> None:
    def batches() -> list[list[int]]:
        return listed(epoch_batches(lengths_N2, whole(lengths_N2), budget=100, seed=seed, epoch=epoch))

    first = batches()
    np.random.default_rng().permutation(5)  # what else draws random numbers does not matter
    assert batches() == first


def test_another_seed_or_epoch_is_another_order() -> None:
    spans = [Span(0, 50)]
    orders = [epoch_order(spans, seed=seed, epoch=epoch).tolist() for seed, epoch in [(1, 0), (1, 1), (2, 0), (0, 1)]]
    assert len({tuple(order) for order in orders}) == 4


def test_pairs_of_equal_length_have_other_company_in_each_epoch() -> None:
    lengths_N2 = np.full((40, 2), 9)
    epochs = [epoch_batches(lengths_N2, whole(lengths_N2), budget=40, seed=1, epoch=epoch) for epoch in (0, 1)]
    groups = [{frozenset(batch) for batch in listed(batches)} for batches in epochs]
    assert len(groups[0] & groups[1]) <= 2


def test_batches_are_not_in_the_order_of_their_length() -> None:
    lengths_N2 = captions(2000)
    longest = [int(lengths_N2[batch].max()) for batch in epoch_batches(lengths_N2, whole(lengths_N2), budget=400, seed=1, epoch=0)]
    assert abs(float(np.corrcoef(longest, range(len(longest)))[0, 1])) < 0.2


@pytest.mark.parametrize(
    ("weight", "expected"), [(1.0, {1}), (2.0, {2}), (2.5, {2, 3}), (0.25, {0, 1})], ids=["once", "twice", "two and a half", "a quarter"]
)
def test_weight_is_the_number_of_passes(weight: float, expected: set[int]) -> None:
    spans = [Span(0, 40, weight), Span(40, 20)]
    seen = Counter(epoch_order(spans, seed=3, epoch=0).tolist())
    times = [seen[i] for i in range(40)]
    assert set(times) == expected
    assert sum(times) == round(40 * weight)
    assert [seen[i] for i in range(40, 60)] == [1] * 20  # the other corpus is not affected


def test_each_epoch_takes_another_part_of_a_corpus_that_is_not_used_whole() -> None:
    parts = [frozenset(epoch_order([Span(0, 100, 0.25)], seed=1, epoch=epoch).tolist()) for epoch in range(3)]
    assert {len(part) for part in parts} == {25}
    assert len(set(parts)) == 3


def test_a_share_smaller_than_a_pair_is_one_pair() -> None:
    """With none at all an epoch might be empty, and training would look for a batch for ever."""
    assert len(epoch_order([Span(0, 4, 0.1)], seed=1, epoch=0)) == 1


@settings(max_examples=50)
@given(weight=st.floats(0.01, 20))
def test_shares_add_up_to_the_weight(weight: float) -> None:
    parts = list(shares(weight))
    assert all(0 < part <= 1 for part in parts)
    assert sum(parts) == pytest.approx(weight)
    assert sum(part < 1 for part in parts) <= 1


def test_windows_are_sorted_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch holds pairs of one window of the random order, so that sorting never takes the whole corpus."""
    monkeypatch.setattr(plan, "WINDOW", 16)
    lengths_N2 = captions(100)
    order = epoch_order(whole(lengths_N2), seed=1, epoch=0).tolist()
    windows = [set(order[start : start + 16]) for start in range(0, 100, 16)]
    batches = listed(epoch_batches(lengths_N2, whole(lengths_N2), budget=120, seed=1, epoch=0))
    assert all(any(set(batch) <= window for window in windows) for batch in batches)
    assert sorted(i for batch in batches for i in batch) == list(range(100))


@pytest.mark.parametrize("budget", [1200, 4096])
def test_nine_in_ten_tokens_are_real_on_captions(budget: int) -> None:
    lengths_N2 = captions(29_000)
    batches = epoch_batches(lengths_N2, whole(lengths_N2), budget=budget, seed=1, epoch=0)
    real = int((lengths_N2 + 1).sum())
    padded = sum(len(batch) * int((lengths_N2[batch] + 1).max(axis=0).sum()) for batch in batches)
    assert real / padded >= 0.9


def test_cut_fills_batches_up_to_the_budget() -> None:
    sizes_N2 = np.array([[2, 2], [2, 2], [2, 2], [3, 2], [2, 9], [9, 9]])
    batches = listed(list(cut(np.array([5, 4, 3, 2, 1, 0]), sizes_N2, budget=6)))
    assert batches == [[5, 4, 3], [2], [1], [0]]  # three rows of 2 fill it; a 3 would make it 12; two are longer than the budget
