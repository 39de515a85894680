"""Shingles and the index of held-out sets against the definition, spelled out in plain Python."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.doctor.leakage import LEVELS, HeldOut, Leaks
from mt.doctor.shingles import shingles
from mt.formats.pairs import Pair
from tests.corpora import pairs

WORDS = st.sampled_from(
    ["a", "man", "Man", "MAN", "in", "blue", "shirt", "。", "猫", "が", "ไท", ",", "--", "12", "１２", "is", "on", "the"]
)
LINES = st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=1, max_size=8)


def units(line: str) -> list[str]:
    """Words in small letters, characters one by one in scripts without spaces."""
    return re.findall(r"[一-鿿ぁ-ヿ\u0e01-\u0e5b]|[^\W_]+", line.lower().replace("１２", "12"))


def bag(line: str) -> Counter[object]:
    """Units and pairs of them."""
    words = units(line)
    return Counter([*words, *zip(words, words[1:], strict=False)])


def level(one: str, other: str) -> int:
    """At which level two texts are the same, by the definition."""
    if one.strip() and one.strip() == other.strip():
        return LEVELS.index("exact")
    if units(one) and units(one) == units(other):
        return LEVELS.index("normalised")
    shared, every = (bag(one) & bag(other)).total(), (bag(one) | bag(other)).total()
    return LEVELS.index("near") if shared and 5 * shared >= 4 * every else -1


@given(lines=LINES)
def test_shingles_are_units_and_pairs_of_them(lines: list[str]) -> None:
    found = shingles(lines)
    bags = [bag(line) for line in lines]
    assert found.sizes_N.tolist() == [one.total() for one in bags]
    names: dict[int, object] = {}
    for line, hashes in zip(lines, found.as_sets().by_row(), strict=True):
        assert len(set(hashes)) == bag(line).total()
    for row, hash_ in zip(found.rows_G.tolist(), found.hashes_G.tolist(), strict=True):
        names.setdefault(hash_, set()).update(bags[row])  # type: ignore[union-attr]
    assert len(names) == len(set().union(*bags))


@given(lines=LINES)
def test_normalised_hashes_are_equal_where_units_are(lines: list[str]) -> None:
    hashes = shingles(lines).text_N.tolist()
    for i, one in enumerate(lines):
        assert (hashes[i] == 0) == (not units(one))
        for j, other in enumerate(lines):
            assert (hashes[i] == hashes[j]) == (units(one) == units(other))


@given(held_out=LINES, others=LINES)
def test_levels_are_those_of_the_definition(held_out: list[str], others: list[str]) -> None:
    index = HeldOut({"x": [Pair(line, "", "") for line in held_out]})
    found = dict(index.same(others, [""] * len(others)))
    for row, other in enumerate(others):
        for item, line in enumerate(held_out):
            assert found.get(row, {}).get(item, (-1, -1, -1))[0] == level(line, other)


def test_near_texts_in_a_larger_set_are_found_without_exception() -> None:
    held_out = [src for src, _ in pairs(80, seed=1)]
    rng = np.random.default_rng(1)
    others = []
    for line in held_out:
        words = line.split()
        words[int(rng.integers(len(words)))] = "other"
        others.append(" ".join(words))
    found = dict(HeldOut({"x": [Pair(line, "", "") for line in held_out]}).same(others, [""] * 80))
    expected = {
        row: {item for item, line in enumerate(held_out) if level(line, other) >= 0}
        for row, other in enumerate(others)
        if any(level(line, other) >= 0 for line in held_out)
    }
    assert {row: set(items) for row, items in found.items()} == expected
    assert expected, "the test has something to find"


def test_both_sides_must_be_met_in_one_pair() -> None:
    index = HeldOut({"x": [Pair("one two three", "eins zwei drei", "x:1")]})
    leaks = Leaks(index)
    train = [Pair("one two three", "etwas anderes", "t:1"), Pair("something else", "eins zwei drei", "t:2")]
    leaks.look([pair.src for pair in train], [pair.tgt for pair in train], train.__getitem__)
    assert leaks.counts("x")["exact"] == {"source": 1, "target": 1, "both": 0}
    both = [Pair("One two three!", "eins zwei drei", "t:3")]
    assert leaks.look([both[0].src], [both[0].tgt], both.__getitem__) == [0]
    assert leaks.counts("x")["normalised"]["both"] == 1
    assert leaks.counts("x")["exact"]["both"] == 0
    assert leaks.met[0].origin == "t:3"


def test_a_set_is_not_compared_with_itself() -> None:
    sets = {"a": [Pair("one two", "eins zwei", "a:1")] * 2, "b": [Pair("one two", "anders", "b:1")]}
    index = HeldOut(sets)
    leaks = Leaks(index)
    for name, own in sets.items():
        leaks.look([pair.src for pair in own], [pair.tgt for pair in own], own.__getitem__, own=index.sets[name])
    assert leaks.counts("a")["exact"] == {"source": 2, "target": 0, "both": 0}
    assert leaks.counts("b")["exact"] == {"source": 1, "target": 0, "both": 0}


@pytest.mark.parametrize("sets", [{}, {"x": []}])
def test_nothing_held_out(sets: dict[str, list[Pair]]) -> None:
    assert list(HeldOut(sets).same(["a"], ["A"])) == []
