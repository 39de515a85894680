"""The options of `mt translate` that say what translations are to obey: the same as in Python, with every search; mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mt.decode.control import Control
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
