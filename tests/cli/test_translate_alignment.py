"""`mt translate --alignment`: every word of a translation is linked to one of the source, and the Python API says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import in_float64, lively_run, mt

LONG = " ".join(f"{line.rstrip(' .')} ." for line in toy.sentences(6, seed=9))
LINES = ["bage depe .", "", "  fide\tgome ", *toy.sentences(3, seed=5), LONG]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=0.5", "decode.beam=3", "data.max_pieces=40")


def records(run: RunDir, *words: str | Path) -> list[dict[str, Any]]:
    done = mt("translate", "--model", run.path, "--format", "jsonl", *words, stdin=TEXT)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.lines]


@pytest.mark.parametrize("words", ["--greedy", "--n-best 3", "--sample --n-best 2", "--mbr 4 --n-best 2"])
def test_each_word_of_each_translation_has_one_link(run: RunDir, words: str) -> None:
    """Of lines in parts too."""
    for line, record in zip(LINES, records(run, *words.split(), "--alignment"), strict=True):
        assert bool(record["hypotheses"]) == bool(line)
        for one in record["hypotheses"]:
            pairs = [tuple(map(int, pair.split("-"))) for pair in one["alignment"].split()]
            assert record["source_units"] == line.split()
            assert one["units"] == one["text"].split()
            assert [target for _, target in pairs] == [*range(len(one["units"]))]
            assert all(0 <= source < len(record["source_units"]) for source, _ in pairs)


def test_all_else_is_as_without(run: RunDir) -> None:
    plain, more = records(run, "--n-best", "2"), records(run, "--n-best", "2", "--alignment")
    for record in more:
        record.pop("source_units", None)
        for one in record["hypotheses"]:
            del one["alignment"], one["units"]
    assert more == plain


def test_the_python_api_says_the_same_whatever_the_batches(run: RunDir) -> None:
    translator = in_float64(run)
    whole = [one.alignments for one in translator.translate(LINES, beam=3, align=True)]
    assert [one.alignments for one in translator.translate(LINES, beam=3, align=True, batch_tokens=1)] == whole
    assert [list(map(str, own)) for own in whole] == [
        [one["alignment"] for one in record["hypotheses"]] for record in records(run, "--beam", "3", "--alignment")
    ]
    assert all(one.alignments == [] for one in translator.translate(LINES))


def test_two_models_look_together(run: RunDir) -> None:
    twice = Translator.ensemble([run.path, run.path]).translate(LINES[:1], align=True)
    assert twice[0].alignments == Translator.load(run.path).translate(LINES[:1], align=True)[0].alignments


def test_without_spaces_between_words_pieces_are_linked(tmp_path: Path) -> None:
    run = lively_run(tmp_path, "langs={src: ja, tgt: zh}", "decode.max_length_factor=0.5")
    tokenizers = Translator.load(run.path).tokenizers
    for line, record in zip(LINES, records(run, "--alignment"), strict=True):
        for one in record["hypotheses"]:
            assert record["source_units"] == tokenizers.src.pieces(tokenizers.src.encode(line))
            assert one["units"] == tokenizers.tgt.pieces(one["ids"])
            assert len(one["alignment"].split()) == len(one["ids"])


@pytest.mark.parametrize("name", ["text", "tsv"])
def test_only_jsonl_has_a_place_for_it(run: RunDir, name: str) -> None:
    done = mt("translate", "--model", run.path, "--alignment", "--format", name, stdin=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert done.err == [f"--alignment needs --format jsonl: {name} has no place for it"]


# ── the coverage penalty ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_coverage_penalty_is_told_and_counted(run: RunDir) -> None:
    """Lines in parts too; a run may have it in its config."""
    plain = records(run, "--n-best", "3")
    ranked = records(run, "--n-best", "3", "--coverage-penalty", "0.5")
    assert any(one["hypotheses"][:1] != other["hypotheses"][:1] for one, other in zip(plain, ranked, strict=True))
    assert {one.get("coverage", 0) < 0 for record in ranked for one in record["hypotheses"]} == {True, False}
    for record in ranked:
        scores = [one["score"] for one in record["hypotheses"]]
        assert scores == sorted(scores, reverse=True)
        for one in record["hypotheses"]:
            assert one["score"] == pytest.approx(one["log_prob"] / len(one["token_log_probs"]) + one.get("coverage", 0))
    assert records(run, "--n-best", "3", "--coverage-penalty", "0") == plain
    assert not any("coverage" in one for record in plain for one in record["hypotheses"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--greedy --coverage-penalty 0.2", "coverage-penalty 0.2 ranks what a beam finished: give a beam of 2 or more"),
        ("--sample --coverage-penalty 0.2", "--coverage-penalty 0.2 ranks what a beam finished, and samples are not ranked: leave out one"),
        ("--coverage-penalty nan", "coverage-penalty nan: give a number from 0 (none) to 10"),
    ],
)
def test_a_coverage_penalty_that_cannot_be_met_is_one_line(run: RunDir, words: str, message: str) -> None:
    done = mt("translate", "--model", run.path, *words.split(), stdin=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert [line.removeprefix("mt: ") for line in done.err] == [message]
