from __future__ import annotations

import json
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean.filters import Tally, drop_reason, table, table_json
from mt.clean.tally import EXAMPLES, READABLE, WIDTH
from mt.errors import DataError
from mt.formats.pairs import Pair

REASONS = st.lists(st.sampled_from([None, "empty side", "markup", "longer than 9 pieces"]), max_size=20)
NAMES = st.text(min_size=1, max_size=120).map(lambda name: " ".join(name.split()) or "x")


def tally_of(reasons: list[str | None], name: str = "x") -> Tally:
    tally = Tally()
    for number, reason in enumerate(reasons, 1):
        tally.add(reason, f"{name}:{number}", f"source {number}", f"target {number}")
    return tally


@given(texts=st.lists(st.tuples(st.sampled_from(["", "a"]), st.sampled_from(["", "A"]))))
def test_every_pair_is_counted_once_and_order_kept(texts: list[tuple[str, str]]) -> None:
    pairs = [Pair(src, tgt, f"x:{number}") for number, (src, tgt) in enumerate(texts, 1)]
    tally = Tally()
    kept = list(tally.keep(pairs))
    assert kept == [pair for pair in pairs if drop_reason(pair) is None]
    assert (tally.kept, tally.total) == (len(kept), len(pairs))
    dropped = [(pair.origin, pair.src, pair.tgt) for pair in pairs if pair not in kept]
    assert tally.dropped["empty side"] == len(dropped)
    assert tally.examples.get("empty side", []) == dropped[:EXAMPLES]


def test_line_tells_counts_and_reasons_the_commonest_first() -> None:
    tally = Tally()
    assert tally.line("x") == "x: kept 0 of 0 pairs"
    tally.add(None, "x:1")
    assert tally.line("x") == "x: kept 1 of 1 pair"
    for reason, origin in zip(["empty side", "longer than 9 pieces", "longer than 9 pieces"], repeat("x:2")):  # noqa: B905 (endless)
        tally.add(reason, origin)
    assert tally.line("x") == "x: kept 1 of 4 pairs (2 longer than 9 pieces, 1 empty side)"
    tally.require_pairs("x")


@pytest.mark.parametrize(
    ("reason", "cure"),
    [("longer than 9 pieces", "raise data.max_pieces"), ("empty side", "are these the right files"), ("markup", "loosen data.filters")],
)
def test_nothing_kept_is_an_error_with_the_cure(reason: str, cure: str) -> None:
    tally = Tally()
    with pytest.raises(DataError, match="^x: kept 0 of 0 pairs; "):
        tally.require_pairs("x")
    tally.add(reason, "x:1")
    with pytest.raises(DataError, match=rf"^x: kept 0 of 1 pair \(1 {reason}\); .*{cure}.* First dropped: x:1$"):
        tally.require_pairs("x")


@given(REASONS, REASONS)
def test_the_sum_of_parts_is_the_whole(first: list[str | None], second: list[str | None]) -> None:
    left, right = tally_of(first, "a"), tally_of(second, "b")
    both = left + right
    assert (both.kept, both.dropped) == (left.kept + right.kept, left.dropped + right.dropped)
    assert both.total == len(first) + len(second)
    assert both.examples.keys() == both.dropped.keys()
    for reason, examples in both.examples.items():
        places = [f"{name}:{number}" for name, part in (("a", first), ("b", second)) for number, why in enumerate(part, 1) if why == reason]
        assert [example.origin for example in examples] == places[:EXAMPLES]
    assert (left, right) == (tally_of(first, "a"), tally_of(second, "b"))  # untouched


@given(REASONS)
def test_json_and_back(reasons: list[str | None]) -> None:
    tally = tally_of(reasons)
    written = json.loads(json.dumps(tally.to_json()))
    assert Tally.from_json(written) == tally
    assert written["kept"] + sum(entry["count"] for entry in written["dropped"]) == written["total"] == len(reasons)


def test_examples_are_cut_to_a_readable_length() -> None:
    tally = Tally()
    tally.add("markup", "x:1", "word " * 1000, "short")
    ((origin, src, tgt),) = tally.examples["markup"]
    assert (origin, len(src), src[-1], tgt) == ("x:1", READABLE, "…", "short")


@given(st.dictionaries(NAMES, REASONS, min_size=1, max_size=4))
def test_the_table_has_all_counts_in_aligned_lines(parts: dict[str, list[str | None]]) -> None:
    tallies = {name: tally_of(reasons, name) for name, reasons in parts.items()}
    head, *lines = table(tallies)
    assert head.split() == ["corpus", "reason", "pairs", "share"]
    assert len({len(line) for line in [head, *lines]}) == 1
    assert len(head) <= WIDTH
    sums = [sum(tallies.values(), Tally())] if len(tallies) > 1 else []
    counts = [count for tally in [*tallies.values(), *sums] for count in (tally.kept, *(count for _, count in tally.dropped.most_common()))]
    assert [int(line.split()[-2]) for line in lines] == counts
    written = table_json(tallies)
    assert {name: entry["total"] for name, entry in written["corpora"].items()} == {name: tally.total for name, tally in tallies.items()}
    assert written["all"]["total"] == sum(tally.total for tally in tallies.values())


def test_shares_in_the_table_do_not_round_to_all_or_nothing() -> None:
    tally = Tally()
    tally.kept, tally.dropped["markup"] = 1_000_000, 1
    rare = [line.split()[-1] for line in table({"x": tally})[1:]]
    assert rare == [">99.99%", "<0.01%"]
    assert [line.split()[-1] for line in table({"x": tally_of([None, None])})[1:]] == ["100%"]
    assert [line.split()[-1] for line in table({"x": Tally()})[1:]] == ["0%"]


def test_the_table_as_it_looks() -> None:
    lines = table({"news": tally_of([None, "markup", None, None]), "web": tally_of(["source = target", None])})
    assert [line.rstrip() for line in lines] == [
        "corpus  reason           pairs   share",
        "news    kept                 3  75.00%",
        "        markup               1  25.00%",
        "web     kept                 1  50.00%",
        "        source = target      1  50.00%",
        "all     kept                 4  66.67%",
        "        markup               1  16.67%",
        "        source = target      1  16.67%",
    ]
