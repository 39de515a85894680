"""Several `--model` are one: in `mt translate`, `mt eval` and `mt score`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mt.rundir import RunDir
from mt.search.ensemble import Mix
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

LINES = ["bage depe .", "", *toy.sentences(4, seed=5)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two of one vocabulary and different depth, one of another vocabulary."""
    short = ("decode.max_length_factor=0.5", "decode.beam=3")
    folders = [tmp_path_factory.mktemp(name) for name in ("a", "b", "c")]
    extra = [(), ("model.decoder_layers=2", "model.norm=post"), ("tokenizer.vocab_size=60",)]
    found: list[RunDir] = [lively_run(folder, *short, *more) for folder, more in zip(folders, extra, strict=True)]
    return [run.path for run in found]


def test_translate_is_the_python_api(runs: list[Path]) -> None:
    for words, mix in (([], Mix()), (["--ensemble", "log", "--ensemble-weights", "2,1"], Mix("log", (2, 1)))):
        done = mt("translate", "--model", runs[0], "--model", runs[1], *words, stdin=TEXT)
        assert done.code == 0
        assert done.lines == [one.text for one in Translator.ensemble(runs[:2], mix=mix).translate(LINES)]
    assert done.out != mt("translate", "--model", runs[0], stdin=TEXT).out


def test_a_run_with_itself_is_the_run(runs: list[Path]) -> None:
    once, twice = (mt("translate", *["--model", runs[0]] * times, stdin=TEXT) for times in (1, 2))
    assert (once.code, once.out) == (twice.code, twice.out)


def test_score_gives_what_the_ensemble_reported(runs: list[Path], tmp_path: Path) -> None:
    models = ["--model", runs[0], "--model", runs[1], "--ensemble", "log"]
    jsonl = mt("translate", *models, "--format", "jsonl", stdin=TEXT).out
    done = mt("score", *models, "--input", "-", "--json", tmp_path / "s.json", stdin=jsonl)
    assert done.code == 0
    said = [h["log_prob"] for line in jsonl.decode().splitlines() for h in json.loads(line)["hypotheses"]]
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert [one["log_prob"] for one in found["translations"]] == pytest.approx(said, abs=1e-4)
    assert found["model"] == [str(run) for run in runs[:2]]


def test_eval_says_what_was_judged(runs: list[Path], tmp_path: Path) -> None:
    for name in ("src", "ref"):
        (tmp_path / name).write_bytes(TEXT)
    words = ["--src", tmp_path / "src", "--ref", tmp_path / "ref", "--metrics", "chrf", "--json", tmp_path / "s.json"]
    assert mt("eval", "--model", runs[0], "--model", runs[1], *words).code == 0
    about = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["hypotheses"]
    assert about["models"] == [str(run) for run in runs[:2]]


def test_refusals(runs: list[Path]) -> None:
    def refused(*words: str | Path) -> str:
        done = mt("translate", *words, stdin=TEXT)
        assert done.code == 2
        return "\n".join(done.err)

    other = refused("--model", runs[0], "--model", runs[2])
    assert other == f"{runs[2]}: has another vocabulary than {runs[0]}; only models with the same tokenizer make an ensemble"
    assert refused("--model", runs[0], "--ensemble", "log") == "--ensemble goes with several models: give --model RUN again for each"
    both = ("--model", runs[0], "--model", runs[1])
    assert refused(*both, "--ensemble-weights", "1") == "1 weights for 2 models: give one for each, in the same order"
    assert refused(*both, "--ensemble-weights", "a,b").startswith("--ensemble-weights a,b: give a number for each model")
    assert "give a number above 0 for each model" in refused(*both, "--ensemble-weights", "0,1")
