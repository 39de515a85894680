"""`mt translate` of documents: which files are documents, what goes with them, and that they appear whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import polib
import pytest

from mt.files import open_binary
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

SENTENCES = toy.sentences(3, seed=8)
CATALOGUE = f"""\
msgid ""
msgstr ""
"Language: \\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#: a.c:1
msgid "{SENTENCES[0]}"
msgstr ""

msgid "{SENTENCES[1]}"
msgstr "done"

msgid ""
"{SENTENCES[0]}\\n"
"\\n"
" {SENTENCES[2]}\\n"
msgstr ""
"""
FILES = {
    "x.po": CATALOGUE,
    "x.tsv": "".join(f"{line}\n" for line in SENTENCES),
    "x.tmx": '<tmx><header srclang="xa"/><body>'
    + "".join(f'<tu><tuv xml:lang="xa"><seg>{line}</seg></tuv><tuv xml:lang="xb"><seg/></tuv></tu>' for line in SENTENCES)
    + "</body></tmx>",
    "x.xlf": '<xliff version="1.2"><file original="a"><body>'
    + "".join(f'<trans-unit id="{n}"><source>{line}</source></trans-unit>' for n, line in enumerate(SENTENCES))
    + "</body></file></xliff>",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    short = ("decode.max_length_factor=0.5", "decode.max_length_extra=6", "decode.beam=2", "data.max_pieces=40")
    return lively_run(tmp_path_factory.mktemp("lively"), *short)


@pytest.fixture(scope="module")
def right(run: RunDir) -> dict[str, str]:
    """What the model makes of each sentence."""
    return {one.source: one.text for one in Translator.load(run.path).translate(SENTENCES)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
    return tmp_path


def test_a_catalogue(run: RunDir, right: dict[str, str], folder: Path) -> None:
    done = mt("translate", "--model", run.path, "--input", folder / "x.po", "--output", folder / "y.po")
    assert done.code == 0
    assert done.err[-1] == "2 of 3 units filled in; 1 had a translation already (--retranslate replaces it)"
    first, second, third = polib.pofile(str(folder / "y.po"))
    assert (first.msgstr, first.fuzzy, second.msgstr, second.fuzzy) == (right[SENTENCES[0]], True, "done", False)
    assert (third.msgstr, third.fuzzy) == (f"{right[SENTENCES[0]]}\n\n {right[SENTENCES[2]]}\n", True)


@pytest.mark.parametrize("name", FILES)
def test_the_same_by_suffix_by_name_and_through_pipes(run: RunDir, folder: Path, name: str) -> None:
    kind = {"xlf": "xliff"}.get(name[2:], name[2:])
    first = mt("translate", "--model", run.path, "--input", folder / name)
    assert first.code == 0
    assert mt("translate", "--model", run.path, "--input-format", kind, stdin=FILES[name].encode())[:2] == first[:2]
    (folder / f"packed.{name[2:]}.gz").write_bytes(gzip.compress(FILES[name].encode()))
    assert mt("translate", "--model", run.path, "--input", folder / f"packed.{name[2:]}.gz", "--output", folder / "out").code == 0
    assert (folder / "out").read_bytes() == first.out


def test_a_unit_without_source_is_not_called_translated(run: RunDir, tmp_path: Path) -> None:
    source, target = '<tuv xml:lang="xa"><seg>bage .</seg></tuv>', '<tuv xml:lang="xb"><seg/></tuv>'
    one, two = f"<tu>{source}{target}</tu>", f"<tu>{target}</tu>"
    for units, said in (one, "1 of 1 unit filled in"), (one + two * 2, "1 of 3 units filled in"):
        (tmp_path / "x.tmx").write_text(f'<tmx><header srclang="xa"/><body>{units}</body></tmx>', encoding="utf-8")
        assert mt("translate", "--model", run.path, "--input", tmp_path / "x.tmx").err[-1] == said


@pytest.mark.parametrize("name", FILES)
def test_every_document_can_become_a_table(run: RunDir, right: dict[str, str], folder: Path, name: str) -> None:
    assert mt("translate", "--model", run.path, "--input", folder / name, "--output", folder / "out.tsv", "--retranslate").code == 0
    rows = [line.split("\t") for line in (folder / "out.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
    assert len(rows) == 3
    assert rows[:2] == [[line, right[line]] for line in SENTENCES[:2]]


def test_as_text_a_document_is_lines(run: RunDir, folder: Path) -> None:
    done = mt("translate", "--model", run.path, "--input", folder / "x.tsv", "--input-format", "text", "--format", "jsonl")
    assert done.code == 0
    assert len(done.lines) == 3


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run of three source and two target languages."""
    there, back = "src: train.src, tgt: train.trg", "src: train.trg, tgt: train.src"
    ways = [(there, "xa", "xb"), (there, "xc", "xb"), (back, "xb", "xa")]
    train = ", ".join(f"{{{files}, name: {src}{tgt}, langs: {{src: {src}, tgt: {tgt}}}}}" for files, src, tgt in ways)
    folder = tmp_path_factory.mktemp("many")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # where paths in overrides begin
        return lively_run(folder, f"data.train=[{train}]", "data.dev=none", "decode.max_length_factor=0.5", "decode.max_length_extra=6")


def memory(folder: Path, srclang: str, *langs: str) -> Path:
    """A unit for each toy sentence, in these languages: the n-th has its n words more."""
    units = ["".join(f'<tuv xml:lang="{lang}"><seg>{"bage " * n}{line}</seg></tuv>' for n, lang in enumerate(langs)) for line in SENTENCES]
    path = folder / "many.tmx"
    path.write_text(f'<tmx><header srclang="{srclang}"/><body>{"".join(f"<tu>{one}</tu>" for one in units)}</body></tmx>', encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("srclang", "langs", "to", "words"),
    [
        ("xa", ("xa", "xc", "fr"), "xb", 0),
        ("xc", ("xa", "xc", "fr"), "xb", 1),
        ("xb", ("xa", "xb"), "xa", 1),
        ("fr", ("fr", "xc"), "xb", 1),
    ],
)
def test_of_several_source_languages_the_memory_tells_which(
    many: RunDir, tmp_path: Path, srclang: str, langs: tuple[str, ...], to: str, words: int
) -> None:
    path = memory(tmp_path, srclang, *langs)
    done = mt("translate", "--model", many.path, "--to", to, "--input", path, "--output", tmp_path / "out.tsv", "--retranslate")
    assert (done.code, done.err[-1]) == (0, "3 of 3 units filled in")
    right = {one.source: one.text for one in Translator.load(many.path).translate(["bage " * words + line for line in SENTENCES], to=to)}
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
    assert rows == [[source, text] for source, text in right.items()]


@pytest.mark.parametrize("srclang", ["fr", "*all*"])
def test_a_memory_that_does_not_tell_is_one_line(many: RunDir, tmp_path: Path, srclang: str) -> None:
    path = memory(tmp_path, srclang, "xa", "xc", "fr")
    done = mt("translate", "--model", many.path, "--to", "xb", "--input", path, "--output", tmp_path / "out.tmx")
    assert (done.code, len(done.err)) == (2, 1)
    assert f"srclang is {srclang}, and the model translates from xa, xc; set srclang in the header" in done.err[0]
    assert not (tmp_path / "out.tmx").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("--input x.po --n-best 2", "--n-best 2 goes with plain text: a po has one translation a unit"),
        ("--input x.tsv --format jsonl", "--format jsonl goes with plain text"),
        ("--input x.tmx --format tsv", "--format tsv goes with plain text"),
        ("--input x.po --output y.tmx", "a po stays a po, or becomes a table (.tsv), but no tmx"),
        ("--input x.tsv --output y.po", "a tsv stays a tsv"),
        (
            "--input x.txt --output y.po",
            "--output y.po: is the name of a po, but what is written is plain text; name it otherwise, or give",
        ),
        ("--output two.tmx.gz", "or give --input-format tmx if the input is one"),
        ("--input x.txt --retranslate", "--retranslate goes with documents"),
        ("--input x.po --input-format text --retranslate", "--retranslate goes with documents"),
    ],
)
def test_what_makes_no_sense_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, what: str) -> None:
    monkeypatch.chdir(folder)
    done = mt("translate", "--model", "there-is-none", *words.split())
    assert (done.code, len(done.err)) == (2, 1)
    assert what in done.err[0]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("x.po", 'msgid "a"\nmsgstr "b\n', "x.po:2: no PO: a string that is not closed"),
        ("x.xlf", "<xliff version='1.2'>\n<file>", "x.xlf:2: broken XML: "),
        ("x.tmx", "<!DOCTYPE tmx [<!ENTITY a 'b'>]><tmx/>", "x.tmx:1: declares an XML entity"),
        ("x.tmx", "<xliff/>", "x.tmx:1: begins with <xliff>, expected <tmx>"),
        ("x.xliff", "<xliff version='2.0'/>", "x.xliff:1: is XLIFF 2.0"),
    ],
)
def test_a_bad_document_is_told_before_a_model_is_loaded(tmp_path: Path, name: str, text: str, what: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = mt("translate", "--model", tmp_path / "there-is-none", "--input", tmp_path / name, "--output", tmp_path / "out")
    assert (done.code, len(done.err)) == (2, 1)
    assert done.err[0].startswith(f"{tmp_path}/{what}")
    assert not (tmp_path / "out").exists()


def test_a_table_that_ends_badly_leaves_nothing(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"bage depe .\n\xff\n")
    done = mt("translate", "--model", run.path, "--input", tmp_path / "x.tsv", "--output", tmp_path / "out.tsv")
    assert (done.code, done.err) == (2, [f"{tmp_path}/x.tsv:2: byte 0xFF is not UTF-8 (at byte 1 of the line); save the file as UTF-8"])
    assert not (tmp_path / "out.tsv").exists()


def test_warnings_name_the_unit(run: RunDir, tmp_path: Path) -> None:
    long = " ".join(toy.sentences(30, seed=9))
    (tmp_path / "x.po").write_text(f'msgid "a"\nmsgstr "b"\n\nmsgid "{long}"\nmsgstr ""\n', encoding="utf-8")
    done = mt("translate", "--model", run.path, "--input", tmp_path / "x.po")
    assert f"warning: {tmp_path}/x.po:4: longer than 40 pieces (data.max_pieces), translated in parts" in done.err


def test_units_that_lost_a_placeholder_are_told(run: RunDir, tmp_path: Path) -> None:
    lines = [f"{SENTENCES[0]} %d", SENTENCES[1], "%(name)s", "done %s\tdone", f"{SENTENCES[2]} {{0}}"]
    (tmp_path / "x.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = mt("translate", "--model", run.path, "--input", tmp_path / "x.tsv")
    assert done.err[-2] == f"warning: 3 units lost a placeholder, first {tmp_path}/x.tsv:1 (%d)"
    assert done.err[-1].startswith("4 of 5 units filled in")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst", ".GZ"])
@pytest.mark.parametrize("name", ["x.txt", *FILES])
def test_an_output_is_packed_as_it_is_called(run: RunDir, folder: Path, name: str, suffix: str) -> None:
    (folder / "x.txt").write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")
    plain, packed = folder / f"out{Path(name).suffix}", folder / f"out{Path(name).suffix}{suffix}"
    for output in (plain, packed):
        assert mt("translate", "--model", run.path, "--input", folder / name, "--output", output).code == 0
    with open_binary(packed) as file:
        assert file.read() == plain.read_bytes()
    assert packed.read_bytes() != plain.read_bytes()


def test_a_packed_output_does_not_appear_in_part(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"bage depe .\n\xff\n")
    done = mt("translate", "--model", run.path, "--input", tmp_path / "x.txt", "--output", tmp_path / "out.gz")
    assert (done.code, len(done.err)) == (2, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]
