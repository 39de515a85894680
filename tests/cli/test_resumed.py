"""`mt translate --resume-output`: killed at any time, the same command comes to the same file; and the bar on a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mt.cli.text_output import line_count, progress
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

LINES = ["bage depe .", "", *toy.sentences(9, seed=5), "fide ."]


class KilledError(BaseException):
    """Ends the process as far as the file can see."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=0.5", "decode.beam=3")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.src"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.mark.parametrize("words", ["", "--sample --temperature 1.5 --format jsonl", "--format tsv --n-best 2"])
def test_killed_after_any_window_it_comes_to_the_same(run: RunDir, source: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr("mt.translator.WINDOW", 4)
    monkeypatch.setattr("mt.synthesize.resumed.WINDOW", 4)
    out, whole = source.with_name("out"), source.with_name("whole")
    command = ["translate", "--model", run.path, "--input", source, "--resume-output", *words.split(), "--output"]
    assert mt(*command, whole).code == 0
    text = mt("translate", "--model", run.path, "--input", source, *words.split()).lines
    assert text == whole.read_text(encoding="utf-8").splitlines()
    command.append(out)
    real = Translator._window

    def once(self: Translator, lines: list[str], wishes: Any, numbers: Sequence[int], **named: Any) -> Iterator[object]:
        if numbers[0] == 5:
            raise KilledError
        yield from real(self, lines, wishes, numbers, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "_window", once)
        with pytest.raises(KilledError):
            mt(*command)
    assert not out.exists()
    assert (source.parent / "out.partial").is_dir()
    changed = mt(*command, "--length-penalty", "0.3")
    assert (changed.code, "was begun otherwise" in changed.err[-1]) == (2, True)
    done = mt(*command)
    assert (done.code, done.out) == (0, b"")
    assert done.err[0] == f"{out}: goes on after 4 lines"
    assert out.read_bytes() == whole.read_bytes()
    assert not (source.parent / "out.partial").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--output out", "--resume-output needs --input FILE: <stdin> is read only once"),
        ("--input {source}", "--output -: a file is needed, that a killed process can go on with"),
        ("--input {source} --output out --fail-on empty", "--fail-on does not go with --resume-output"),
        ("--input {source} --output {source}", "the same file as the input|an input, too"),
    ],
)
def test_what_cannot_be_gone_on_with(run: RunDir, source: Path, words: str, complaint: str) -> None:
    done = mt("translate", "--model", run.path, "--resume-output", *words.format(source=source).split())
    assert done.code == 2
    assert any(part in done.err[-1] for part in complaint.split("|"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_counts_the_lines_of_a_file_on_a_terminal_only(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert line_count(source) == len(LINES)
    assert line_count(source.with_name("none")) is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress(source, Path("out")) as bar:
        assert (bar.disable, bar.total) == (False, len(LINES))
    with progress(Path("-"), Path("out")) as bar:
        assert bar.disable
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(source, Path("out")) as bar:
        assert bar.disable


def test_lines_are_told_as_they_are_translated(run: RunDir) -> None:
    told: list[int] = []
    found = Translator.load(run.path).stream(LINES, batch_tokens=20, done=told.append)
    next(iter(found))
    assert sum(told) == len(LINES)
    assert len(told) > 3
