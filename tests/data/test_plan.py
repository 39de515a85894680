"""The order of the data: every pair as often as its weight says, batches within the budget, a pure function of seed and epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice, takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mt.data.plan import Cursor, Measure, Order, Span, cut, deals, tempered

Lengths = NDArray[np.int64]

sides = st.tuples(st.integers(1, 30), st.integers(1, 30))
lengths_of = st.lists(sides, min_size=1, max_size=40).map(lambda rows: np.array(rows, dtype=np.int64))
seeds = st.integers(0, 2**32 - 1)
weights = st.sampled_from([1.0, 2.0, 2.5, 0.25, 0.001, 7.3])


def plan(lengths_N2: Lengths, spans: Sequence[Span] | None = None, *, budget: int = 100, seed: int = 1, window: int = 1 << 17) -> Order:
    return Order(lengths_N2, spans or [Span(0, len(lengths_N2))], budget=budget, seed=seed, window=window)


def uniform(*spans: Span, seed: int = 1, window: int = 1 << 17) -> Order:
    """Pairs of equal length."""
    return plan(np.full((sum(span.count for span in spans), 2), 9), spans, seed=seed, window=window)


def epoch_of(order: Order, epoch: int = 0) -> list[list[int]]:
    """The draws of each batch of an epoch."""
    return [batch.tolist() for window in range(order.windows) for batch in order.batches(epoch, window)]


def draws_of(order: Order, epoch: int = 0) -> list[int]:
    """The draws of an epoch in random order."""
    return [draw for window in range(order.windows) for draw in order.draws(epoch, window).tolist()]


def captions(count: int) -> Lengths:
    """Lengths as of image captions cut into sub-words: 14 pieces or so, the target a little longer and close to the source."""
    rng = np.random.default_rng(0)
    src = np.exp(rng.normal(2.6, 0.33, count))
    tgt = src * np.exp(rng.normal(0.05, 0.2, count))
    return np.maximum(1, np.stack([src, tgt], axis=1).round()).astype(np.int64)


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(lengths_N2=lengths_of, budget=st.integers(1, 200), seed=seeds, epoch=st.integers(0, 3), window=st.integers(1, 50))
def test_each_pair_once_an_epoch_and_within_the_budget(lengths_N2: Lengths, budget: int, seed: int, epoch: int, window: int) -> None:
    batches = epoch_of(plan(lengths_N2, budget=budget, seed=seed, window=window), epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths_N2)))
    for batch in batches:
        assert len(batch) * (lengths_N2[batch].max() + 1) <= budget or len(batch) == 1


@settings(max_examples=30)
@given(lengths_N2=lengths_of, seed=seeds, epoch=st.integers(0, 3), window=st.integers(1, 50))
def test_the_order_is_a_function_of_seed_and_epoch(lengths_N2: Lengths, seed: int, epoch: int, window: int) -> None:
    first = epoch_of(plan(lengths_N2, seed=seed, window=window), epoch)
    again = plan(lengths_N2, seed=seed, window=window)
    backwards = [batch.tolist() for number in reversed(range(again.windows)) for batch in reversed(again.batches(epoch, number))]
    assert backwards[::-1] == first  # no matter what was asked for before


def test_another_seed_or_epoch_is_another_order() -> None:
    orders = [tuple(draws_of(uniform(Span(0, 50), seed=seed), epoch)) for seed, epoch in [(1, 0), (1, 1), (2, 0), (0, 1)]]
    assert len(set(orders)) == 4


def test_pairs_of_equal_length_have_other_company_in_each_epoch() -> None:
    order = plan(np.full((40, 2), 9), budget=40)
    groups = [{frozenset(batch) for batch in epoch_of(order, epoch)} for epoch in (0, 1)]
    assert len(groups[0] & groups[1]) <= 2


def test_batches_are_not_in_the_order_of_their_length() -> None:
    lengths_N2 = captions(2000)
    longest = [int(lengths_N2[batch].max()) for batch in epoch_of(plan(lengths_N2, budget=400))]
    assert abs(float(np.corrcoef(longest, range(len(longest)))[0, 1])) < 0.2


def test_windows_are_sorted_by_themselves() -> None:
    """A batch holds pairs of one window of the random order, so that sorting never takes the whole corpus."""
    order = plan(captions(100), budget=120, window=16)
    assert order.windows == 7
    drawn = draws_of(order)
    for number, start in enumerate(range(0, 100, 16)):
        assert sorted(i for batch in order.batches(0, number) for i in batch.tolist()) == sorted(drawn[start : start + 16])


@pytest.mark.parametrize("budget", [1200, 4096])
def test_nine_in_ten_tokens_are_real_on_captions(budget: int) -> None:
    lengths_N2 = captions(29_000)
    order = plan(lengths_N2, budget=budget)
    count, real, padded = order.measure(0)
    assert real / padded >= 0.9
    batches = epoch_of(order)
    assert (count, real) == (len(batches), int((lengths_N2 + 1).sum()))
    assert padded == sum(len(batch) * int((lengths_N2[batch] + 1).max(axis=0).sum()) for batch in batches)


def test_a_long_epoch_is_measured_by_some_of_its_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(windows: int) -> Measure:
        monkeypatch.setattr("mt.data.plan.MEASURED", windows)
        return plan(captions(20_000), budget=400, window=100).measure()

    exact = measured(200)
    assert exact.real == int((captions(20_000) + 1).sum())
    assert measured(1000) == exact != measured(20) == pytest.approx(exact, rel=0.02)


def test_cut_fills_batches_up_to_the_budget() -> None:
    sizes_N2 = np.array([[2, 2], [2, 2], [2, 2], [3, 2], [2, 9], [9, 9]])
    batches = [batch.tolist() for batch in cut(np.array([5, 4, 3, 2, 1, 0]), sizes_N2, budget=6)]
    assert batches == [[5, 4, 3], [2], [1], [0]]  # three rows of 2 fill it; a 3 would make it 12; two are longer than the budget


@settings(max_examples=60)
@given(lengths_N2=lengths_of, budget=st.integers(1, 200))
def test_cut_ends_a_batch_only_where_the_next_pair_would_be_too_much(lengths_N2: Lengths, budget: int) -> None:
    places = np.arange(len(lengths_N2))
    batches = [batch.tolist() for batch in cut(places, lengths_N2, budget=budget)]
    assert [place for batch in batches for place in batch] == places.tolist()
    for batch, after in zip(batches, batches[1:], strict=False):
        assert lengths_N2[[*batch, after[0]]].max() * (len(batch) + 1) > budget


# ── weights ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("weight", "expected"), [(1.0, {1}), (2.0, {2}), (2.5, {2, 3}), (0.25, {0, 1})], ids=["once", "twice", "two and a half", "a quarter"]
)
def test_weight_is_the_number_of_passes(weight: float, expected: set[int]) -> None:
    order = uniform(Span(0, 40, weight), Span(40, 20), window=32)
    seen = Counter(draw % 60 for draw in draws_of(order))
    times = [seen[i] for i in range(40)]
    assert set(times) == expected
    assert sum(times) == round(40 * weight)
    assert [seen[i] for i in range(40, 60)] == [1] * 20  # the other corpus is not affected


@settings(max_examples=40)
@given(parts=st.lists(st.tuples(st.integers(1, 20), weights), min_size=1, max_size=5), seed=seeds, epoch=st.integers(0, 2))
def test_no_draw_comes_twice_and_passes_are_whole_but_for_the_last(parts: list[tuple[int, float]], seed: int, epoch: int) -> None:
    starts = np.cumsum([0, *(count for count, _ in parts)]).tolist()
    spans = [Span(start, count, weight) for start, (count, weight) in zip(starts, parts, strict=False)]
    draws = draws_of(uniform(*spans, seed=seed, window=16), epoch)
    assert len(draws) == len(set(draws))
    seen = Counter(draw % starts[-1] for draw in draws)
    for span in spans:
        times = [seen[i] for i in range(span.start, span.start + span.count)]
        whole, part = divmod(span.weight, 1)
        assert sum(times) == whole * span.count + (max(1, round(part * span.count)) if part else 0)
        assert set(times) <= {whole, whole + 1}


def test_the_draws_of_several_passes_differ() -> None:
    """Noise is a function of the draw: a pair that comes three times in an epoch has it three times another."""
    draws = draws_of(uniform(Span(0, 5, 3.0)))
    assert sorted(draws) == list(range(15))


def test_each_epoch_takes_another_part_of_a_corpus_that_is_not_used_whole() -> None:
    parts = [frozenset(draws_of(uniform(Span(0, 100, 0.25)), epoch)) for epoch in range(3)]
    assert {len(part) for part in parts} == {25}
    assert len(set(parts)) == 3


def test_a_share_smaller_than_a_pair_is_one_pair() -> None:
    """With none at all an epoch might be empty, and training would look for a batch for ever."""
    assert len(draws_of(uniform(Span(0, 4, 0.1)))) == 1


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0, 100.0])
def test_temperature_makes_small_corpora_more_frequent(temperature: float) -> None:
    counts = [1000, 100, 10]
    spans = tempered([Span(0, 1000), Span(1000, 100), Span(1100, 10)], temperature)
    passes = [span.count * span.weight for span in spans]
    assert sum(passes) == pytest.approx(sum(counts))
    for one, other, small, large in zip(passes, passes[1:], counts[1:], counts, strict=False):
        assert one / other == pytest.approx((large / small) ** (1 / temperature))
    if temperature == 1.0:
        assert [span.weight for span in spans] == pytest.approx([1, 1, 1])


# ── positions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cursors_go_through_the_batches_of_all_epochs() -> None:
    order = plan(captions(100), budget=120, window=16)
    found = list(islice(order.cursors(Cursor()), 2 * sum(len(order.batches(0, w)) for w in range(order.windows))))
    assert found[0][0] == Cursor()
    assert [after for _, after in found[:-1]] == [cursor for cursor, _ in found[1:]]
    first = [cursor for cursor, _ in found if cursor.epoch == 0]
    assert first == [Cursor(0, w, b) for w in range(order.windows) for b in range(len(order.batches(0, w)))]
    assert found[-1][0].epoch == 1


@settings(max_examples=60)
@given(
    lengths_N2=lengths_of,
    weight=weights,
    ranks=st.integers(1, 3),
    accumulate=st.integers(1, 4),
    window=st.integers(1, 50),
    epoch=st.integers(0, 2),
)
def test_ranks_share_an_epoch(lengths_N2: Lengths, weight: float, ranks: int, accumulate: int, window: int, epoch: int) -> None:
    """Every draw goes to one rank, once; all make the same number of updates, with the same number of batches in each."""
    order = plan(lengths_N2, [Span(0, len(lengths_N2), weight)], budget=60, window=window)
    start = Cursor(epoch)

    def of_epoch(rank: int) -> list[list[Cursor | None]]:
        found, where = [], start
        for deal in deals(order, start, accumulate=accumulate, rank=rank, ranks=ranks):
            if where.epoch > epoch:
                return found
            found.append(deal.batches)
            where = deal.after
        raise AssertionError

    every = [of_epoch(rank) for rank in range(ranks)]
    assert len({tuple(map(len, updates)) for updates in every}) == 1
    seen = [cursor for updates in every for batches in updates for cursor in batches if cursor]
    assert sorted(draw for c in seen for draw in order.batches(epoch, c.window)[c.batch].tolist()) == sorted(draws_of(order, epoch))
    for updates in every:
        assert all(batch is not None for batches in updates[:-1] for batch in batches)  # only the end of an epoch has empty ones
        assert len([batch for batch in updates[-1] if batch is None]) <= 1
        assert all(0 < len(batches) <= accumulate for batches in updates)


@settings(max_examples=40)
@given(lengths_N2=lengths_of, ranks=st.integers(1, 3), accumulate=st.integers(1, 4), window=st.integers(1, 50), taken=st.integers(0, 12))
def test_from_any_position_the_rest_follows(lengths_N2: Lengths, ranks: int, accumulate: int, window: int, taken: int) -> None:
    def updates(start: Cursor, count: int) -> list[tuple[list[Cursor | None], Cursor]]:
        order = plan(lengths_N2, budget=60, window=window)  # knows nothing of what came before
        return [tuple(deal) for deal in islice(deals(order, start, accumulate=accumulate, rank=ranks - 1, ranks=ranks), count)]

    every = updates(Cursor(), 13)
    start = every[taken - 1][1] if taken else Cursor()
    assert updates(start, 13 - taken) == every[taken:]


def test_an_update_crosses_windows_but_not_epochs() -> None:
    order = uniform(Span(0, 40), window=10)  # 10 pairs a batch of 100
    made = list(takewhile(lambda deal: deal.after.epoch == 0, deals(order, Cursor(), accumulate=3)))
    assert [[c.window for c in deal.batches if c] for deal in made] == [[0, 1, 2]]
    assert [deal.after for deal in made] == [Cursor(0, 3)]
    last = next(deals(order, Cursor(0, 3), accumulate=3))
    assert (last.batches, last.after) == ([Cursor(0, 3)], Cursor(1))
