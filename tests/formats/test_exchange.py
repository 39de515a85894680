from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.exchange import Kind, Unit, kind_of, lines_of, translated, with_lines
from tests.data.filling import filled, shout, shouted

TEXTS = st.text(st.sampled_from(" \t\n\u00a0\u2028ab."), max_size=12)


@given(text=TEXTS)
def test_a_text_is_its_lines_and_the_white_space_around_them(text: str) -> None:
    assert with_lines(text, lines_of(text)) == text
    done = with_lines(text, map(shout, lines_of(text)))
    assert done.split("\n") == [line.replace(line.strip(), shout(line.strip())) if line.strip() else line for line in text.split("\n")]
    assert all(line == line.strip() != "" for line in lines_of(text))


@given(texts=st.lists(st.tuples(TEXTS, st.booleans()), max_size=8), ahead=st.integers(1, 5))
def test_units_come_back_in_order_however_far_the_translator_reads_ahead(texts: list[tuple[str, bool]], ahead: int) -> None:
    def translate(lines: Iterator[tuple[str, str]]) -> Iterator[str]:
        while window := list(islice(lines, ahead)):
            yield from (shout(line) for _, line in window)

    units = [Unit(f"x:{n}", text, "" if wanted else "old", wanted) for n, (text, wanted) in enumerate(texts)]
    done = list(translated(iter(units), translate))
    assert [id(unit) for unit in done] == [id(unit) for unit in units]
    for unit in done:
        assert unit.target == (with_lines(unit.source, map(shout, lines_of(unit.source))) if unit.wanted else "old")
        assert unit.filled == (unit.wanted and unit.source != "")


def test_each_line_comes_with_its_origin() -> None:
    seen: list[tuple[str, str]] = []

    def translate(lines: Iterator[tuple[str, str]]) -> Iterator[str]:
        for line in lines:
            seen.append(line)
            yield "x"

    list(translated([Unit("x:1", "a\n\nb", "", True), Unit("x:2", "c", "C", False), Unit("x:3", "d", "", True)], translate))
    assert seen == [("x:1", "a"), ("x:1", "b"), ("x:3", "d")]


def test_a_unit_of_which_nothing_was_made_stays() -> None:
    units = [Unit("x:1", "a\nb\n", "old", True), Unit("x:2", "c\nd", "", True)]
    answers = iter(["", "", "", "D"])
    done = list(translated(units, lambda lines: (next(answers) for _ in lines)))
    assert [(unit.target, unit.filled) for unit in done] == [("old", False), ("\nD", True)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.po", "po"),
        ("app.de.POT", "po"),
        ("app.po.gz", "po"),
        ("a/b.xlf", "xliff"),
        ("b.xliff.zst", "xliff"),
        ("m.tmx.xz.bz2", "tmx"),
        ("t.tsv", "tsv"),
        ("t.txt", None),
        ("po", None),
        (".gz", None),
        ("-", None),
        ("test.en", None),
    ],
)
def test_kinds_are_told_by_suffix(name: str, kind: str | None) -> None:
    assert kind_of(Path(name)) == kind


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_gets_its_second_column() -> None:
    table = "a\n b \tB\n\tC\nd\t \tnote\n\n\u2028\ne\t\t\r\n"
    assert filled(table, Kind.tsv).decode().split("\n") == ["a\tA!", " b \tB", "\tC", "d\tD!\tnote", "\t", "\u2028\t\u2028", "e\tE!\t", ""]
    assert filled(table, Kind.tsv, retranslate=True).decode().split("\n")[1] == " b \t B! "


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_table_keeps_line_ends_and_byte_order_mark(encoding: str, end: str) -> None:
    before, after = f"ä{end}b\tB{end}", f"ä\tÄ!{end}b\tB{end}"
    assert filled(before.encode(encoding), Kind.tsv) == after.encode(encoding)


def test_a_table_is_filled_in_while_it_is_read() -> None:
    read: list[str] = []

    def rows() -> Iterator[Unit]:
        for row in ("a", "b", "c"):
            read.append(row)
            yield Unit("x", row, "", True)

    units = translated(rows(), shouted)
    assert next(units).target == "A!"
    assert read == ["a"]
