"""Resumed equals uninterrupted, to the last bit: weights, optimiser, moving average, generators, counters, and the lines of the journal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mt.rundir import RunDir
from tests import toy
from tests.runs import Silent, contents, differences, journal, train

EVERYTHING_RANDOM = (
    *toy.TINY,
    "model.dropout=0.2",
    "model.attention_dropout=0.1",
    "model.activation_dropout=0.1",
    "model.word_dropout=0.1",
    "train.r_drop=5",
    "tokenizer.sample={bpe_dropout: 0.1}",
    "train.accumulate=2",
    "train.ema=0.9",
    "train.schedule.warmup=15",
    "train.max_updates=20",
    "train.save_every=5",
    "train.keep=9",
    "train.validation={every: 10, samples: 1, attention: 0}",
    "decode.max_length_factor=0.5",
)


class KilledError(BaseException):
    """Ends the process as far as the run can see."""


def at(number: int, act: Callable[[], None]) -> Silent:
    """Do something right after an update was made, and told."""
    return Silent(lambda update: act() if update == number else None)


def kill() -> None:
    raise KilledError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resume")
    toy.write_corpus(folder, train=60, dev=3, test=1)
    return folder


def go(folder: Path, name: str, console: Silent, *overrides: str, resume: bool = False) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.launch.run.Console", lambda **_: console)
        return train(toy.config(folder, *EVERYTHING_RANDOM, f"run_dir={folder / name}", *overrides), resume=resume).code


@pytest.fixture(scope="module")
def whole(folder: Path) -> RunDir:
    """Twenty updates without a break."""
    assert go(folder, "whole", Silent()) == 0
    run = RunDir(folder / "whole")
    assert {0, 1} <= {event["epoch"] for event in journal(run) if event["event"] == "update"}, "the test should see the end of an epoch"
    return run


def assert_equal(resumed: RunDir, whole: RunDir) -> None:
    assert differences(contents(resumed.step(20)), contents(whole.step(20))) == []
    assert journal(resumed) == journal(whole)
    assert resumed.names() == whole.names()


@pytest.mark.parametrize("number", [6, 8, 13])
def test_killed_between_checkpoints(folder: Path, whole: RunDir, number: int) -> None:
    """What came after the newest checkpoint is done again, the same."""
    with pytest.raises(KilledError):
        go(folder, f"killed at {number}", at(number, kill))
    run = RunDir(folder / f"killed at {number}")
    assert run.names()["last"] == f"step-{number // 5 * 5:08d}"
    assert len(journal(run)) >= number  # the journal is ahead of the checkpoint
    assert go(folder, run.path.name, Silent(), resume=True) == 0
    assert_equal(run, whole)
    assert run.steps() == whole.steps()


@pytest.mark.parametrize(("number", "name", "code"), [(7, "SIGTERM", 143), (10, "SIGINT", 130), (15, "SIGTERM", 143)])
def test_stopped_by_a_signal(folder: Path, whole: RunDir, number: int, name: str, code: int) -> None:
    """Also where a validation is due at that very update, or a checkpoint."""
    run = RunDir(folder / f"{name} at {number}")
    ask = at(number, lambda: os.kill(os.getpid(), signal.Signals[name]))
    assert go(folder, run.path.name, ask) == code
    assert run.names()["last"] == f"step-{number:08d}"
    assert journal(run)[-1]["reason"] == "interrupted"
    assert go(folder, run.path.name, Silent(), resume=True) == 0
    assert_equal(run, whole)
    for step in (10, 15):  # also the one that was saved when the signal came
        assert differences(contents(run.step(step)), contents(whole.step(step))) == []


def test_stopped_again_and_again(folder: Path, whole: RunDir) -> None:
    run = RunDir(folder / "often")
    for number in range(3, 20, 4):
        assert go(folder, "often", at(number, lambda: os.kill(os.getpid(), signal.SIGTERM)), resume=True) == 143
    assert go(folder, "often", Silent(), resume=True) == 0
    assert_equal(run, whole)


def test_stopped_in_the_last_update_it_is_finished(folder: Path, whole: RunDir) -> None:
    run = RunDir(folder / "last")
    assert go(folder, "last", at(20, lambda: os.kill(os.getpid(), signal.SIGTERM))) == 143
    assert_equal(run, whole)


def test_killed_while_a_checkpoint_is_written(folder: Path, whole: RunDir) -> None:
    """At every stage of it: half-written, renamed but not named yet, named but the old ones not deleted yet."""
    for stage in ("mt.checkpoint.torch.save", "mt.rundir.RunDir.set_names", "mt.train.loop.rotate"):
        run = RunDir(folder / stage)
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
            go(folder, stage, at(8, lambda stage=stage, patch=patch: patch.setattr(stage, lambda *_, **__: kill())))  # type: ignore[misc]
        assert go(folder, stage, Silent(), resume=True) == 0
        assert_equal(run, whole)
        assert list(run.path.rglob("*.partial")) == []


def test_allowed_changes_do_not_touch_the_training_itself(folder: Path, whole: RunDir) -> None:
    run = RunDir(folder / "changed")
    with pytest.raises(KilledError):
        go(folder, "changed", at(8, kill))
    changes = ("train.save_every=4", "train.keep=1", "train.validation={every: 3, beam: 2}", "train.early_stopping.metric=loss")
    assert go(folder, "changed", Silent(), *changes, "decode.beam=2", resume=True) == 0
    ours, theirs = (contents(one.step(20)) for one in (run, whole))
    assert [name for name in differences(ours, theirs) if name != "state"] == []
    updates = [[event for event in journal(one) if event["event"] == "update"] for one in (run, whole)]
    assert updates[0] == updates[1]
    assert [event["update"] for event in journal(run) if event["event"] == "validated"] == [6, 9, 12, 15, 18, 20]
