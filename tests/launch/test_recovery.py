"""Damage to a run, and ends that are moved: it goes on from what is whole, says so, and comes to the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mt.checkpoint import PARTIAL
from mt.errors import RunError
from mt.rundir import RunDir
from tests.runs import Done, contents, differences, final_test, four_updates, journal, train, tree

pytestmark = pytest.mark.usefixtures("quiet")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


HARM: dict[str, Callable[[Path], object]] = {
    "truncated weights": lambda step: truncate(step / "model.safetensors"),
    "no state": lambda step: (step / "state.json").unlink(),
    "half a state": lambda step: truncate(step / "state.json"),
    "empty trainer": lambda step: (step / "trainer.pt").write_bytes(b""),
    "truncated trainer": lambda step: truncate(step / "trainer.pt"),
    "nothing": shutil.rmtree,
}


@pytest.fixture(scope="module")
def whole(finished: tuple[Path, Done], tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Six updates without a break."""
    folder = finished[0]
    run = RunDir(tmp_path_factory.mktemp("whole") / "run")
    assert train(four_updates(folder, final_test(folder), "train.max_updates=6", f"run_dir={run.path}")).code == 0
    return run


def go_on(copied: tuple[Path, str], *overrides: str) -> Done:
    """Resume the copy of the run of four updates, to six."""
    folder, run_dir = copied
    return train(four_updates(folder, final_test(folder), run_dir, "train.max_updates=6", *overrides), resume=True)


def assert_equal(run: RunDir, whole: RunDir) -> None:
    assert differences(contents(run.step(6)), contents(whole.step(6))) == []
    assert journal(run) == journal(whole)
    assert run.names() == whole.names()
    assert json.loads(run.test_scores.read_text("utf-8")) == json.loads(whole.test_scores.read_text("utf-8"))


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_taken(
    copied: tuple[Path, str], tmp_path: Path, whole: RunDir, harm: str
) -> None:
    run = RunDir(tmp_path / "copy")
    HARM[harm](run.step(4))
    done = go_on(copied)
    assert done.says("copy/checkpoints/step-00000004")
    assert done.says("goes on from step-00000002, the newest checkpoint that is whole")
    assert done.says("resuming at update 2")
    assert_equal(run, whole)


def test_if_none_is_whole_that_is_one_line_and_nothing_changes(copied: tuple[Path, str], tmp_path: Path) -> None:
    run = RunDir(tmp_path / "copy")
    for update in run.steps():
        HARM["empty trainer"](run.step(update))
    before = tree(run.path)
    with pytest.raises(RunError, match="step-00000004/trainer.pt: cannot be read .* no whole one before it; .* --overwrite$"):
        go_on(copied)
    assert tree(run.path) == before


def test_damaged_names_are_forgotten(copied: tuple[Path, str], tmp_path: Path, whole: RunDir) -> None:
    run = RunDir(tmp_path / "copy")
    run.names_file.write_bytes(b"")
    assert go_on(copied).says("names.json: is damaged: which checkpoint was the best is forgotten")
    assert differences(contents(run.step(6)), contents(whole.step(6))) in ([], ["state"])
    assert run.names().keys() == {"best", "last"}


def test_if_the_best_is_gone_the_next_is_the_best(copied: tuple[Path, str], tmp_path: Path) -> None:
    run = RunDir(tmp_path / "copy")
    run.set_names(best=run.step(1))
    state = json.loads((run.step(4) / "state.json").read_text("utf-8"))
    state["progress"]["best"] = 100.0
    (run.step(4) / "state.json").write_text(json.dumps(state), encoding="utf-8")
    assert go_on(copied).code == 0
    assert run.names()["best"] == "step-00000006"


def test_what_a_kill_left_of_a_rotation_is_gone(copied: tuple[Path, str], tmp_path: Path, whole: RunDir) -> None:
    """Killed after the names were set: the old checkpoints are still there, one of them half-deleted."""
    run = RunDir(tmp_path / "copy")
    shutil.copytree(run.step(4), run.step(3))
    shutil.copytree(run.step(4), run.step(1).with_name(f"step-00000001{PARTIAL}"))
    (run.path / "reports" / f".test.json.0a1b{PARTIAL}").write_bytes(b"{")
    assert go_on(copied).code == 0
    assert_equal(run, whole)
    assert run.steps() == [2, 4, 6]
    assert list(run.path.rglob(f"*{PARTIAL}")) == []


def test_a_checkpoint_that_was_to_be_replaced_is_put_back(copied: tuple[Path, str], tmp_path: Path, whole: RunDir) -> None:
    """Killed between the two renames, where the same update was saved again."""
    run = RunDir(tmp_path / "copy")
    shutil.copytree(run.step(4), run.step(4).with_name(f"step-00000004{PARTIAL}"))
    run.step(4).rename(run.step(4).with_name(f"step-00000004.old{PARTIAL}"))
    assert go_on(copied).says("resuming at update 4")
    assert_equal(run, whole)
    assert run.steps() == [2, 4, 6]


def test_harmless_changes_are_said(copied: tuple[Path, str], tmp_path: Path) -> None:
    done = go_on(copied, "train.keep=1", "data.workers=0", "train.validation.every=3")
    said = "data.workers 0 (was auto), train.keep 1 (was 5), train.max_updates 6 (was 4), train.validation.every 3 (was 2)"
    assert done.says(f"{tmp_path / 'copy'}: goes on with {said}")


# ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────────


AVERAGE = ("train.average.last=2", "train.early_stopping.metric=loss", "train.optimizer.lr=0.3", "train.schedule.warmup=3")
"""Steps so large that the mean of two is better than either."""


def test_killed_after_the_last_update_what_comes_then_is_done(folder: Path) -> None:
    """Between the average and its name, before the average, before the scores, and before the end was told."""
    run = RunDir(folder / "run")
    assert train(four_updates(folder, *AVERAGE)).code == 0
    before, told, weights = run.names(), run.journal.read_bytes(), (run.average / "model.safetensors").read_bytes()
    assert before["best"] == "average"
    for names, average in ({"best": run.step(4)}, True), ({"best": run.step(4)}, False), ({}, True):
        run.set_names(**names)
        run.test_scores.unlink()
        run.journal.write_bytes(told[: told.rindex(b'{"event"')])
        if not average:
            shutil.rmtree(run.average)
        done = train(four_updates(folder, *AVERAGE), resume=True)
        assert done.says("is finished already (the limit of 4 updates)")
        assert (run.names(), run.journal.read_bytes()) == (before, told)
        assert (run.average / "model.safetensors").read_bytes() == weights
    assert not train(four_updates(folder, *AVERAGE), resume=True).says("average")


def test_an_average_that_is_the_best_has_to_be_beaten(folder: Path) -> None:
    run = RunDir(folder / "run")
    assert train(four_updates(folder, *AVERAGE)).code == 0
    state = json.loads((run.average / "state.json").read_text("utf-8"))
    (run.average / "state.json").write_text(json.dumps(state | {"scores": {"loss": 0.001}}), encoding="utf-8")
    weights = (run.average / "model.safetensors").read_bytes()
    done = train(four_updates(folder, *AVERAGE, "train.max_updates=6"), resume=True)
    assert done.says("average: no better than the one of an earlier end, which stays")
    assert run.names() == {"best": "average", "last": "step-00000006"}
    assert (run.average / "model.safetensors").read_bytes() == weights
    assert [event["best"] for event in journal(run) if event["event"] == "validated"][-1] is False
