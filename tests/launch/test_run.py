"""A run from start to end, in this process: what it leaves, and that it can be repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.checkpoint import read_weights
from mt.config.load import load
from mt.errors import DataError
from mt.evaluate.metrics import score
from mt.rundir import RunDir
from mt.train import loop
from mt.translator import Translator
from tests import toy
from tests.runs import Done, Silent, contents, differences, final_test, four_updates, journal, train, tree

AT_THE_END = "best: ", "warning: BLEU 0.00 on the dev set", "scoring ", "final: ", "translate with: "
pytestmark = pytest.mark.usefixtures("quiet")


def test_a_run_is_one_self_contained_directory(finished: tuple[Path, Done]) -> None:
    folder, done = finished
    run = RunDir(folder / "run")
    assert done.code == 0
    assert {path.name for path in run.path.iterdir()} == {
        *("config.yaml", "tokenizer.model", "data", "journal.jsonl", "starts.jsonl", "tensorboard", "checkpoints", "reports")
    }
    assert run.steps() == [2, 4]
    assert run.names()["last"] == "step-00000004"
    assert load(run.config).config.train.precision == "fp32"  # effective: nothing is left to be derived
    assert sorted(path.name for path in folder.iterdir() if path.name not in ("run", "toy.yaml")) == sorted(
        f"{name}.{side}" for name in ("train", "valid", "test") for side in ("src", "trg")
    )


def test_a_run_says_what_it_is(finished: tuple[Path, Done]) -> None:
    folder, done = finished
    parameters = sum(tensor.numel() for tensor in read_weights(RunDir(folder / "run").step(4)).values())
    for expected in (
        "train.src: kept 40 of 40 pairs",
        "valid.src: 4 of 4 pairs",
        "tokenizer.model: 120 pieces",
        f"model: {parameters} parameters; device cpu",
        "precision fp32",
        "data: 40 pairs, ",
        f"run: {folder / 'run'}, until 4 updates; curves: tensorboard --logdir {folder / 'run' / 'tensorboard'}",
        "on the dev set",
        f"translate with: mt translate --model {folder / 'run'} --input FILE",
    ):
        assert done.says(expected), (expected, done.lines)
    assert all("\n" not in line for line in done.lines)


def test_the_end_names_the_best_checkpoint_with_its_score(finished: tuple[Path, Done], folder: Path) -> None:
    run = RunDir(finished[0] / "run")
    best = max(event["scores"]["bleu"] for event in journal(run) if event["event"] == "validated")
    assert f"best: {run.find('best')}, BLEU {best:.2f} on the dev set" in finished[1].lines
    assert finished[1].says(f"warning: BLEU {best:.2f} on the dev set after 4 updates: it has hardly begun to learn")
    without = train(four_updates(folder, "data.dev=none"))
    assert without.lines[-2] == f"best: {RunDir(folder / 'run').step(4)}, the last one, as nothing was validated"


def test_the_journal_tells_the_run(finished: tuple[Path, Done]) -> None:
    events = journal(RunDir(finished[0] / "run"))
    assert [(event["event"], event["update"]) for event in events] == [
        *(("update", 1), ("update", 2), ("validated", 2), ("update", 3), ("update", 4), ("validated", 4), ("ended", 4))
    ]
    assert all(0 < event["lr"] < 1 and event["loss"] > 0 and event["norm"] > 0 for event in events if event["event"] == "update")
    assert (events[2]["beam"], events[2]["weights"], len(events[2]["samples"])) == (1, "raw", 1)
    assert "tok:13a" in events[2]["signatures"]["bleu"]


def test_tensorboard_shows_the_numbers_of_the_journal(finished: tuple[Path, Done]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = RunDir(finished[0] / "run")
    board = EventAccumulator(str(run.tensorboard))
    board.Reload()
    for kind, tag, key in (("update", "train/loss", "loss"), ("update", "train/lr", "lr"), ("validated", "dev/loss", "loss")):
        expected = [(event["update"], pytest.approx(event[key], rel=1e-5)) for event in journal(run) if event["event"] == kind]
        assert [(point.step, point.value) for point in board.Scalars(tag)] == expected


def test_a_validation_can_be_repeated_exactly(finished: tuple[Path, Done]) -> None:
    """The scores in the journal are those of the checkpoint's own translations of the dev set."""
    run = RunDir(finished[0] / "run")
    told = next(event for event in journal(run) if event["event"] == "validated" and event["update"] == 4)
    translator = Translator.load(run.path, "4", device="cpu", weights=told["weights"])
    lines, references = ((finished[0] / f"valid.{side}").read_text(encoding="utf-8").splitlines() for side in ("src", "trg"))
    texts = [one.text for one in translator.translate(lines, beam=told["beam"])]
    again = score(texts, [references], metrics=("bleu", "chrf"), lang=None)
    assert (again["bleu"].score, again["chrf"].score) == (told["scores"]["bleu"], told["scores"]["chrf"])
    assert again["bleu"].signature == told["signatures"]["bleu"]


def test_the_test_sets_are_scored_at_the_end(finished: tuple[Path, Done]) -> None:
    folder, done = finished
    report = json.loads((folder / "run" / "reports" / "test.json").read_text(encoding="utf-8"))
    bleu = report["final"]["metrics"][0]
    translator = Translator.load(folder / "run", device="cpu")
    lines, references = ((folder / f"test.{side}").read_text(encoding="utf-8").splitlines() for side in ("src", "trg"))
    expected = score([one.text for one in translator.translate(lines)], [references], metrics=("bleu",), lang=None)
    assert bleu["score"] == expected["bleu"].score
    assert report["final"]["beam"] == 5
    assert done.says(f"final: BLEU {bleu['score']:.2f}  {bleu['signature']}  beam 5")


def test_the_same_seed_gives_the_same_run_to_the_bit(finished: tuple[Path, Done], tmp_path: Path) -> None:
    folder = finished[0]
    overrides = ["model.dropout=0.2", "data.dev=none"]
    runs = {name: RunDir(tmp_path / name) for name in ("one", "two", "other")}
    for name, run in runs.items():
        train(four_updates(folder, *overrides, f"run_dir={run.path}", f"train.seed={2 if name == 'other' else 1}"))
    one, two, other = (contents(run.step(4)) for run in runs.values())
    assert differences(one, two) == []
    assert differences(one, other) != []
    losses = {name: [event["loss"] for event in journal(run) if event["event"] == "update"] for name, run in runs.items()}
    assert losses["one"] == losses["two"] != losses["other"]


def test_without_a_dev_set(folder: Path) -> None:
    done = train(four_updates(folder, "data.dev=none"))
    run = RunDir(folder / "run")
    assert done.code == 0
    assert run.names() == {"best": "step-00000004", "last": "step-00000004"}
    assert [event["event"] for event in journal(run)] == ["update"] * 4 + ["ended"]


def test_the_average_of_the_last_checkpoints(folder: Path) -> None:
    done = train(four_updates(folder, "train.average.last=2", "train.ema=0.5", "train.early_stopping.metric=loss"))
    run = RunDir(folder / "run")
    parts = [read_weights(run.step(update)) for update in (2, 4)]
    average = read_weights(run.find("average"))
    assert average.keys() == parts[0].keys()
    for name, tensor in average.items():
        torch.testing.assert_close(tensor, (parts[0][name] + parts[1][name]) / 2)
    assert done.says("average: the mean of step-00000002, step-00000004")
    assert Translator.load(run.path, "average", device="cpu").translate(["bage ."])[0].text is not None
    losses = {event["update"]: event["loss"] for event in journal(run) if event["event"] == "validated"}
    told = next(line for line in done.lines if line.startswith("average: loss"))
    is_best = run.names()["best"] == "average"
    assert done.lines[-2].startswith(f"best: {run.find('best')}, loss ")
    assert is_best == (float(told.split()[2].rstrip(",")) < round(min(losses.values()), 3))


def test_a_dry_run_checks_everything_and_leaves_nothing(folder: Path, finished: tuple[Path, Done]) -> None:
    before = tree(folder)
    done = train(four_updates(folder, final_test(folder)), dry_run=True)
    assert done.code == 0
    told = {line.replace(str(finished[0]), str(folder)) for line in finished[1].lines if not line.startswith(AT_THE_END)}
    assert told <= set(done.lines)
    assert tree(folder) == before
    assert not (folder / "run").exists()
    with pytest.raises(DataError, match="nowhere"):
        train(four_updates(folder, f"data.test.final.src={folder}/nowhere", f"data.test.final.tgt={folder}/test.trg"), dry_run=True)


def test_training_that_blows_up_keeps_what_was_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rate = loop.rate_of
    monkeypatch.setattr(loop, "rate_of", lambda state, *rest: float("inf") if state.progress.update >= 2 else rate(state, *rest))
    with pytest.raises(Exception, match="3 updates in a row had a non-finite loss or gradient .*the last good checkpoint is step-00000002"):
        train(four_updates(folder, "train.max_skipped=3", "train.max_updates=50", "train.save_every=2", "data.dev=none"))
    assert all(torch.isfinite(tensor).all() for tensor in read_weights(RunDir(folder / "run").find("last")).values())


def test_weights_that_the_last_update_broke_are_not_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rate = loop.rate_of
    monkeypatch.setattr(loop, "rate_of", lambda state, *rest: float("inf") if state.progress.update == 3 else rate(state, *rest))
    with pytest.raises(Exception, match="no longer finite after update 4; the last good checkpoint is step-00000002"):
        train(four_updates(folder, "data.dev=none"))
    assert RunDir(folder / "run").steps() == [2]


def test_the_console_counts_towards_the_end_that_epochs_make(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[str, Any] = {}

    def console(**given: Any) -> Silent:
        limits.update(given)
        return Silent()

    monkeypatch.setattr("mt.launch.run.Console", console)
    config = toy.config(folder, *toy.TINY, "data.dev=none", "train.max_epochs=2")
    train(config)
    made = [event["update"] for event in journal(RunDir(folder / "run")) if event["event"] == "update"]
    assert limits["total"] == made[-1]
