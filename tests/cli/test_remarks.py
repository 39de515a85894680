"""`--fail-on`: all is translated and written, and then the exit code tells that a line has the flag."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mt.cli.remarks import named, waiting
from mt.rundir import RunDir
from tests import toy
from tests.translating import lively_run, mt

LINES = ["bage depe .", "", *toy.sentences(6, seed=5), "bage 漢 depe ."]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    short = ("decode.max_length_factor=0.5", "decode.max_length_extra=6", "tokenizer.byte_fallback=false")
    return lively_run(tmp_path_factory.mktemp("lively"), *short)


def test_the_exit_code_tells_that_a_line_has_the_flag(run: RunDir, tmp_path: Path) -> None:
    plain = mt("translate", "--model", run.path, "--format", "jsonl", stdin=TEXT)
    assert plain.code == 0
    flags = [json.loads(line)["flags"] for line in plain.lines]
    assert flags[1] == []
    assert "unknown" in flags[8]
    cut = [number for number, one in enumerate(flags, start=1) if "truncated" in one]
    assert cut, "the model is to be cut off now and then"
    out = tmp_path / "out"
    words = ["--fail-on", "unknown", "--fail-on", "truncated", "--fail-on", "split"]
    done = mt("translate", "--model", run.path, "--format", "jsonl", "--output", out, *words, stdin=TEXT)
    assert done.code == 3
    assert out.read_bytes() == plain.out
    assert done.err[-2:] == ["--fail-on unknown: line 9", f"--fail-on truncated: {named(cut)}"]


def test_no_line_has_it(run: RunDir) -> None:
    done = mt("translate", "--model", run.path, "--fail-on", "split", stdin=TEXT)
    assert (done.code, done.out) == (0, mt("translate", "--model", run.path, stdin=TEXT).out)


def test_a_document_names_the_units(run: RunDir, tmp_path: Path) -> None:
    path = tmp_path / "x.po"
    path.write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "bage 漢 depe ."\nmsgstr ""\n', encoding="utf-8"
    )
    done = mt("translate", "--model", run.path, "--input", path, "--output", tmp_path / "y.po", "--fail-on", "unknown")
    assert done.code == 3
    assert done.err[-1].startswith("--fail-on unknown: ")
    assert "x.po" in done.err[-1]
    assert (tmp_path / "y.po").exists()


def test_a_flag_that_there_is_not(run: RunDir) -> None:
    assert mt("translate", "--model", run.path, "--fail-on", "ugly", stdin=TEXT).code == 2


def test_numbers_that_this_processor_only_imitates_are_told(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    for has_bf16, told in (True, []), (False, ["warning: bf16 is imitated by this cpu, and slower than fp32: try --precision auto"]):
        monkeypatch.setattr("mt.model.device.multiplies_bf16", lambda _, has=has_bf16: has)
        done = mt("translate", "--model", run.path, "--precision", "bf16", "--device", "cpu", stdin=b"bage .\n")
        assert done.code == 0
        assert [line for line in done.err if "imitated" in line] == told


@pytest.mark.parametrize("watched", [True, False])
def test_what_takes_its_time_is_told_where_somebody_watches(
    watched: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    waiting("loading runs/demo")
    assert capsys.readouterr() == ("", "loading runs/demo …\n" if watched else "")
