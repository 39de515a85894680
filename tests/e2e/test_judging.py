"""What training says of a model is what judging it afterwards says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mt.rundir import RunDir
from tests import toy
from tests.runs import journal, mt

SETTINGS = ("train.max_updates=100", "train.validation={every: 50, beam: 2, max_lines: 30}", "train.save_every=50")


@pytest.mark.parametrize("settings", [("train.ema=0.9",), ("train.precision=bf16",)], ids=["average", "bf16"])
def test_each_validation_is_what_mt_eval_says_of_its_checkpoint(
    settings: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy.write_corpus(tmp_path)
    toy.config_file(tmp_path)
    run, scores = RunDir(tmp_path / "run"), tmp_path / "scores.json"
    words = ["--config", str(tmp_path / "toy.yaml"), "--run-dir", str(run.path), "--device", "cpu"]
    assert mt("train", *words, *(w for one in (*SETTINGS, *settings) for w in ("--set", one)), capsys=capsys).code == 0
    validations = [event for event in journal(run) if event["event"] == "validated"]
    assert [one["update"] for one in validations] == [50, 100]
    for one in validations:
        named = ["--checkpoint", one["update"], "--beam", one["beam"], "--precision", one["precision"], "--weights", one["weights"]]
        files = ["--src", tmp_path / "valid.src", "--ref", tmp_path / "valid.trg", "--max-lines", one["lines"], "--metrics", "bleu,chrf"]
        done = mt("eval", "--model", run.path, *map(str, (*named, *files)), "--json", scores, capsys=capsys)
        assert done.code == 0
        found = json.loads(scores.read_text(encoding="utf-8"))
        assert found["lines"] == one["lines"] == 30
        assert [metric["score"] for metric in found["metrics"]] == [one["scores"]["bleu"], one["scores"]["chrf"]]
        alone = {metric["name"]: metric["signature"].replace("bs:1000|seed:12345|", "") for metric in found["metrics"]}
        assert list(alone.values()) == [one["signatures"]["bleu"], one["signatures"]["chrf"]]
    assert validations[-1]["scores"]["bleu"] > 1  # of nothing at all, all would be equal
