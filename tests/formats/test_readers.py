from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mt.config.schema import Corpus, CsvFile, Fields, JsonlFile, Langs, PoFile, TextFiles, TsvFile
from mt.errors import DataError
from mt.formats.pairs import Pair
from mt.formats.readers import read_held_out, read_pairs

LANGS = Langs(src="en", tgt="de")
SEGMENTS = st.text(st.sampled_from('"\t\n\r\u2028\x85\v\0 aä') | st.characters(exclude_categories=["Cs"]), max_size=12)
SIDES = st.lists(st.tuples(SEGMENTS, SEGMENTS), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp("corpora")


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def only_error(corpus: Corpus, langs: Langs | None = None) -> str:
    with pytest.raises(DataError) as caught:
        list(read_pairs(corpus, langs=langs))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def records(path: Path, *values: object) -> JsonlFile:
    return JsonlFile(jsonl=write(path, *(json.dumps(value) for value in values)))


def spaced(text: str) -> str:
    """A segment as one line of one column."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


# ── one truth in every format ───────────────────────────────────────────────────────────────────────────────────────


@given(sides=SIDES)
def test_every_format_gives_the_same_pairs(folder: Path, sides: list[tuple[str, str]]) -> None:
    # The first line is fixed: text files would lose a byte order mark there.
    sides = [("first", "first"), *((spaced(src), spaced(tgt)) for src, tgt in sides)]
    src, tgt = write(folder / "x.en", *(src for src, _ in sides)), write(folder / "x.de", *(tgt for _, tgt in sides))
    tsv = write(folder / "x.tsv", *(f"{src}\t{tgt}" for src, tgt in sides))
    jsonl = records(folder / "x.jsonl", *({"src": src, "tgt": tgt} for src, tgt in sides))
    table = write(folder / "x.csv", *(",".join('"' + text.replace('"', '""') + '"' for text in pair) for pair in sides))
    for corpus in (TextFiles(src=src, tgt=tgt), TsvFile(tsv=tsv), jsonl, CsvFile(csv=table)):
        pairs = list(read_pairs(corpus))
        assert [(pair.src, pair.tgt) for pair in pairs] == sides
        assert [pair.origin for pair in pairs] == [f"{corpus.called()}:{n + 1}" for n in range(len(sides))]


@given(sides=SIDES)
def test_a_segment_of_a_record_is_one_line(folder: Path, sides: list[tuple[str, str]]) -> None:
    pairs = read_pairs(records(folder / "y.jsonl", *({"src": src, "tgt": tgt} for src, tgt in sides)))
    assert [(pair.src, pair.tgt) for pair in pairs] == [(spaced(src), spaced(tgt)) for src, tgt in sides]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_packed_corpora(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "x.en").write_bytes(pack(b"a\nb\n"))
    (tmp_path / "x.tsv").write_bytes(pack(b"a\tA\nb\tB\n"))
    text = TextFiles(src=tmp_path / "x.en", tgt=write(tmp_path / "x.de", "A", "B"))
    assert list(read_pairs(text)) == [Pair("a", "A", "x.en:1"), Pair("b", "B", "x.en:2")]
    assert list(read_pairs(TsvFile(tsv=tmp_path / "x.tsv"))) == [Pair("a", "A", "x.tsv:1"), Pair("b", "B", "x.tsv:2")]
    (tmp_path / "x.tsv").write_bytes((tmp_path / "x.tsv").read_bytes()[:-5])
    assert only_error(TsvFile(tsv=tmp_path / "x.tsv")).startswith(f"{tmp_path}/x.tsv: the compressed file ends too early")


def test_reading_is_lazy(tmp_path: Path) -> None:
    corpus = TsvFile(tsv=write(tmp_path / "x.tsv", "a\tA", "broken"))
    assert next(read_pairs(corpus)) == Pair("a", "A", "x.tsv:1")


def test_a_corpus_is_called_by_its_name_or_its_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    assert TsvFile(tsv=path).called() == "x.tsv"
    assert TextFiles(src=tmp_path / "x.en", tgt=tmp_path / "x.de").called() == "x.en"
    assert JsonlFile(jsonl=path, name="memory").called() == "memory"


def test_corpus_without_pairs_is_named(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty")
    for corpus in (TextFiles(src=empty, tgt=empty), TsvFile(tsv=empty), JsonlFile(jsonl=empty)):
        assert only_error(corpus).startswith(f"{empty}: is empty")
    assert "is empty" in only_error(JsonlFile(jsonl=write(tmp_path / "blank", "", "  ")))


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_max_pairs_cuts_and_reads_no_further(tmp_path: Path, count: int) -> None:
    corpus = TsvFile(tsv=write(tmp_path / "x.tsv", "a\tA", "b\tB", "c\tC", *["broken"] * (count <= 3)), max_pairs=count)
    assert [pair.src for pair in read_pairs(corpus)] == list("abc"[:count])


def test_what_a_file_calls_unfit_is_not_scored(tmp_path: Path) -> None:
    lines = ['msgid "a"', 'msgstr "A"', "", "#, fuzzy", 'msgid "b"', 'msgstr "B"', "", 'msgid "c"', 'msgstr ""']
    corpus = PoFile(po=write(tmp_path / "x.po", *lines))
    assert [pair.flaw for pair in read_pairs(corpus)] == [None, "fuzzy", "untranslated"]
    assert read_held_out(corpus) == [Pair("a", "A", "x.po:1")]
    write(tmp_path / "x.po", *lines[3:])
    with pytest.raises(DataError, match=r"^x.po: no pair can be used \(1 fuzzy, 1 untranslated\); give another file$"):
        read_held_out(corpus)


# ── a folder or a pattern is one corpus ─────────────────────────────────────────────────────────────────────────────


def test_shards_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path / "part-10.tsv", "c\tC")
    write(tmp_path / "part-02.tsv", "a\tA", "b\tB")
    write(tmp_path / ".part-00.tsv.partial", "half a li")
    whole = [Pair("a", "A", "part-02.tsv:1"), Pair("b", "B", "part-02.tsv:2"), Pair("c", "C", "part-10.tsv:1")]
    assert list(read_pairs(TsvFile(tsv=tmp_path))) == whole
    assert list(read_pairs(TsvFile(tsv=tmp_path / "part-*.tsv"))) == whole
    assert list(read_pairs(TsvFile(tsv=tmp_path / "part-*.tsv", max_pairs=2))) == whole[:2]
    assert only_error(TsvFile(tsv=tmp_path / "*.csv")) == f"{tmp_path}/*.csv: no file fits this pattern"


def test_text_shards_go_in_pairs(tmp_path: Path) -> None:
    for number, lines in enumerate((["a", "b"], [], ["c"])):
        write(tmp_path / f"x{number}.en", *lines)
        write(tmp_path / f"x{number}.de", *map(str.upper, lines))
    corpus = TextFiles(src=tmp_path / "*.en", tgt=tmp_path / "*.de")
    assert list(read_pairs(corpus)) == [Pair("a", "A", "x0.en:1"), Pair("b", "B", "x0.en:2"), Pair("c", "C", "x2.en:1")]
    write(tmp_path / "x1.de", "?")
    message = only_error(corpus)
    assert message.startswith(f"{tmp_path}/x1.en has 0 lines, {tmp_path}/x1.de has 1: ")
    (tmp_path / "x1.de").unlink()
    assert only_error(corpus).startswith(f"{tmp_path}/*.en stands for 3 files, {tmp_path}/*.de for 2: ")


# ── plain text ──────────────────────────────────────────────────────────────────────────────────────────────────────


@given(counts=st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda counts: counts[0] != counts[1]))
def test_different_line_counts_are_both_told(folder: Path, counts: tuple[int, int]) -> None:
    src, tgt = (write(folder / name, *["x"] * count) for name, count in zip(("m.en", "m.de"), counts, strict=True))
    lines = "line" if counts[0] == 1 else "lines"
    message = only_error(TextFiles(src=src, tgt=tgt))
    assert message == f"{src} has {counts[0]} {lines}, {tgt} has {counts[1]}: line n of one must translate line n of the other"


# ── TSV ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not tell which files are open")
def test_where_one_side_is_broken_the_other_is_closed_at_once(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_bytes(b"a\n\xff\n")
    write(tmp_path / "x.de", "a", "b", "c")
    with pytest.raises(DataError, match="0xFF") as caught:
        list(read_pairs(TextFiles(src=tmp_path / "x.en", tgt=tmp_path / "x.de")))
    open_files = {os.path.realpath(handle) for handle in Path("/proc/self/fd").iterdir()}
    assert caught.value.__traceback__  # what it holds is still there
    assert not [file for file in open_files if file.startswith(str(tmp_path))]


def test_columns_choose_and_order_the_sides(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "1\ta\tA", "2\tb\tB")
    assert [pair[:2] for pair in read_pairs(TsvFile(tsv=path, columns=(2, 1)))] == [("A", "a"), ("B", "b")]


def test_without_columns_there_are_two(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "a\tA", "", "c\tC")
    assert only_error(TsvFile(tsv=path)) == f"{path}:2: 1 column, expected 2 (no separator in it)"


@pytest.mark.parametrize(("name", "kind"), [("mem.tmx", "tmx"), ("app.de.po.gz", "po")])
def test_a_file_of_another_kind_is_no_table(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    text = b"<?xml version='1.0'?>\n"
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    expected = f"{path}:1: 1 column, expected 2 (no separator in it; .{kind} is read with {kind}: FILE)"
    assert only_error(TsvFile(tsv=path)) == expected


def test_with_columns_their_number_is_constant(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "1\ta\tA", "2\tb\tB\t!")
    assert only_error(TsvFile(tsv=path, columns=(1, 2))) == f"{path}:2: 4 columns, expected 3 (as in line 1)"


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", "1\ta\tA")
    assert only_error(TsvFile(tsv=path, columns=(0, 3))).startswith(f"{path}:1: 3 columns, but columns: [0, 3]")


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

PRODUCTS = """\
id,"English, original",German
1,"Kettle, 1.7 l","Wasserkocher, 1,7 l"

2,"The ""Whistler"",
our best","Der „Whistler“,
unser bester"
3,5" pan,Pfanne
"""


def products(folder: Path, text: str = PRODUCTS) -> Path:
    (folder / "x.csv").write_text(text, encoding="utf-8", newline="")
    return folder / "x.csv"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_columns_by_name(tmp_path: Path, end: str) -> None:
    corpus = CsvFile(csv=products(tmp_path, PRODUCTS.replace("\n", end)), columns=("English, original", "German"))
    assert list(read_pairs(corpus)) == [
        Pair("Kettle, 1.7 l", "Wasserkocher, 1,7 l", "x.csv:2"),
        Pair('The "Whistler", our best', "Der „Whistler“, unser bester", "x.csv:4"),
        Pair('5" pan', "Pfanne", "x.csv:7"),
    ]


def test_columns_by_number_have_no_header(tmp_path: Path) -> None:
    pairs = list(read_pairs(CsvFile(csv=products(tmp_path), columns=(2, 1))))
    assert pairs[0] == Pair("German", "English, original", "x.csv:1")
    assert len(pairs) == 4


def test_another_separator_and_two_columns(tmp_path: Path) -> None:
    assert list(read_pairs(CsvFile(csv=products(tmp_path, 'a;"A;"\n'), separator=";"))) == [Pair("a", "A;", "x.csv:1")]


def test_a_writer_of_rfc_4180_is_understood(tmp_path: Path) -> None:
    sides = [('"', ",\n"), ("", " a "), ("\r\n", '""')]
    with open(tmp_path / "x.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(sides)
    found = [pair[:2] for pair in read_pairs(CsvFile(csv=tmp_path / "x.csv"))]
    assert found == [('"', ", "), ("", " a "), (" ", '""')]


@pytest.mark.parametrize(
    ("text", "columns", "what"),
    [
        ("a,A\nb,B,!\n", None, ":2: 3 columns, expected 2 (choose with columns"),
        ('a,A\n"b\n\n",B,!\n', (0, 1), ":2: 3 columns, expected 2 (as in line 1)"),
        ("a,A\n", (0, 7), ":1: 2 columns, but columns: [0, 7]"),
        ("en,de\na,A\n", ("en", "fr"), ":1: no column 'fr'; there are: en, de"),
        ('a,A\nb,"B\n' + "c,C\n" * 10, None, ":2: a quote that begins here is never closed"),
        ('a,A\nb,"B\n' + "c,C\n" * 100_000, None, ":2: a field of more than 131072 characters; is a quote never closed?"),
        ('a,A\nb,"B" oh\n', None, ":2: text between a closing quote and the next separator"),
        ("a,A\nb,B\rc,C\n", None, ":2: a carriage return outside quotes"),
    ],
)
def test_bad_csv_names_the_line_a_record_begins_at(tmp_path: Path, text: str, columns: tuple[int, int] | None, what: str) -> None:
    path = products(tmp_path, text)
    assert only_error(CsvFile(csv=path, columns=columns)).startswith(f"{path}{what}")


def test_invalid_utf8_names_the_line_in_csv_too(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b'a,A\n"b\n\xe9",B\n')
    assert only_error(CsvFile(csv=tmp_path / "x.csv")).startswith(f"{tmp_path}/x.csv:3: byte 0xE9 is not UTF-8")


# ── JSONL ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "record",
    [
        {"src": "a", "tgt": "A", "en": "no", "de": "no"},
        {"id": 1, "en": "a", "de": "A"},
        {"translation": {"de": "A", "en": "a", "fr": "no"}},
    ],
)
def test_usual_fields_are_found(tmp_path: Path, record: object) -> None:
    assert list(read_pairs(records(tmp_path / "x.jsonl", record), langs=LANGS)) == [Pair("a", "A", "x.jsonl:1")]


def test_asked_fields_win_and_may_be_nested(tmp_path: Path) -> None:
    path = records(tmp_path / "x.jsonl", {"src": "no", "tgt": "no", "deep": {"er": {"en": "a"}}, "flat.de": "A"}).jsonl
    corpus = JsonlFile(jsonl=path, fields=Fields(src="deep.er.en", tgt="flat.de"))
    assert list(read_pairs(corpus, langs=LANGS)) == [Pair("a", "A", "x.jsonl:1")]


def test_blank_lines_are_no_records_but_count_as_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", "", '{"src": "a", "tgt": "A"}', " \t", '{"src": "b", "tgt": "B"}', "")
    assert [pair.origin for pair in read_pairs(JsonlFile(jsonl=path))] == ["x.jsonl:2", "x.jsonl:4"]


def test_unknown_fields_name_those_tried_and_those_there(tmp_path: Path) -> None:
    message = only_error(records(tmp_path / "x.jsonl", {"english": "a", "more": {"german": "A"}}), LANGS)
    assert message.startswith(
        f"{tmp_path}/x.jsonl:1: no fields `src` and `tgt`, nor `en` and `de`, nor `translation.en` and `translation.de`"
    )
    assert "there are: english, more.german (choose with fields" in message


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"src": "b"}, "no field `tgt`; there are: src"),
        ({"src": "b", "tgt": 5}, "field `tgt` is 5, expected a string"),
        ({"src": None, "tgt": "B"}, "field `src` is null, expected a string"),
        ({"src": ["b"], "tgt": "B"}, 'field `src` is ["b"], expected a string'),
        ({"src": "b", "tgt": "B \ud83d"}, "field `tgt` holds half a character, \\ud83d"),
        (["b", "B"], "expected a JSON object"),
    ],
)
def test_bad_record_names_line_and_field(tmp_path: Path, record: object, what: str) -> None:
    message = only_error(records(tmp_path / "x.jsonl", {"src": "a", "tgt": "A"}, record))
    assert message.startswith(f"{tmp_path}/x.jsonl:2: {what}")


@pytest.mark.parametrize("line", ['{"src": "a", "tgt": "A"', "[" * 100_000, '{"src": ' + "9" * 5000 + "}", '{"a":' * 100_000, "src tgt"])
def test_broken_json_is_one_short_line(tmp_path: Path, line: str) -> None:
    message = only_error(JsonlFile(jsonl=write(tmp_path / "x.jsonl", '{"src": "a", "tgt": "A"}', line)))
    assert message.startswith(f"{tmp_path}/x.jsonl:2: ")
    assert "JSON" in message
    assert len(message) < 300 + len(str(tmp_path))
