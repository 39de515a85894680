"""The options of `mt translate` that say what translations are to obey: the same as in Python, with every search; mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mt.constraints.control import Control
from mt.decode.engine import Beam, Sampling
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import Ended, lively_run, mt

LINES = ["bage depe .", "", *toy.sentences(3, seed=5)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
SEARCHES = [("--greedy", Beam(width=1)), ("--beam 3", Beam(width=3)), ("--sample", Sampling())]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    short = ("decode.max_length_factor=0.5", "decode.max_length_extra=8", "decode.beam=3", "data.max_pieces=40")
    return lively_run(tmp_path_factory.mktemp("lively"), *short)


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return Translator.load(run.path)


def translated(run: RunDir, *words: str | Path, stdin: bytes = TEXT) -> tuple[list[dict[str, Any]], Ended]:
    done = mt("translate", "--model", run.path, "--format", "jsonl", *words, stdin=stdin)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.lines], done


@pytest.mark.parametrize(("words", "settings"), SEARCHES)
def test_options_are_the_control_of_the_python_api(run: RunDir, translator: Translator, words: str, settings: Beam | Sampling) -> None:
    asked = ["--min-length", "5", "--no-repeat-ngram", "2", "--repetition-penalty", "1.5"]
    records, _ = translated(run, *words.split(), *asked)
    control = Control(min_length=5, no_repeat_ngram=2, repetition_penalty=1.5)
    expected = translator.translate(LINES, settings=settings, control=control)
    assert [[h["ids"] for h in record["hypotheses"]] for record in records] == [[h.ids for _, h in one.hypotheses] for one in expected]
    for record in records:
        for h in record["hypotheses"]:
            assert len(h["ids"]) >= 5
            pairs = list(zip(h["ids"], h["ids"][1:], strict=False))
            assert len(set(pairs)) == len(pairs)


def test_the_limit_makes_room_for_the_least_length(run: RunDir) -> None:
    records, _ = translated(run, "--min-length", "60", stdin=b"bage .\n")
    assert len(records[0]["hypotheses"][0]["ids"]) >= 60


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--repetition-penalty 0.5", "--repetition-penalty 0.5: give a number from 1 (none) to 10"),
        ("--repetition-penalty nan", "--repetition-penalty nan: give a number from 1 (none) to 10"),
        ("--min-length 10001", "--min-length 10001: give a number of pieces from 0 to 10000"),
    ],
)
def test_what_cannot_be_met_is_one_line(run: RunDir, words: str, message: str) -> None:
    done = mt("translate", "--model", run.path, *words.split(), stdin=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert [line.removeprefix("mt: ") for line in done.err] == [message]


# ── how translations begin, and what they say ───────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def words(translator: Translator) -> list[str]:
    """Words of the target language that no translation has by itself, each of a few pieces."""
    said = {word for one in translator.translate(LINES) for word in one.text.split()}
    known = sorted({word for line in toy.sentences(60, seed=9) for word in line.split() if word.isalpha()} - said)
    assert len(known) > 6
    return known


def saved(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize(("how", "settings"), SEARCHES)
def test_prefixes(run: RunDir, translator: Translator, words: list[str], tmp_path: Path, how: str, settings: Beam | Sampling) -> None:
    prefixes = [f"{words[0]} {words[1]}", "", words[2][:2], "", words[3]]
    records, done = translated(run, *how.split(), "--prefix-file", saved(tmp_path / "prefixes", *prefixes))
    expected = translator.translate(LINES, settings=settings, prefixes=prefixes)
    free = translator.translate(LINES, settings=settings)
    for record, prefix, one, without in zip(records, prefixes, expected, free, strict=True):
        texts = [h["text"] for h in record["hypotheses"]]
        assert all(text.startswith(prefix) for text in texts)
        assert texts == [text for text, _ in one.hypotheses]
        assert "unmet" not in record["flags"]
        if not prefix:
            assert texts == [text for text, _ in without.hypotheses]
    assert not any("lacks something" in line for line in done.err)


@pytest.mark.parametrize("how", [how for how, _ in SEARCHES])
def test_required_phrases(run: RunDir, words: list[str], tmp_path: Path, how: str) -> None:
    phrases = [[words[0]], [], [words[1], words[2]], [""], [words[4]]]
    records, _ = translated(run, *how.split(), "--require", saved(tmp_path / "required", *("\t".join(own) for own in phrases)))
    for record, own in zip(records, phrases, strict=True):
        assert "unmet" not in record["flags"]
        for h in record["hypotheses"]:
            assert all(phrase in h["text"] for phrase in own)
            assert h["log_prob"] > -1000


def test_what_cannot_be_said_is_flagged_and_told(run: RunDir, words: list[str], tmp_path: Path) -> None:
    long = " ".join(words * 20)
    records, done = translated(run, "--require", saved(tmp_path / "required", words[0], "", f"{long}", "", ""))
    assert [record["flags"].count("unmet") for record in records] == [0, 0, 1, 0, 0]
    assert "warning: line 3: the translation lacks something that it was to have (--prefix-file, --require, --glossary)" in done.err


@pytest.mark.parametrize("how", [how for how, _ in SEARCHES])
def test_banned_phrases(run: RunDir, translator: Translator, tmp_path: Path, how: str) -> None:
    free, _ = translated(run, *how.split())
    banned = sorted({word for record in free for h in record["hypotheses"] for word in h["text"].split() if len(word) > 1})[:4]
    encode = translator.tokenizers.tgt.encode
    records, _ = translated(run, *how.split(), "--ban", saved(tmp_path / "banned", *banned, ""))
    ids = [h["ids"] for record in records for h in record["hypotheses"]]
    assert ids != [h["ids"] for record in free for h in record["hypotheses"]]
    for phrase in banned:
        way = encode(phrase)
        assert not any(own[i : i + len(way)] == way for own in ids for i in range(len(own)))


@pytest.mark.parametrize("how", [how for how, _ in SEARCHES])
def test_a_glossary_is_honoured_and_reported(run: RunDir, words: list[str], tmp_path: Path, how: str) -> None:
    """`Bage` begins a sentence; `dep` is no word of it; one term is too long to be said."""
    entries = ["# a comment", f"bage\t{words[0]}", f"dep\t{words[1]}", "", f"fide\t{' '.join(words * 20)}"]
    glossary = saved(tmp_path / "terms.tsv", *entries)
    records, done = translated(run, *how.split(), "--glossary", glossary, stdin=b"Bage depe .\nfide .\n\n")
    first, second, _ = records
    assert all(words[0] in h["text"] for h in first["hypotheses"])
    assert [record["flags"].count("unmet") for record in records] == [0, 1, 0]
    assert second["hypotheses"]
    (report,) = [line for line in done.err if line.startswith("glossary: ")]
    assert report.startswith(f"glossary: 1 honoured, 1 missed: fide → {words[0]} ")


def test_a_line_in_parts_begins_and_says_what_it_is_to(run: RunDir, words: list[str], tmp_path: Path) -> None:
    line = " ".join(toy.sentences(12, seed=3))
    asked = ["--prefix-file", saved(tmp_path / "prefixes", words[0]), "--require", saved(tmp_path / "required", words[1])]
    (record,), _ = translated(run, *asked, stdin=f"{line}\n".encode())
    assert "split" in record["flags"]
    assert "unmet" not in record["flags"]
    assert record["hypotheses"][0]["text"].startswith(words[0])
    assert words[1] in record["hypotheses"][0]["text"]


def test_documents_obey_too(run: RunDir, words: list[str], tmp_path: Path) -> None:
    document = saved(tmp_path / "in.po", 'msgid ""', 'msgstr "Language: \\n"', "", 'msgid "bage depe ."', 'msgstr ""')
    glossary = saved(tmp_path / "terms.tsv", f"bage\t{words[0]}")
    done = mt("translate", "--model", run.path, "--input", document, "--output", tmp_path / "out.po", "--glossary", glossary)
    assert done.code == 0
    assert words[0] in (tmp_path / "out.po").read_text(encoding="utf-8")
    assert "glossary: 1 honoured, 0 missed" in done.err


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        (
            "--prefix-file",
            "a\n",
            "prefixes (--prefix-file): none for line 2; give one for each line, empty where nothing is asked for",
        ),
        ("--prefix-file", "a\n" * 6, "prefixes (--prefix-file): more than the 5 lines; give one for each line"),
        ("--require", "a\n" * 6, "required phrases (--require): more than the 5 lines; give one for each line"),
        ("--glossary", "a\tb\nc\n", "{file}:2: should be a source term, a TAB and a target term"),
        ("--glossary", "a\tb\na\tc\n", "{file}:2: 'a' is in line 1 already; keep one of the two"),
    ],
)
def test_files_that_do_not_fit_are_one_line_and_leave_nothing(run: RunDir, tmp_path: Path, option: str, text: str, message: str) -> None:
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    done = mt("translate", "--model", run.path, option, file, "--output", tmp_path / "out", stdin=TEXT)
    assert done.code == 2
    assert done.err[-1].removeprefix("mt: ") == message.format(file=file)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--prefix-file", "--require", "--ban", "--glossary"])
def test_a_missing_file_is_told_before_the_model_is_loaded(
    run: RunDir, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    done = mt("translate", "--model", run.path, option, tmp_path / "missing", stdin=TEXT)
    assert (done.code, done.out, len(done.err)) == (2, b"", 1)
    assert str(tmp_path / "missing") in done.err[0]


@pytest.mark.parametrize("option", ["--prefix-file", "--require"])
def test_what_goes_line_by_line_does_not_go_with_documents(run: RunDir, tmp_path: Path, option: str) -> None:
    file = saved(tmp_path / "file", "a")
    done = mt("translate", "--model", run.path, "--input-format", "po", option, file, stdin=b"")
    expected = f"{option} {file} goes with plain text, line by line; a po is no text (--input-format text reads its lines)"
    assert (done.code, [line.removeprefix("mt: ") for line in done.err]) == (2, [expected])


@pytest.mark.parametrize("option", ["--prefix-file", "--require"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_files_of_other_lengths_are_refused_before_anything_is_written(run: RunDir, tmp_path: Path, option: str, count: int) -> None:
    source, own = tmp_path / "two.txt", tmp_path / "own.txt"
    source.write_text("bage .\ndepe .\n")
    own.write_text("a\n" * count)
    done = mt("translate", "--model", run.path, "--input", source, option, own)
    message = f"{own}: has {count} lines and {source} 2; give one for each line, blank where nothing is asked for"
    assert (done.code, done.out, done.err) == (2, b"", [message])
