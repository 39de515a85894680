"""The mean of checkpoints: which ones, of which weights, and that a run which was interrupted keeps the same ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from mt.checkpoint import ranked, read_state, read_weights, scores_of
from mt.rundir import RunDir
from mt.translator import Translator
from tests import runs
from tests.runs import Done, Silent, contents, differences, four_updates, journal, train, tree

pytestmark = pytest.mark.usefixtures("quiet")

TEN = ("train.max_updates=10", "train.keep=1", "train.average.best=3", "train.early_stopping.metric=loss", "train.ema=0.5")
ROUGH = ("train.optimizer.lr=0.3", "train.schedule.warmup=3")
"""Steps so large that a later checkpoint is often the worse one."""


def assert_mean(run: RunDir, name: str, steps: list[int], which: str | None = None) -> None:
    parts = [read_weights(run.step(update), which) for update in steps]  # type: ignore[arg-type]
    for key, tensor in read_weights(run.find(name)).items():
        torch.testing.assert_close(tensor, torch.stack([part[key] for part in parts]).mean(dim=0))


@pytest.fixture
def rough(folder: Path) -> RunDir:
    """Ten updates of which the best three are averaged."""
    assert train(four_updates(folder, *TEN, *ROUGH)).code == 0
    return RunDir(folder / "run")


def losses(run: RunDir) -> dict[int, float]:
    return {event["update"]: event["loss"] for event in journal(run) if event["event"] == "validated"}


def test_the_best_are_kept_and_averaged(rough: RunDir) -> None:
    told = losses(rough)
    best = sorted(sorted(told, key=told.__getitem__)[:3])
    assert set(rough.steps()) == {*best, 10}  # keep: 1
    assert read_state(rough.average)["average_of"] == [rough.step(update).name for update in best]
    assert_mean(rough, "average", best)
    assert {update: scores_of(read_state(rough.step(update)))["loss"] for update in best} == {update: told[update] for update in best}


def test_a_run_that_was_interrupted_keeps_and_averages_the_same(rough: RunDir, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = RunDir(folder / "again")
    settings = (*TEN, *ROUGH, f"run_dir={again.path}")
    for number in (3, 4, 7):
        stop = Silent(lambda update, number=number: os.kill(os.getpid(), signal.SIGTERM) if update == number else None)  # type: ignore[misc]
        monkeypatch.setattr("mt.launch.run.Console", lambda stop=stop, **_: stop)
        assert train(four_updates(folder, *settings), resume=True).code == 143
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent())
    assert train(four_updates(folder, *settings), resume=True).code == 0
    assert (again.steps(), again.names()) == (rough.steps(), rough.names())
    for update in rough.steps():
        assert differences(contents(again.step(update)), contents(rough.step(update))) == []
    assert read_state(again.average) == read_state(rough.average)
    assert tree(again.average) == tree(rough.average)


def test_of_equals_the_earlier_is_better_and_a_damaged_one_is_none(rough: RunDir) -> None:
    steps = rough.steps()
    for update in steps:
        file = rough.step(update) / "state.json"
        state = json.loads(file.read_text("utf-8"))
        state["progress"]["scores"] = {"bleu": 3.0, "loss": float(update)}
        file.write_text(json.dumps(state), encoding="utf-8")
    assert ranked(rough, steps, "bleu") == ranked(rough, steps, "loss") == steps
    assert ranked(rough, steps, "chrf") == []
    (rough.step(steps[0]) / "state.json").write_text("{", encoding="utf-8")
    assert ranked(rough, steps, "bleu") == steps[1:]


# ── mt average ──────────────────────────────────────────────────────────────────────────────────────────────────────


def mt(run: RunDir, *words: str, capsys: pytest.CaptureFixture[str]) -> Done:
    return runs.mt("average", "--model", run.path, *words, capsys=capsys)


def test_the_means_that_can_be_asked_for(rough: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    names, told = rough.names(), losses(rough)
    best, steps = sorted(sorted(told, key=told.__getitem__)[:2]), rough.steps()
    for words, output, expected in (
        (("--last", "2"), "two", steps[-2:]),
        (("--best", "2"), "better", best),
        (("--checkpoint", "last", "--checkpoint", str(steps[0])), "chosen", [steps[-1], steps[0]]),
    ):
        done = mt(rough, *words, "--output", output, capsys=capsys)
        assert (done.code, rough.names()) == (0, names)
        assert done.lines[0] == f"{output}: the mean of {', '.join(rough.step(update).name for update in expected)}"
        assert done.lines[1].startswith("best: loss ")
        assert done.lines[2].startswith(f"{output}: loss ")
        assert_mean(rough, output, expected)
        assert Translator.load(rough.path, output, device="cpu").translate(["bage ."])[0].text is not None
    assert mt(rough, "--last", "2", "--weights", "raw", "--output", "two", capsys=capsys).code == 0
    assert_mean(rough, "two", steps[-2:], "raw")


def test_the_scores_are_those_of_a_validation(rough: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    update = rough.steps()[0]
    assert mt(rough, "--checkpoint", str(update), "--output", "one", capsys=capsys).code == 0
    assert scores_of(read_state(rough.find("one"))) == pytest.approx(scores_of(read_state(rough.step(update))))


def test_without_its_dev_set_a_run_is_averaged_all_the_same(rough: RunDir, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "valid.src").unlink()
    done = mt(rough, "--last", "9", "--output", "all", capsys=capsys)
    assert done.code == 0
    assert done.says("all: not scored, ")
    assert done.says(f"only {len(rough.steps())} of 9 checkpoints are there")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "nothing to average: give --last N, --best N, or --checkpoint STEP several times"),
        (("--last", "2", "--best", "2"), "--last and --best: give one of the two"),
        (("--last", "2", "--output", "a/b"), "--output a/b: give a name of letters"),
        (("--last", "2", "--output", "best"), "--output best: give a name of letters"),
        (("--last", "2", "--output", "step-00000009"), "--output step-00000009: give a name of letters"),
        (("--last", "2", "--output", "x" * 101), "give a name of letters"),
        (("--last", "2", "--device", "gpu"), "device gpu: no such device"),
        (("--checkpoint", "3"), "no checkpoint '3'; there are: last, best, average, 2, 4"),
        (("--checkpoint", "last", "--checkpoint", "average"), "average cannot be the mean of itself"),
    ],
)
def test_what_cannot_be_is_one_line(
    copied: tuple[Path, str], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], problem: str
) -> None:
    run = RunDir(copied[1].removeprefix("run_dir="))
    shutil.copytree(run.step(4), run.average)
    done = mt(run, *words, capsys=capsys)
    assert (done.code, len(done.lines)) == (2, 1)
    assert problem in done.lines[0]


def test_a_checkpoint_of_another_model_is_named(copied: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    run = RunDir(copied[1].removeprefix("run_dir="))
    file = run.step(4) / "model.safetensors"
    weights = load_file(file)
    name, tensor = next(iter(weights.items()))
    for harmed in ({**weights, name: tensor[:1].clone()}, {key: value for key, value in weights.items() if key != name}):
        save_file(harmed, file)
        done = mt(run, "--last", "2", capsys=capsys)
        assert (done.code, len(done.lines)) == (2, 1)
        assert done.says(str(run.step(4)))
        assert done.says(name)


@pytest.mark.parametrize("harm", [{"scores": [1]}, {"scores": {"bleu": "x"}}, {"progress": 7}, {"progress": {"scores": 7}}])
def test_scores_that_are_none_do_not_count(copied: tuple[Path, str], capsys: pytest.CaptureFixture[str], harm: dict[str, object]) -> None:
    run = RunDir(copied[1].removeprefix("run_dir="))
    state = run.step(4) / "state.json"
    state.write_text(json.dumps(read_state(run.step(4)) | harm), encoding="utf-8")
    done = mt(run, "--best", "2", capsys=capsys)
    assert (done.code, done.lines[1]) == (0, f"average: the mean of {run.step(2).name}")


def test_what_is_the_best_is_not_written_over(copied: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    run = RunDir(copied[1].removeprefix("run_dir="))
    shutil.copytree(run.step(4), run.average)
    run.set_names(best=run.average)
    done = mt(run, "--last", "2", capsys=capsys)
    assert (done.code, done.lines) == (2, [f'--output average: is what "best" of {run.path} stands for; give another name'])
