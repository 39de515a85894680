"""`--protect`: what is protected in a source is in its translation, as often, or the line says that it is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config.protection import KINDS
from mt.constraints.control import Control
from mt.decode.engine import Beam, Sampling
from mt.formats.placeholders import Protected
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

URL = "https://example.org/find?q=a1&r=2"
HARD = ["<b>", "</b>", '<a href="x">', "{date}", "%s", "%1$d", URL, "a.b@mail.example.org", "12,5", "3"]
OPEN = [URL, "a.b@mail.example.org"]
"""What an untrained model may go on with, without a space: then it is said, but part of something longer."""
WORDS = sorted({word for line in toy.sentences(20, seed=5) for word in line.split() if word.isalpha()})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Untrained, and with pieces for all bytes: nothing of what is protected comes by itself, all of it can be written."""
    short = ("decode.max_length_factor=2", "decode.max_length_extra=10", "tokenizer.vocab_size=400", "tokenizer.byte_fallback=true")
    return lively_run(tmp_path_factory.mktemp("lively"), *short)


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return Translator.load(run.path)


LINES = st.lists(st.lists(st.sampled_from([*HARD, *WORDS[:4]]), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=4)
SEARCHES = pytest.mark.parametrize("search", [Beam(width=1), Beam(width=3), Sampling()], ids=["greedy", "beam", "sampling"])


@SEARCHES
@settings(max_examples=12, deadline=None)
@given(lines=LINES)
def test_all_is_kept_or_the_line_is_flagged(translator: Translator, search: Beam | Sampling, lines: list[str]) -> None:
    protected = Protected(KINDS)
    found = translator.translate(lines, settings=search, control=Control(protect=protected))
    for line, one in zip(lines, found, strict=True):
        spans = protected.spans(line)
        assert [span for span, _ in one.protected] == spans
        assert ("lost" in one.flags) == (not all(kept for _, kept in one.protected))
        for span in set(spans):
            kept = sum(holds for what, holds in one.protected if what == span)
            assert one.text.count(span) >= kept


@SEARCHES
@pytest.mark.parametrize("span", ["{date}", "<b>", "%1$d", URL, "a.b@mail.example.org", "{date} and {date}"])
def test_what_can_be_written_is_kept(translator: Translator, search: Beam | Sampling, span: str) -> None:
    line = f"{WORDS[0]} {span} {WORDS[1]} ."
    (plain,) = translator.translate([line], settings=search)
    assert plain.protected == []
    assert "lost" not in plain.flags
    (found,) = translator.translate([line], settings=search, control=Control(protect=Protected(("tags", "placeholders", "urls", "emails"))))
    assert found.protected
    if span not in OPEN:
        assert all(kept for _, kept in found.protected)
        assert "lost" not in found.flags
    assert found.text.count(span.split()[0]) >= len(found.protected)


def test_what_has_no_piece_is_lost_and_said(tmp_path: Path) -> None:
    run = lively_run(tmp_path, "tokenizer.byte_fallback=false", "decode.max_length_factor=1")
    text = "bage {漢} depe .\n\nbage .\n".encode()
    done = mt("translate", "--model", run.path, "--protect", "placeholders", "--format", "jsonl", "--fail-on", "lost", stdin=text)
    assert done.code == 3
    assert ["lost" in json.loads(line)["flags"] for line in done.lines] == [True, False, False]
    assert "warning: line 1: the translation lost something of its source that is protected (--protect)" in done.err
    assert "protected: 0 kept, 1 lost: {漢}" in done.err
    assert done.err[-1] == "--fail-on lost: line 1"


def test_the_run_says_what_is_protected_and_the_option_otherwise(tmp_path: Path) -> None:
    run = lively_run(tmp_path, "decode.protect=[placeholders]", "tokenizer.vocab_size=400", "tokenizer.byte_fallback=true")
    text = b"bage {date} 3 .\n"
    by_run = mt("translate", "--model", run.path, stdin=text)
    assert "{date}" in by_run.lines[0]
    assert "protected: 1 kept, 0 lost" in by_run.err
    both = mt("translate", "--model", run.path, "--protect", "placeholders", "--protect", r"\d", stdin=text)
    assert "protected: 2 kept, 0 lost" in both.err
    none = mt("translate", "--model", run.path, "--protect", "none", stdin=text)
    assert not any("protected" in line for line in none.err)
    assert "{date}" not in none.lines[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--protect number", "--protect: 'number' is no kind; give tags, placeholders, numbers, urls, emails, or a regular expression"),
        ("--protect none --protect numbers", "--protect: 'none' goes alone: leave it out, or the others"),
        ("--protect x(", "--protect: 'x(' is no regular expression: missing ), unterminated subpattern at position 1"),
        ("--fail-on lost", "--fail-on lost goes with --protect, which says what is not to be lost: add it"),
    ],
)
def test_mistakes_are_one_line(run: RunDir, words: str, message: str) -> None:
    done = mt("translate", "--model", run.path, *words.split(), stdin=b"bage .\n")
    assert (done.code, done.out, done.err) == (2, b"", [message])


def test_a_document_keeps_what_is_protected_and_says_it_once(run: RunDir, tmp_path: Path) -> None:
    source = tmp_path / "x.po"
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    source.write_text(f'{head}msgid "bage {{date}} depe ."\nmsgstr ""\n', encoding="utf-8")
    words = ["translate", "--model", run.path, "--input", source]
    plain = mt(*words, "--output", tmp_path / "plain.po")
    assert any(line.startswith("warning: 1 unit lost a placeholder") for line in plain.err)
    kept = mt(*words, "--output", tmp_path / "kept.po", "--protect", "placeholders")
    assert "protected: 1 kept, 0 lost" in kept.err
    assert not any("lost a placeholder" in line for line in kept.err)
    assert (tmp_path / "kept.po").read_text(encoding="utf-8").count("{date}") == 2
