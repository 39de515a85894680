"""Flags say what the filters of training pairs would say, and each has its own line that shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean.filters import TextFilters
from mt.clean.flags import LEAST_CONFIDENCE, MAX_RATIO, MAX_REPEATS, Flag, flags_of
from mt.config.cleaning import FilterConfig
from mt.formats.pairs import Pair

LOOP = "und so und so und so und so und so und so und so weiter"


def flags(source: str, text: str, *, confidence: float = 0.9, **known: bool) -> list[Flag]:
    nothing = dict.fromkeys(("split", "truncated", "unmet", "lost", "unknown"), False)
    return flags_of(source, text, confidence=confidence, **{**nothing, **known})


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("A dog runs.", "Ein Hund läuft.", []),
        ("A dog runs.", "", ["empty"]),
        ("A dog runs.", " \u00a0", ["empty"]),
        ("A dog runs. ", "A dog runs.", ["copied"]),
        ("and so on and on and on, it goes", LOOP, ["loop"]),
        ("A dog.", "Ein Hund, der seit vielen Jahren hier wohnt.", ["length"]),
        ("No", LOOP, ["loop", "length"]),
    ],
)
def test_what_texts_show(source: str, text: str, expected: list[str]) -> None:
    assert flags(source, text) == expected


def test_what_the_search_knows() -> None:
    assert flags("a", "b", split=True, truncated=True, unknown=True, confidence=0.1) == ["split", "truncated", "unknown", "low_confidence"]
    assert flags("a", "b", confidence=LEAST_CONFIDENCE) == []


WORDS = st.lists(st.sampled_from(["a", "be", "sea", "deep", ".", "\u00a0"]), min_size=1, max_size=20).map(" ".join)


@given(source=WORDS, text=WORDS)
def test_a_pair_is_left_out_of_training_where_it_has_a_flag(source: str, text: str) -> None:
    """But for loops on the side that is given, which are no fault of the translation."""
    reason = TextFilters(FilterConfig(copies=True, max_ratio=MAX_RATIO, max_repeats=MAX_REPEATS), None)
    if source.strip() and not TextFilters(FilterConfig(max_repeats=MAX_REPEATS), None)(Pair(source, "abc", "")):
        assert bool(reason(Pair(source, text, "x:1"))) == bool(flags(source, text))
