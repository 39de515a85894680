"""A beam with places for phrases that have to be said: its definition read aloud, and the best of all where there is a place for all."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.constraints.orders import Orders, Phrase
from tests.oracle.banked import plain_banked_beam_search
from tests.oracle.brute_force import brute_force
from tests.oracle.constrained import best_within, by_beam, by_greedy, occurs, same
from tests.oracle.table_model import WORDS, random_table, spell, written_table

SEEDS = st.integers(0, 10**6)
WORD = st.integers(WORDS, WORDS + 3)
SAID = st.lists(st.lists(WORD, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3)


def one_way(said: list[tuple[int, ...]]) -> list[Phrase]:
    return [(way,) for way in said]


@settings(max_examples=200)
@given(seed=SEEDS, said=SAID, width=st.integers(2, 7), extra=st.integers(0, 4))
def test_any_width_is_the_definition_read_aloud(seed: int, said: list[tuple[int, ...]], width: int, extra: int) -> None:
    limit = sum(map(len, said)) + extra + 1
    table = random_table(seed, words=5)
    (found,) = by_beam(table, limits=[limit], orders=Orders(required=[one_way(said)]), width=width)
    expected = plain_banked_beam_search(table, limit=limit, width=width, phrases=said)
    assert same(found, expected[:width])
    assert [h.truncated for h in found] == [o.truncated for o in expected[:width]]


@settings(max_examples=60)
@given(seed=SEEDS, size=st.sampled_from([(2, 6), (3, 5), (4, 4)]), cuts=st.sets(st.integers(1, 4)), data=st.data())
def test_full_width_is_brute_force_over_the_outputs_that_say_all(
    seed: int, size: tuple[int, int], cuts: set[int], data: st.DataObject
) -> None:
    words, limit = size
    ids = data.draw(st.permutations(range(WORDS, WORDS + words)))[: limit - 1]
    edges = [0, *sorted(cut for cut in cuts if cut < len(ids)), len(ids)]
    said = [tuple(ids[a:b]) for a, b in zip(edges, edges[1:], strict=False)][: data.draw(st.integers(1, 3))]
    table = random_table(seed, words=words)
    expected = best_within(table, limit=limit, allowed=lambda ids: all(occurs(way, ids) for way in said))
    width = len(brute_force(table, limit=limit, length_penalty=1.0))
    (found,) = by_beam(table, limits=[limit], orders=Orders(required=[one_way(said)]), width=width)
    assert same(found, expected)


@settings(max_examples=60)
@given(seeds=st.lists(SEEDS, min_size=2, max_size=4), width=st.integers(1, 5), data=st.data())
def test_sentences_without_phrases_are_searched_as_if_nobody_had_any(seeds: list[int], width: int, data: st.DataObject) -> None:
    tables = [random_table(seed, words=4) for seed in seeds]
    limits = [data.draw(st.integers(1, 8)) for _ in seeds]
    required: list[list[Phrase]] = [one_way(data.draw(SAID)) if data.draw(st.booleans()) else [] for _ in seeds]
    mixed = by_beam(*tables, limits=limits, orders=Orders(required=required), width=width)
    plain = by_beam(*tables, limits=limits, orders=Orders(), width=width)
    assert all(own == other for own, other, phrases in zip(mixed, plain, required, strict=True) if not phrases)


def test_a_phrase_is_said_where_it_belongs_though_it_is_improbable_there() -> None:
    """One row begins it too late; a beam of two has a place for the row that begins it in time."""
    rows = {
        "": {"a": 1.0},
        "a": {"b": 0.995, "c": 0.005},
        "a b": {"d": 0.5, "b": 0.5},
        "a c": {"d": 0.9, "b": 0.1},
        "a b d": {"</s>": 0.999, "c": 0.001},
        "a b b": {"</s>": 0.999, "c": 0.001},
        "a c d": {"</s>": 1.0},
        "a c b": {"</s>": 1.0},
        "a b d c": {"</s>": 0.1, "a": 0.9},
        "a b b c": {"</s>": 0.1, "a": 0.9},
        "a b d c a": {"</s>": 1.0},
        "a b b c a": {"</s>": 1.0},
    }
    table, orders = written_table("a b c d", rows), Orders(required=[[((6,),)]])
    ((greedy,),), (best, *_) = by_greedy(table, limits=[9], orders=orders), by_beam(table, limits=[9], orders=orders, width=2)[0]
    assert spell(greedy.ids, "a b c d") == "a b b c a"
    assert spell(best.ids, "a b c d") == "a c d"
    assert best.log_prob == pytest.approx(math.log(0.005 * 0.9))
