"""What a checkpoint holds is all there is: restored into anything, training goes on as if nothing had happened."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from mt.data.plan import Cursor
from mt.errors import RunError
from mt.rundir import RunDir
from mt.train.events import Spent
from mt.train.state import Progress, State
from mt.train.update import update
from tests.runs import contents, differences
from tests.train import tiny

CONFIG = tiny.cfg(ema=0.9)


def train(state: State, *numbers: int) -> list[float]:
    """Updates on batches of their own; the losses."""
    return [update(state, [tiny.batch(4, 6, seed=n)], cfg=CONFIG, lr=1e-2, start=0.0).loss for n in numbers]


@pytest.fixture
def saved(tmp_path: Path) -> tuple[RunDir, State]:
    run = RunDir(tmp_path / "run")
    state = tiny.state(CONFIG, dropout=0.3)
    state.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    train(state, 1, 2, 3)
    state.progress.cursor = Cursor(2, 5, 7)
    state.progress.best, state.progress.stale, state.progress.ended = 1.5, 2, "interrupted"
    assert state.save(run) == run.step(3)
    return run, state


def test_restored_it_goes_on_as_if_nothing_had_happened(saved: tuple[RunDir, State], tmp_path: Path) -> None:
    run, state = saved
    expected = train(state, 4, 5)
    state.save(RunDir(tmp_path / "whole"))

    other = tiny.state(CONFIG, seed=99, dropout=0.3)
    other.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    train(other, 7)  # it has a history of its own, which must not matter
    other.restore(run.step(3))
    torch.testing.assert_close(other.scaler.get_scale(), 256.0)
    assert train(other, 4, 5) == expected
    other.save(RunDir(tmp_path / "resumed"))
    assert differences(contents(RunDir(tmp_path / "whole").step(5)), contents(RunDir(tmp_path / "resumed").step(5))) == []


def test_progress_of_before_times_were_told_apart(saved: tuple[RunDir, State]) -> None:
    values = json.loads((saved[0].step(3) / "state.json").read_text(encoding="utf-8"))["progress"]
    del values["spent"]
    read = Progress.from_json({**values, "waited": 2.5})
    assert read.spent == Spent(data=2.5)
    assert read.update == 3


def test_counters_and_position_come_back(saved: tuple[RunDir, State]) -> None:
    run, state = saved
    other = tiny.state(CONFIG)
    other.restore(run.step(3))
    assert other.progress == state.progress
    assert isinstance(other.progress.cursor, Cursor)


def test_restoring_keeps_the_parameters_that_the_optimiser_holds(saved: tuple[RunDir, State]) -> None:
    run, _ = saved
    other = tiny.state(CONFIG)
    before = [id(p) for p in other.model.parameters()]
    other.restore(run.step(3))
    assert [id(p) for p in other.model.parameters()] == before


def test_progress_is_plain_json() -> None:
    progress = Progress(update=3, cursor=Cursor(1, 2, 3), best=4.5, spent=Spent(model=2.5))
    assert Progress.from_json(json.loads(json.dumps(asdict(progress)))) == progress


def test_the_moving_average_is_what_is_evaluated() -> None:
    state = tiny.state(CONFIG)
    train(state, 1, 2)
    assert state.ema is not None
    raw = [p.detach().clone() for p in state.model.parameters()]
    average = [tensor.clone() for tensor in state.ema.average.values()]
    with state.evaluated():
        assert all(torch.equal(p, a) for p, a in zip(state.model.parameters(), average, strict=True))
    assert all(torch.equal(p, r) for p, r in zip(state.model.parameters(), raw, strict=True))


def test_without_a_moving_average_the_weights_are_evaluated() -> None:
    state = tiny.state()
    before = [p.detach().clone() for p in state.model.parameters()]
    with state.evaluated():
        assert all(torch.equal(p, b) for p, b in zip(state.model.parameters(), before, strict=True))


def test_a_checkpoint_of_another_model_is_refused(saved: tuple[RunDir, State]) -> None:
    run, _ = saved
    other = tiny.slope_state(1.0, 2.0, config=CONFIG)
    with pytest.raises(RunError, match="step-00000003: other parameters than this model has"):
        other.restore(run.step(3))
