"""Phrases that have to be said, over random tables: they are, wherever there is room; what does not fit is given up, and nothing hangs."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.constraints.orders import Orders, Phrase
from tests.oracle.constrained import SEARCHES, Search, by_beam, by_greedy, occurs
from tests.oracle.table_model import WORDS, random_table, spell, written_table

SEEDS = st.integers(0, 10**6)
EVERY_SEARCH = pytest.mark.parametrize("search", SEARCHES)
WORD = st.integers(WORDS, WORDS + 3)
WAY = st.lists(WORD, min_size=1, max_size=3).map(tuple)
PHRASES = st.lists(st.lists(WAY, min_size=1, max_size=2, unique=True).map(tuple), max_size=3, unique=True)


def says(phrase: Phrase, ids: list[int]) -> bool:
    return any(occurs(way, ids) for way in phrase)


def length(phrases: list[Phrase]) -> int:
    return sum(len(phrase[0]) for phrase in phrases)


@EVERY_SEARCH
@settings(max_examples=60)
@given(seed=SEEDS, phrases=PHRASES, extra=st.integers(0, 4))
@example(seed=0, phrases=[((5, 5),), ((6,), (5, 4, 4))], extra=0)  # a longer way of one phrase is the beginning of another
def test_every_output_says_all_that_there_is_room_for(search: Search, seed: int, phrases: list[Phrase], extra: int) -> None:
    limit = length(phrases) + extra + 1
    (found,) = search(random_table(seed, words=4), limits=[limit], orders=Orders(required=[phrases]))
    assert found
    assert all(says(phrase, h.ids) for h in found for phrase in phrases)
    assert all(math.isfinite(h.log_prob) and len(h.ids) < limit for h in found)
    assert len({tuple(h.ids) for h in found}) == len(found)


@EVERY_SEARCH
@settings(max_examples=60)
@given(seed=SEEDS, phrases=PHRASES, limit=st.integers(1, 6))
def test_what_there_is_no_room_for_is_given_up_from_the_last_on(search: Search, seed: int, phrases: list[Phrase], limit: int) -> None:
    (found,) = search(random_table(seed, words=4), limits=[limit], orders=Orders(required=[phrases]))
    fitting = [phrase for n, phrase in enumerate(phrases, start=1) if length(phrases[:n]) < limit]
    assert found
    assert all(says(phrase, h.ids) for h in found for phrase in fitting)
    assert all(math.isfinite(h.log_prob) and len(h.ids) < limit for h in found)


@EVERY_SEARCH
@settings(max_examples=60)
@given(seed=SEEDS, phrases=PHRASES, prefix=st.lists(WORD, max_size=2), banned=st.lists(WAY, max_size=2), n=st.integers(0, 2))
def test_among_other_orders_all_rows_have_an_end_and_bans_hold(
    search: Search, seed: int, phrases: list[Phrase], prefix: list[int], banned: list[tuple[int, ...]], n: int
) -> None:
    orders = Orders(min_length=3, no_repeat_ngram=n, banned=banned, prefixes=[prefix], required=[phrases])
    (found,) = search(random_table(seed, words=6), limits=[9], orders=orders)
    assert found
    for h in found:
        assert h.ids[: len(prefix)] == prefix
        assert not any(occurs(phrase, h.ids) and not occurs(phrase, prefix) for phrase in banned)


@given(seeds=st.lists(SEEDS, min_size=1, max_size=3), phrases=PHRASES)
def test_width_one_is_greedy(seeds: list[int], phrases: list[Phrase]) -> None:
    tables = [random_table(seed, words=4) for seed in seeds]
    orders = Orders(required=[phrases for _ in seeds])
    limits = [8 for _ in seeds]
    assert by_beam(*tables, limits=limits, orders=orders, width=1) == by_greedy(*tables, limits=limits, orders=orders)


@EVERY_SEARCH
@settings(max_examples=40)
@given(seeds=st.lists(SEEDS, min_size=2, max_size=4), data=st.data())
def test_batch_mates_do_not_matter(search: Search, seeds: list[int], data: st.DataObject) -> None:
    tables = [random_table(seed, words=4) for seed in seeds]
    required = [data.draw(PHRASES) for _ in seeds]
    limits = [data.draw(st.integers(1, 8)) for _ in seeds]
    alone = [
        search(table, limits=[limit], orders=Orders(required=[own]))[0] for table, limit, own in zip(tables, limits, required, strict=True)
    ]
    assert search(*tables, limits=limits, orders=Orders(required=required)) == alone


def test_what_the_model_says_by_itself_is_not_said_again_and_the_rest_comes_where_it_would_end() -> None:
    rows = {
        "": {"a": 0.9, "b": 0.05, "c": 0.05},
        "a": {"b": 0.8, "c": 0.1, "</s>": 0.1},
        "a b": {"</s>": 0.7, "c": 0.2, "b": 0.1},
        "a b c": {"</s>": 0.5, "a": 0.3, "b": 0.2},
        "a b c b": {"</s>": 0.6, "a": 0.4},
    }
    orders = Orders(required=[[((4, 5),), ((6, 5),)]])
    (found,) = by_greedy(written_table("a b c", rows), limits=[20], orders=orders)
    assert spell(found[0].ids, "a b c") == "a b c b"
    assert found[0].log_prob == pytest.approx(math.log(0.9 * 0.8 * 0.2 * 0.2 * 0.6))


def test_one_row_begins_what_is_missing_where_it_is_nearly_as_good_and_says_it_to_its_end() -> None:
    rows = {
        "": {"a": 0.6, "b": 0.3, "c": 0.1},
        "b": {"a": 0.999, "c": 0.001},
        "b c": {"</s>": 1.0},
        "a": {"</s>": 0.97, "b": 0.02, "c": 0.01},
    }
    (found,) = by_greedy(written_table("a b c", rows), limits=[20], orders=Orders(required=[[((5, 6),)]]))
    assert spell(found[0].ids, "a b c") == "b c"


@EVERY_SEARCH
@settings(max_examples=60)
@given(seed=SEEDS, phrase=WORD, times=st.integers(1, 4), other=WORD)
def test_what_is_given_several_times_is_said_as_often(search: Search, seed: int, phrase: int, times: int, other: int) -> None:
    required: list[Phrase] = [*[((phrase,),)] * times, ((other,),)]
    (found,) = search(random_table(seed, words=4), limits=[times + 4], orders=Orders(required=[required]))
    assert found
    for h in found:
        assert h.ids.count(phrase) >= times + (phrase == other)
        assert h.ids.count(other) >= 1
