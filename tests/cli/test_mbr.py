"""`mt translate --mbr`: the candidate with the highest expected score among all of them, and that score."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mt.decode.engine import Beam, Sampling
from mt.decode.mbr import Mbr, posterior
from mt.extras import install
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.comet import Judge, pretend_comet, share
from tests.oracle.expected_utility import expected_utility
from tests.translating import lively_run, mt

LONG = " ".join(f"{line.rstrip(' .')} ." for line in toy.sentences(6, seed=9))
LINES = ["bage depe .", "", *toy.sentences(3, seed=5), LONG]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=0.5", "decode.beam=3", "data.max_pieces=40")


def records(run: RunDir, *words: str | Path) -> list[list[dict[str, Any]]]:
    done = mt("translate", "--model", run.path, "--format", "jsonl", *words, stdin=TEXT)
    assert done.code == 0, done.err
    return [json.loads(line)["hypotheses"] for line in done.lines]


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@pytest.mark.parametrize("words", [["--sample", "--temperature", "1.5", "--seed", "4"], ["--beam", "6"]], ids=["samples", "beam"])
def test_the_nearest_to_all_is_taken(run: RunDir, words: list[str], utility: str) -> None:
    """Lines in parts too; the expected score is that of sacreBLEU, pair by pair."""
    candidates = records(run, *words, "--n-best", "6")
    chosen = records(run, *words, "--mbr", "6", "--mbr-utility", utility, "--n-best", "2")
    for all_, best in zip(candidates, chosen, strict=True):
        if not all_:
            assert best == []
            continue
        texts = [one["text"] for one in all_]
        probabilities = [1.0] * 6 if "--sample" in words else posterior([one["log_prob"] for one in all_])
        expected = dict(zip(texts, expected_utility(utility, texts, probabilities), strict=True))
        assert best[0]["utility"] == pytest.approx(max(expected.values()), abs=1e-6)
        assert [one["utility"] for one in best] == pytest.approx([expected[one["text"]] for one in best], abs=1e-6)
        assert len({one["text"] for one in best}) == len(best) == min(2, len(expected))


def test_plain_text_is_the_best_and_the_python_api_gives_the_same(run: RunDir) -> None:
    done = mt("translate", "--model", run.path, "--sample", "--mbr", "5", stdin=TEXT)
    assert done.code == 0
    found = Translator.load(run.path).translate(LINES, settings=Sampling(n_best=5, mbr=Mbr()))
    assert done.lines == [one.text for one in found]
    assert [len(one.hypotheses) for one in found] == [len(one.utilities) for one in found] == [1, 0, 1, 1, 1, 1]
    wide = mt("translate", "--model", run.path, "--mbr", "5", stdin=TEXT)  # the beam is as wide as it has to be
    searched = Translator.load(run.path).translate(LINES, settings=Beam(width=5, n_best=5, mbr=Mbr()))
    assert wide.lines == [one.text for one in searched]


def test_what_is_chosen_does_not_depend_on_batches(run: RunDir) -> None:
    one, other = (
        mt("translate", "--model", run.path, "--sample", "--mbr", "4", "--batch-tokens", n, stdin=TEXT).out for n in ("1", "4000")
    )
    assert one == other


@pytest.mark.parametrize("words", [["--sample", "--temperature", "1.5", "--seed", "4"], ["--beam", "6"]], ids=["samples", "beam"])
def test_comet_reads_the_line_and_all_pairs(run: RunDir, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    candidates = records(run, *words, "--n-best", "6")
    loaded = pretend_comet(monkeypatch)
    monkeypatch.setattr("mt.decode.mbr.PAIRS", 50)  # so that not all lines are put to the model at once
    chosen = records(run, *words, "--mbr", "6", "--mbr-utility", "comet", "--n-best", "2")
    assert loaded == ["/hub/Unbabel/wmt22-comet-da"]
    assert 1 < len(Judge.asked) < len(LINES)
    asked = [(one["src"], one["mt"], one["ref"]) for lot in Judge.asked for one in lot]
    assert len({*asked}) == len(asked)
    for line, all_, best in zip(LINES, candidates, chosen, strict=True):
        texts = [one["text"] for one in all_]
        assert {(mt_, ref) for src, mt_, ref in asked if src == line} >= {(one, other) for one in texts for other in texts}
        if not all_:
            assert best == []
            continue
        weights = [1.0] * 6 if "--sample" in words else posterior([one["log_prob"] for one in all_])
        pairs = [(other, weight / sum(weights)) for other, weight in zip(texts, weights, strict=True)]
        expected = {text: sum(weight * share(text, {*other.split()}) for other, weight in pairs) for text in texts}
        assert best[0]["utility"] == pytest.approx(max(expected.values()))
        assert [one["utility"] for one in best] == pytest.approx([expected[one["text"]] for one in best])


def test_comet_says_what_it_lacks_before_anything_is_translated(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_comet(monkeypatch)
    words = ("translate", "--model", run.path, "--mbr", "4", "--mbr-utility")
    asked: list[object] = []
    monkeypatch.setattr(Translator, "encoded", lambda _self, lines: asked.append(lines))
    done = mt(*words, "comet", "--comet-model", "none/such", stdin=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert done.err[-1].endswith("; give a checkpoint: --comet-model FILE.ckpt")
    monkeypatch.delitem(sys.modules, "comet")
    monkeypatch.setattr("mt.evaluate.neural.find_spec", lambda _name: None)
    done = mt(*words, "comet", stdin=TEXT)
    assert "the metric comet needs the package unbabel-comet, in an environment of its own" in done.err[-1]
    assert done.err[-1].endswith(f": {install('eval-neural', tested=False)}")
    assert asked == []
    assert "--comet-model x goes with --mbr-utility comet: add it" in mt(*words, "bleu", "--comet-model", "x", stdin=TEXT).err[-1]
