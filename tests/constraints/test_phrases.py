"""Forced beginnings and banned sequences, over random tables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.constraints.orders import Orders
from tests.oracle.brute_force import brute_force
from tests.oracle.constrained import SEARCHES, Search, best_within, by_beam, by_greedy, occurs, same
from tests.oracle.table_model import WORDS, random_table

SEEDS = st.integers(0, 10**6)
EVERY_SEARCH = pytest.mark.parametrize("search", SEARCHES)
WORD = st.integers(WORDS, WORDS + 2)
SEQUENCES = st.lists(st.lists(WORD, min_size=1, max_size=3), min_size=1, max_size=4)
PREFIXES = st.lists(WORD, max_size=3)


@EVERY_SEARCH
@settings(max_examples=40)
@given(seed=SEEDS, banned=SEQUENCES)
def test_what_is_banned_never_occurs(search: Search, seed: int, banned: list[list[int]]) -> None:
    (found,) = search(random_table(seed, words=3), limits=[7], orders=Orders(banned=banned))
    assert found
    assert not any(occurs(tuple(phrase), h.ids) for h in found for phrase in banned)


@EVERY_SEARCH
@settings(max_examples=40)
@given(seed=SEEDS, prefix=PREFIXES, banned=SEQUENCES)
def test_outputs_begin_with_the_prefix_whatever_is_banned_or_repeated_in_it(
    search: Search, seed: int, prefix: list[int], banned: list[list[int]]
) -> None:
    table = random_table(seed, words=3)
    first, second = search(
        table, table, limits=[7, 7], orders=Orders(prefixes=[prefix, []], banned=banned, no_repeat_ngram=1, repetition_penalty=2.0)
    )
    assert first
    assert second
    assert all(h.ids[: len(prefix)] == prefix for h in first)
    assert not any(occurs(tuple(phrase), h.ids) for h in second for phrase in banned)


@given(seed=SEEDS, banned=SEQUENCES)
def test_full_width_is_brute_force_over_what_is_not_banned(seed: int, banned: list[list[int]]) -> None:
    table = random_table(seed, words=3)
    allowed = best_within(table, limit=4, allowed=lambda ids: not any(occurs(tuple(phrase), ids) for phrase in banned))
    (found,) = by_beam(table, limits=[4], orders=Orders(banned=banned), width=len(brute_force(table, limit=4, length_penalty=1.0)))
    assert same(found, allowed)


@given(seed=SEEDS, prefix=PREFIXES)
def test_full_width_is_brute_force_over_what_begins_so_with_the_models_own_log_probability(seed: int, prefix: list[int]) -> None:
    table = random_table(seed, words=3)
    allowed = best_within(table, limit=4, allowed=lambda ids: ids[: len(prefix)] == prefix)
    (found,) = by_beam(table, limits=[4], orders=Orders(prefixes=[prefix]), width=len(brute_force(table, limit=4, length_penalty=1.0)))
    assert same(found, allowed)


@given(seeds=st.lists(SEEDS, min_size=1, max_size=3), prefix=PREFIXES, banned=SEQUENCES)
def test_width_one_is_greedy(seeds: list[int], prefix: list[int], banned: list[list[int]]) -> None:
    tables = [random_table(seed, words=3) for seed in seeds]
    orders = Orders(banned=banned, prefixes=[prefix for _ in seeds])
    limits = [6 for _ in seeds]
    assert by_beam(*tables, limits=limits, orders=orders, width=1) == by_greedy(*tables, limits=limits, orders=orders)


@EVERY_SEARCH
@settings(max_examples=40)
@given(seeds=st.lists(SEEDS, min_size=2, max_size=4), banned=SEQUENCES, data=st.data())
def test_batch_mates_do_not_matter(search: Search, seeds: list[int], banned: list[list[int]], data: st.DataObject) -> None:
    tables = [random_table(seed, words=3) for seed in seeds]
    prefixes = [data.draw(PREFIXES) for _ in seeds]
    limits = [data.draw(st.integers(4, 7)) for _ in seeds]
    alone = [
        search(table, limits=[limit], orders=Orders(banned=banned, prefixes=[prefix]))[0]
        for table, limit, prefix in zip(tables, limits, prefixes, strict=True)
    ]
    assert search(*tables, limits=limits, orders=Orders(banned=banned, prefixes=prefixes)) == alone
