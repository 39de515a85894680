"""A run from start to end, in this process: what it leaves, what it refuses, and that nothing half-made is left behind."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.checkpoint import read_weights
from mt.config.load import load
from mt.config.schema import Config
from mt.errors import ConfigError, DataError, RunError
from mt.evaluate.metrics import score
from mt.rundir import RunDir
from mt.train import loop
from mt.translator import Translator
from tests import toy
from tests.runs import Done, Silent, contents, differences, journal, train

SHORT = (*toy.TINY, "train.max_updates=4", "train.save_every=2", "train.validation={every: 2, samples: 1}", "decode.max_length_factor=0.5")


def settings(folder: Path, *overrides: str) -> Config:
    """Four updates of a tiny model on the corpus in the folder."""
    return toy.config(folder, *SHORT, *overrides)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below, but for the lock."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A folder with a corpus and a finished run; tests that change something take a copy."""
    folder = tmp_path_factory.mktemp("finished")
    toy.write_corpus(folder, train=40, dev=4, test=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.train.run.Console", lambda **_: Silent())
        return folder, train(settings(folder, f"data.test.final={{src: {folder}/test.src, tgt: {folder}/test.trg}}"))


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.train.run.Console", lambda **_: Silent())


pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def folder(finished: tuple[Path, Done], tmp_path: Path) -> Path:
    """A corpus without a run."""
    for file in finished[0].iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
def copied(finished: tuple[Path, Done], tmp_path: Path) -> tuple[Path, str]:
    """The folder of the corpus, and the override that names a copy of its finished run."""
    shutil.copytree(finished[0] / "run", tmp_path / "copy")
    return finished[0], f"run_dir={tmp_path / 'copy'}"


def with_test(folder: Path) -> str:
    return f"data.test.final={{src: {folder}/test.src, tgt: {folder}/test.trg}}"


# ── what a run leaves ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_one_self_contained_directory(finished: tuple[Path, Done]) -> None:
    folder, done = finished
    run = RunDir(folder / "run")
    assert done.code == 0
    assert {path.name for path in run.path.iterdir()} == {
        *("config.yaml", "tokenizer.model", "data", "journal.jsonl", "tensorboard", "checkpoints", "reports")
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
        f"translate with: mt translate --model {folder / 'run'} --input FILE",
    ):
        assert done.says(expected), (expected, done.lines)
    assert all("\n" not in line for line in done.lines)


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
        train(settings(folder, *overrides, f"run_dir={run.path}", f"train.seed={2 if name == 'other' else 1}"))
    one, two, other = (contents(run.step(4)) for run in runs.values())
    assert differences(one, two) == []
    assert differences(one, other) != []
    losses = {name: [event["loss"] for event in journal(run) if event["event"] == "update"] for name, run in runs.items()}
    assert losses["one"] == losses["two"] != losses["other"]


def test_without_a_dev_set(folder: Path) -> None:
    done = train(settings(folder, "data.dev=none"))
    run = RunDir(folder / "run")
    assert done.code == 0
    assert run.names() == {"best": "step-00000004", "last": "step-00000004"}
    assert [event["event"] for event in journal(run)] == ["update"] * 4 + ["ended"]


def test_the_average_of_the_last_checkpoints(folder: Path) -> None:
    done = train(settings(folder, "train.average.last=2", "train.ema=0.5", "train.early_stopping.metric=loss"))
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
    assert is_best == (float(told.split()[2].rstrip(",")) < round(min(losses.values()), 3))


def test_a_dry_run_checks_everything_and_leaves_nothing(folder: Path, finished: tuple[Path, Done]) -> None:
    before = tree(folder)
    done = train(settings(folder, with_test(folder)), dry_run=True)
    assert done.code == 0
    assert [line for line in done.lines if not line.startswith(("translate with", "final"))] == [
        line.replace(str(finished[0]), str(folder)) for line in finished[1].lines if not line.startswith(("translate with", "final"))
    ]
    assert tree(folder) == before
    assert not (folder / "run").exists()
    with pytest.raises(DataError, match="nowhere"):
        train(settings(folder, f"data.test.final.src={folder}/nowhere", f"data.test.final.tgt={folder}/test.trg"), dry_run=True)


# ── an existing directory ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_not_touched_unless_that_is_asked_for(finished: tuple[Path, Done]) -> None:
    folder = finished[0]
    before = tree(folder / "run")
    with pytest.raises(RunError, match=r"run: there is a run here; go on with --resume, start over with --overwrite"):
        train(settings(folder))
    assert tree(folder / "run") == before


def test_overwrite_starts_over(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    assert train(settings(folder, run_dir, "train.max_updates=1"), overwrite=True).code == 0
    run = RunDir(tmp_path / "copy")
    assert run.steps() == [1]
    assert not run.reports.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_what_is_no_run_is_left_alone(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "thesis.tex").write_text("x", encoding="utf-8")
    for flags in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(RunError, match=r"run: not a run, but not empty either .it holds thesis.tex."):
            train(settings(folder), **flags)
    shutil.rmtree(folder / "run")
    (folder / "run").write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match="run: is a file"):
        train(settings(folder))


def test_what_a_killed_preparation_left_is_no_hindrance(folder: Path) -> None:
    run = RunDir(folder / "run")
    run.data.mkdir(parents=True)
    run.lock_file.write_text("999999999", encoding="utf-8")
    for debris in (run.data / "train.partial", run.path / "tokenizer.model", run.path / ".config.yaml.0a1b2c3d.partial"):
        debris.write_bytes(b"half")
    assert train(settings(folder, "data.dev=none", "train.max_updates=1")).code == 0
    assert {path.name for path in run.path.iterdir()} == {
        *("config.yaml", "tokenizer.model", "data", "journal.jsonl", "tensorboard", "checkpoints")
    }


def test_a_run_in_use_is_refused(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    run = RunDir(tmp_path / "copy")
    run.lock_file.write_text(str(os.getppid()), encoding="utf-8")
    before = tree(run.path)
    for flags in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(RunError, match=f"in use by process {os.getppid()}"):
            train(settings(folder, with_test(folder), run_dir), **flags)
    assert tree(run.path) == before


# ── resume ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_finished_run_says_so(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    run = RunDir(tmp_path / "copy")
    before = {name: content for name, content in tree(run.path).items() if not name.startswith("reports")}
    done = train(settings(folder, with_test(folder), run_dir), resume=True)
    assert done.code == 0
    assert done.says("is finished already (4 updates)")
    assert {name: content for name, content in tree(run.path).items() if not name.startswith("reports")} == before | {
        "config.yaml": run.config.read_bytes()
    }


def test_a_run_that_is_not_there_is_started(folder: Path) -> None:
    assert train(settings(folder, "data.dev=none"), resume=True).code == 0
    assert RunDir(folder / "run").steps() == [2, 4]


def test_a_finished_run_goes_on_to_a_later_end(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    longer = ("train.max_updates=6", "train.schedule.warmup=50")
    assert train(settings(folder, *longer, f"run_dir={tmp_path / 'whole'}", with_test(folder))).code == 0
    assert train(settings(folder, *longer, run_dir, with_test(folder)), resume=True).code == 0
    whole, extended = RunDir(tmp_path / "whole"), RunDir(tmp_path / "copy")
    assert differences(contents(whole.step(6)), contents(extended.step(6))) == []
    assert load(extended.config).config.train.max_updates == 6
    assert journal(whole) == journal(extended)


def test_changed_settings_are_refused_all_at_once(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    before = tree(tmp_path / "copy")
    with pytest.raises(ConfigError) as caught:
        train(settings(folder, with_test(folder), run_dir, "train.seed=2", "model.dropout=0.5", "train.keep=1"), resume=True)
    assert [line.split(" changed: ")[0].split()[-1] for line in caught.value.problems[:-1]] == ["model.dropout", "train.seed"]
    assert tree(tmp_path / "copy") == before


def test_changed_data_is_refused_by_name(folder: Path) -> None:
    train(settings(folder, "train.max_updates=2"))
    before = tree(folder / "run")
    with (folder / "train.trg").open("a", encoding="utf-8") as file:
        file.write("one more\n")
    with pytest.raises(RunError, match=f"cannot resume, the data changed: {folder / 'train.trg'}"):
        train(settings(folder), resume=True)
    assert tree(folder / "run") == before


def test_training_text_that_is_gone_does_no_harm(folder: Path) -> None:
    train(settings(folder, "train.max_updates=2"))
    (folder / "train.src").unlink()
    assert train(settings(folder), resume=True).code == 0
    assert RunDir(folder / "run").names()["last"] == "step-00000004"


def test_killed_before_its_first_checkpoint_it_starts_over_and_says_so(folder: Path) -> None:
    class KilledError(BaseException):
        pass

    def kill(number: int) -> None:
        if number == 1:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        patch.setattr("mt.train.run.Console", lambda **_: Silent(kill))
        train(settings(folder))
    run = RunDir(folder / "run")
    assert len(journal(run)) == 1
    done = train(settings(folder), resume=True)
    assert done.code == 0
    assert done.says("was stopped before its first checkpoint, starting over")
    assert [event["update"] for event in journal(run) if event["event"] == "update"] == [1, 2, 3, 4]


def test_when_a_checkpoint_cannot_be_written(folder: Path, finished: tuple[Path, Done]) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    def fill(number: int) -> None:
        if number == 3:
            patch.setattr("mt.checkpoint.save_file", full)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.train.run.Console", lambda **_: Silent(fill))
        with pytest.raises(RunError, match="step-00000004: cannot be saved .No space left on device."):
            train(settings(folder))
    run = RunDir(folder / "run")
    assert (run.steps(), run.names()["last"], run.lock_file.exists()) == ([2], "step-00000002", False)
    assert train(settings(folder), resume=True).code == 0
    assert differences(contents(run.step(4)), contents(RunDir(finished[0] / "run").step(4))) == []


# ── nothing is left behind ──────────────────────────────────────────────────────────────────────────────────────────

TROUBLE = {
    "no such file": ("data.train.0.src=nowhere.src", "nowhere.src"),
    "dev of other length": ("data.dev.tgt={folder}/test.trg", "4 lines, .* has 3"),
    "test of other length": ("data.test.x={{src: {folder}/test.src, tgt: {folder}/valid.trg}}", "3 lines, .* has 4"),
    "everything too long": ("data.max_pieces=1", "kept 0 of 40 pairs .40 longer than 1 piece"),
    "no such device": ("train.precision=fp16", "fp16 needs a CUDA device"),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_a_run_that_cannot_start_leaves_nothing_behind(folder: Path, name: str) -> None:
    override, message = TROUBLE[name]
    before = tree(folder)
    with pytest.raises((DataError, ConfigError), match=message):
        train(settings(folder, f"run_dir={folder}/deep/er/run", override.format(folder=folder)))
    assert tree(folder) == before
    assert not (folder / "deep").exists()


@pytest.mark.parametrize("name", ["everything too long", "no such device"])
def test_then_a_run_that_was_to_be_overwritten_is_still_there(copied: tuple[Path, str], tmp_path: Path, name: str) -> None:
    folder, run_dir = copied
    before = tree(tmp_path)
    override, message = TROUBLE[name]
    with pytest.raises((DataError, ConfigError), match=message):
        train(settings(folder, run_dir, override), overwrite=True)
    assert tree(tmp_path) == before
    assert train(settings(folder, with_test(folder), run_dir), resume=True).says("is finished already")


def test_training_that_blows_up_keeps_what_was_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rate = loop.rate_of
    monkeypatch.setattr(loop, "rate_of", lambda state, *rest: float("inf") if state.progress.update >= 2 else rate(state, *rest))
    with pytest.raises(Exception, match="3 updates in a row had a non-finite loss or gradient .*the last good checkpoint is step-00000002"):
        train(settings(folder, "train.max_skipped=3", "train.max_updates=50", "train.save_every=2", "data.dev=none"))
    assert all(torch.isfinite(tensor).all() for tensor in read_weights(RunDir(folder / "run").find("last")).values())
