"""Minimum length, n-grams that come once, and the repetition penalty, over random tables."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.constraints.constrain import Discourage
from mt.constraints.orders import Orders
from tests.oracle.brute_force import brute_force
from tests.oracle.constrained import SEARCHES, Search, best_within, by_beam, by_greedy, prepared, same
from tests.oracle.table_model import BOS, TableStep, random_table, written_table

SEEDS = st.integers(0, 10**6)
ORDERS = st.builds(
    Orders, min_length=st.integers(0, 4), no_repeat_ngram=st.integers(0, 3), repetition_penalty=st.sampled_from([1.0, 1.3, 4.0])
)
EVERY_SEARCH = pytest.mark.parametrize("search", SEARCHES)


def repeats(ids: list[int], n: int) -> bool:
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return len(set(grams)) < len(grams)


@EVERY_SEARCH
@settings(max_examples=40)
@given(seed=SEEDS, least=st.integers(1, 9), limit=st.integers(1, 8))
def test_no_output_is_shorter_than_the_least_length_unless_its_limit_is(search: Search, seed: int, least: int, limit: int) -> None:
    (found,) = search(random_table(seed, words=3), limits=[limit], orders=Orders(min_length=least))
    assert found
    assert all(len(h.ids) >= min(least, limit - 1) for h in found)


@EVERY_SEARCH
@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(1, 4), words=st.integers(1, 4))
def test_no_ngram_comes_twice(search: Search, seed: int, n: int, words: int) -> None:
    (found,) = search(random_table(seed, words=words), limits=[9], orders=Orders(no_repeat_ngram=n))
    assert found
    assert not any(repeats(h.ids, n) for h in found)


@given(seed=SEEDS, least=st.integers(0, 4), n=st.integers(0, 3), size=st.sampled_from([(1, 5), (2, 4), (3, 3)]))
def test_full_width_is_brute_force_over_what_is_allowed(seed: int, least: int, n: int, size: tuple[int, int]) -> None:
    words, limit = size
    least = min(least, limit - 1)
    if n:
        least = min(least, words**n)  # longer ones without a repeated n-gram may not exist
    table = random_table(seed, words=words)
    allowed = best_within(table, limit=limit, allowed=lambda ids: len(ids) >= least and not (n and repeats(ids, n)))
    width = len(brute_force(table, limit=limit, length_penalty=1.0))
    (found,) = by_beam(table, limits=[limit], orders=Orders(min_length=least, no_repeat_ngram=n), width=width)
    kept = [h for h in found if len(h.ids) >= least]  # where all words are used up, a row ends early
    assert same(kept, allowed)


@given(seeds=st.lists(SEEDS, min_size=1, max_size=3), words=st.integers(1, 5), orders=ORDERS)
def test_width_one_is_greedy(seeds: list[int], words: int, orders: Orders) -> None:
    tables = [random_table(seed, words=words) for seed in seeds]
    limits = [6 + i for i in range(len(seeds))]
    assert by_beam(*tables, limits=limits, orders=orders, width=1) == by_greedy(*tables, limits=limits, orders=orders)


@EVERY_SEARCH
@settings(max_examples=40)
@given(seeds=st.lists(SEEDS, min_size=2, max_size=5), orders=ORDERS, data=st.data())
def test_batch_mates_do_not_matter(search: Search, seeds: list[int], orders: Orders, data: st.DataObject) -> None:
    tables = [random_table(seed, words=3) for seed in seeds]
    limits = [data.draw(st.integers(1, 7)) for _ in seeds]
    alone = [search(table, limits=[limit], orders=orders)[0] for table, limit in zip(tables, limits, strict=True)]
    assert search(*tables, limits=limits, orders=orders) == alone


def test_no_orders_are_no_wrappers() -> None:
    step, state, _ = prepared([random_table(0, words=2)], [5], Orders())
    assert isinstance(step, TableStep)
    assert state == step.start()


def test_a_penalty_falls_once_on_each_id_that_was_generated_and_on_nothing_certain() -> None:
    rows = {"": {"a": 1.0}, "a": {"a": 0.5, "b": 0.5}, "a a": {"a": 0.25, "b": 0.75}, "a a b": {"b": 1.0}}
    table = TableStep(written_table("a b", rows))
    step = Discourage(table, 3.0)
    state = step.start(table.start(), 1)
    seen = []
    for last in (BOS, 4, 4, 5):
        logp_RV, state = step(torch.tensor([last]), state)
        seen.append([round(p, 9) for p in logp_RV[0, 4:].exp().tolist()])
    assert seen == [[1.0, 0.0], [0.125, 0.5], [0.015625, 0.75], [0.0, 1.0]]


@settings(max_examples=40)
@given(seed=SEEDS)
def test_a_penalty_without_end_forbids_as_long_as_there_is_something_else(seed: int) -> None:
    table = random_table(seed, words=3)
    (mild,) = by_greedy(table, limits=[4], orders=Orders(repetition_penalty=1e6))[0]
    (hard,) = by_greedy(table, limits=[4], orders=Orders(no_repeat_ngram=1))[0]
    assert mild.ids == hard.ids
