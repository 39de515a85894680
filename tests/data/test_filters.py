from __future__ import annotations

from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.data.filters import Tally, drop_reason, length_reason
from mt.data.pairs import Pair
from mt.data.tally import EXAMPLES
from mt.errors import DataError

BLANK = st.text(" \t\u00a0\u3000\u2028\x85", max_size=4)
IDS = st.lists(st.just(7), max_size=9)


@given(blank=BLANK, text=st.text().filter(str.strip))
def test_a_blank_side_is_empty_whichever_it_is(blank: str, text: str) -> None:
    assert drop_reason(Pair(blank, text, "")) == drop_reason(Pair(text, blank, "")) == drop_reason(Pair(blank, blank, "")) == "empty side"
    assert drop_reason(Pair(text, text, "")) is None


@given(src=IDS, tgt=IDS, limit=st.integers(1, 9))
def test_length_depends_on_the_longer_side_only(src: list[int], tgt: list[int], limit: int) -> None:
    reason = length_reason(src, tgt, max_pieces=limit)
    assert reason == length_reason(tgt, src, max_pieces=limit)
    if min(len(src), len(tgt)) == 0:
        assert reason == "empty side"
    elif max(len(src), len(tgt)) <= limit:
        assert reason is None
    else:
        assert reason == ("longer than 1 piece" if limit == 1 else f"longer than {limit} pieces")


@given(texts=st.lists(st.tuples(st.sampled_from(["", "a"]), st.sampled_from(["", "A"]))))
def test_every_pair_is_counted_once_and_order_kept(texts: list[tuple[str, str]]) -> None:
    pairs = [Pair(src, tgt, f"x:{number}") for number, (src, tgt) in enumerate(texts, 1)]
    tally = Tally()
    kept = list(tally.keep(pairs))
    assert kept == [pair for pair in pairs if pair.src and pair.tgt]
    assert (tally.kept, tally.total) == (len(kept), len(pairs))
    dropped = [pair.origin for pair in pairs if pair not in kept]
    assert tally.dropped["empty side"] == len(dropped)
    assert [example.origin for example in tally.examples.get("empty side", [])] == dropped[:EXAMPLES]


def test_line_tells_counts_and_reasons_the_commonest_first() -> None:
    tally = Tally()
    assert tally.line("x") == "x: kept 0 of 0 pairs"
    tally.add(None, "x:1")
    assert tally.line("x") == "x: kept 1 of 1 pair"
    for reason, origin in zip(["empty side", "longer than 9 pieces", "longer than 9 pieces"], repeat("x:2")):  # noqa: B905 (endless)
        tally.add(reason, origin)
    assert tally.line("x") == "x: kept 1 of 4 pairs (2 longer than 9 pieces, 1 empty side)"
    tally.require_pairs("x")


def test_nothing_kept_is_an_error_with_the_cure() -> None:
    tally = Tally()
    with pytest.raises(DataError, match="^x: kept 0 of 0 pairs; "):
        tally.require_pairs("x")
    tally.add("longer than 9 pieces", "x:1")
    with pytest.raises(
        DataError, match=r"^x: kept 0 of 1 pair \(1 longer than 9 pieces\); raise data.max_pieces, .* lines\. First dropped: x:1$"
    ):
        tally.require_pairs("x")
