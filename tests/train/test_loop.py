"""The loop: one update from its micro-batches, and what happens between updates."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mt.data.batches import Batch
from mt.errors import TrainError
from mt.rundir import RunDir
from mt.train.events import Ended, Event, Saved, Update, Validated
from mt.train.loop import Plan, fit, patience_lost, reason_to_end, update
from mt.train.signals import Stop
from mt.train.state import State
from tests.runs import contents, differences
from tests.train import tiny


def gradient_at_step(state: State, *micro: Batch, clip_norm: float = 0.0) -> tuple[Update, list[Tensor]]:
    """Make an update; the gradient as the optimiser was given it."""
    seen: list[Tensor] = []

    def look(*_: Any) -> None:
        seen.extend(p.grad.clone() for p in state.model.parameters() if p.grad is not None)

    handle = state.optimizer.register_step_pre_hook(look)
    event = update(state, micro, cfg=tiny.cfg(clip_norm=clip_norm), lr=1e-3, epoch=0, start=0.0)
    handle.remove()
    return event, seen


def snapshot(state: State) -> dict[str, Tensor]:
    """Copies of the weights, the optimiser's tensors and the moving average."""
    tensors = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    for i, values in state.optimizer.state_dict()["state"].items():
        tensors |= {f"{i}/{name}": torch.as_tensor(value).clone() for name, value in values.items()}
    if state.ema:
        tensors |= {f"ema/{name}": tensor.clone() for name, tensor in state.ema.average.items()}
    return tensors


def unchanged(before: dict[str, Tensor], after: dict[str, Tensor]) -> bool:
    return before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def break_gradients(state: State, *, when: Any = lambda: True) -> None:
    """Let a gradient be infinite whenever `when` says so."""
    parameter = next(iter(state.model.parameters()))
    parameter.register_hook(lambda grad: torch.full_like(grad, math.inf) if when() else grad)


# ── one update ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_micro_batches_add_up_to_the_whole_batch() -> None:
    whole = tiny.batch(8, 1, 3, 12, 2)
    rows = [slice(0, 1), slice(1, 2), slice(2, 5)]  # cut out of the whole, so with padding where it is not needed
    parts = [
        Batch(whole.src_BS[r], whole.inputs_BT[r], whole.gold_BT[r], int((whole.gold_BT[r] != 0).sum()), 1, whole.origins[r]) for r in rows
    ]
    event, expected = gradient_at_step(tiny.state(), whole)
    split, found = gradient_at_step(tiny.state(), *parts)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    assert split.loss == pytest.approx(event.loss, abs=1e-6)
    assert split.norm == pytest.approx(event.norm, rel=1e-5)
    assert split.tokens == event.tokens == sum(part.tokens for part in parts)


def test_a_short_group_is_divided_by_its_own_tokens() -> None:
    """The last group of an epoch has fewer micro-batches than `accumulate` says."""
    one, expected = gradient_at_step(tiny.state(), tiny.batch(4))
    state = tiny.state(tiny.cfg(accumulate=8))
    event, found = gradient_at_step(state, tiny.batch(4))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert event.loss == one.loss


def test_the_loss_is_for_each_target_token() -> None:
    state, batch = tiny.state(), tiny.batch(6, 2)
    with torch.no_grad():
        total, _ = state.loss(batch.src_BS, batch.inputs_BT, batch.gold_BT)
    event, _ = gradient_at_step(state, batch)
    assert event.loss == pytest.approx(total.item() / (7 + 3))
    assert (event.tokens, event.src_tokens, event.padded) == (10, 10, 28)


def test_clipping_keeps_the_direction_and_tells_the_true_norm() -> None:
    free, gradient = gradient_at_step(tiny.state(), tiny.batch(5))
    clipped, short = gradient_at_step(tiny.state(), tiny.batch(5), clip_norm=free.norm / 4)
    assert clipped.norm == free.norm
    for one, other in zip(short, gradient, strict=True):
        torch.testing.assert_close(one, other / 4, rtol=1e-4, atol=1e-8)
    loose, same = gradient_at_step(tiny.state(), tiny.batch(5), clip_norm=4 * free.norm)
    assert loose.norm == free.norm
    assert all(torch.equal(a, b) for a, b in zip(same, gradient, strict=True))


def test_gradients_do_not_pile_up_over_updates() -> None:
    state = tiny.slope_state(3.0, 4.0)
    norms = [gradient_at_step(state, tiny.batch(3))[0].norm for _ in range(3)]
    assert norms == [5.0, 5.0, 5.0]


@pytest.mark.parametrize("scaled", [False, True], ids=["no scaler", "loss scaler"])
def test_a_gradient_that_is_not_finite_changes_nothing(scaled: bool) -> None:
    config = tiny.cfg(ema=0.5)
    state = tiny.state(config)
    if scaled:
        state.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    bad = False
    break_gradients(state, when=lambda: bad)
    for _ in range(2):
        gradient_at_step(state, tiny.batch(4))
    before, bad = snapshot(state), True
    event, stepped = gradient_at_step(state, tiny.batch(4))
    assert (event.skipped, event.update, stepped) == (True, 2, [])
    assert not math.isfinite(event.norm)
    assert unchanged(before, snapshot(state))
    assert (state.progress.update, state.progress.skipped, state.progress.skipped_in_a_row) == (2, 1, 1)
    assert state.scaler.get_scale() == (512.0 if scaled else 1.0)
    bad = False
    event, _ = gradient_at_step(state, tiny.batch(4))
    assert (event.skipped, event.update) == (False, 3)
    assert (state.progress.skipped, state.progress.skipped_in_a_row) == (1, 0)
    assert not unchanged(before, snapshot(state))


def test_a_loss_that_is_not_finite_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if its gradient is."""
    state = tiny.slope_state(3.0, 4.0)
    before = snapshot(state)
    forward = state.loss.forward
    monkeypatch.setattr(state.loss, "forward", lambda *batch: (forward(*batch)[0] + math.nan, 1))
    event, stepped = gradient_at_step(state, tiny.batch(3))
    assert (event.skipped, event.norm, stepped) == (True, 5.0, [])
    assert unchanged(before, snapshot(state))


def test_the_moving_average_follows_each_update() -> None:
    state = tiny.state(tiny.cfg(ema=0.9))
    oracle = deepcopy(state.ema)
    assert oracle is not None
    for number in range(1, 4):
        gradient_at_step(state, tiny.batch(4))
        oracle.update(state.model, updates=number)
    assert state.ema is not None
    assert unchanged(oracle.average, state.ema.average)


# ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


def events(
    state: State,
    run: RunDir,
    *,
    plan: dict[str, Any] | None = None,
    validator: Any = None,
    stop: Stop | None = None,
    data: Any = None,
    **settings: Any,
) -> Iterator[Event]:
    values = {**vars(tiny.PLAN), **(plan or {})}
    cfg = tiny.cfg(**settings)
    return fit(state, data or tiny.Data(), cfg=cfg, plan=Plan(**values), run=run, validator=validator, stop=stop or Stop())


def story(found: Iterator[Event]) -> list[str]:
    """Events in few words."""
    return [f"{type(event).__name__} {event.update}" for event in found]


def test_the_run_validates_and_saves_in_turn_and_at_its_end(run: RunDir) -> None:
    plan = {"last_update": 5, "validate_every": 3, "save_every": 2}
    validator = tiny.Scripted("bleu", [2.0, 1.0])
    assert story(events(tiny.state(), run, plan=plan, validator=validator)) == [
        *("Update 1", "Update 2", "Saved 2", "Update 3", "Validated 3", "Saved 3", "Update 4", "Saved 4"),
        *("Update 5", "Validated 5", "Saved 5", "Ended 5"),
    ]
    assert run.names() == {"best": "step-00000003", "last": "step-00000005"}


def test_without_a_dev_set_the_best_is_the_last(run: RunDir) -> None:
    found = story(events(tiny.state(), run, plan={"last_update": 4, "validate_every": 1, "save_every": 2}))
    assert found == ["Update 1", "Update 2", "Saved 2", "Update 3", "Update 4", "Saved 4", "Ended 4"]
    assert run.names() == {"best": "step-00000004", "last": "step-00000004"}


def test_the_rate_is_that_of_the_schedule(run: RunDir) -> None:
    found = events(tiny.state(), run, plan={"last_update": 6}, optimizer={"lr": 8e-3})
    rates = [event.lr for event in found if isinstance(event, Update)]
    assert rates == pytest.approx([2e-3, 4e-3, 6e-3, 8e-3, 8e-3 * (4 / 5) ** 0.5, 8e-3 * (4 / 6) ** 0.5])


def test_epochs_end_the_run(run: RunDir) -> None:
    found = list(events(tiny.state(), run, data=tiny.Data(epoch=3), max_epochs=2))
    assert [event.epoch for event in found if isinstance(event, Update)] == [0, 0, 0, 1, 1, 1]
    assert isinstance(found[-1], Ended)
    assert found[-1].reason == "2 epochs"


def test_minutes_add_up_over_resumes(run: RunDir) -> None:
    state = tiny.state()
    state.progress.seconds = 59.9999
    found = list(events(state, run, max_minutes=1.0))
    assert len([event for event in found if isinstance(event, Update)]) < 20
    assert isinstance(found[-1], Ended)
    assert found[-1].reason == "1 minutes"
    assert found[-1].seconds >= 60
    assert state.progress.seconds >= 60


def test_the_first_limit_reached_ends_the_run() -> None:
    state = tiny.state()
    state.progress.update = 5
    everything = tiny.cfg(max_epochs=3, max_minutes=2.0)
    plan = Plan(**{**vars(tiny.PLAN), "last_update": 6})
    assert reason_to_end(state, everything, plan, Stop()) is None
    state.progress.update = 6
    assert reason_to_end(state, everything, plan, Stop()) == "6 updates"
    state.progress.update, state.progress.seconds = 5, 120.0
    assert reason_to_end(state, everything, plan, Stop()) == "2 minutes"


def stop_at(number: int, found: Iterator[Event], stop: Stop) -> list[str]:
    """Ask to stop as soon as that update was made."""
    told = []
    for event in found:
        told.append(f"{type(event).__name__} {event.update}")
        if isinstance(event, Update) and event.update == number:
            stop.signal = signal.SIGTERM
    return told


def test_asked_to_stop_the_run_saves_and_ends(run: RunDir) -> None:
    stop, state = Stop(), tiny.state()
    found = events(state, run, plan={"validate_every": 5}, validator=tiny.Scripted("bleu", [1.0]), stop=stop)
    assert stop_at(3, found, stop) == ["Update 1", "Update 2", "Update 3", "Saved 3", "Ended 3"]
    assert state.progress.ended == "interrupted"
    assert run.names() == {"last": "step-00000003"}


def test_a_validation_that_is_due_is_made_even_if_asked_to_stop(run: RunDir) -> None:
    """Else the resumed run would lack it, and not be the uninterrupted one."""
    stop = Stop()
    found = events(tiny.state(), run, plan={"validate_every": 3}, validator=tiny.Scripted("bleu", [1.0]), stop=stop)
    assert stop_at(3, found, stop)[-4:] == ["Update 3", "Validated 3", "Saved 3", "Ended 3"]
    assert run.names() == {"best": "step-00000003", "last": "step-00000003"}


def test_asked_to_stop_in_the_last_update_the_run_is_finished(run: RunDir) -> None:
    stop, state = Stop(), tiny.state()
    found = events(state, run, plan={"last_update": 3}, validator=tiny.Scripted("bleu", [1.0]), stop=stop)
    assert stop_at(3, found, stop)[-3:] == ["Validated 3", "Saved 3", "Ended 3"]
    assert state.progress.ended == "3 updates"


@pytest.mark.parametrize(
    ("metric", "scores", "best", "last"),
    [
        ("bleu", [2.0, 6.0, 4.0, 6.0, 5.9, 9.0], 2, 5),
        ("chrf", [30.0, 20.0, 10.0, 0.0], 1, 4),
        ("loss", [5.0, 3.0, 4.0, 3.0, 3.1], 2, 5),
        ("loss", [math.nan, math.nan, math.nan], None, 3),
    ],
)
def test_patience(run: RunDir, metric: str, scores: list[float], best: int | None, last: int) -> None:
    """Three validations that are no better than the best end the run; as good is no better."""
    validator = tiny.Scripted(metric, scores)
    found = list(
        events(tiny.state(), run, plan={"validate_every": 1}, validator=validator, early_stopping={"metric": metric, "patience": 3})
    )
    assert isinstance(found[-1], Ended)
    assert (found[-1].update, found[-1].reason) == (last, f"{metric} no better for 3 validations")
    assert run.names() == {"last": f"step-{last:08d}"} | ({"best": f"step-{best:08d}"} if best else {})
    assert max((event.update for event in found if isinstance(event, Validated) and event.best), default=None) == best


def test_no_patience_is_endless_patience(run: RunDir) -> None:
    settings: Any = {"plan": {"last_update": 8, "validate_every": 1}, "early_stopping": {"patience": 0}}
    found = list(events(tiny.state(), run, validator=tiny.Scripted("bleu", [9.0, 1.0]), **settings))
    assert found[-1].update == 8
    assert patience_lost(tiny.state(), tiny.cfg(early_stopping={"patience": 0})) is None


def test_another_metric_on_resume_starts_its_own_count(run: RunDir) -> None:
    """A loss of 3 is neither better nor worse than a BLEU of 2."""
    state = tiny.state()
    first: Any = {"plan": {"last_update": 2, "validate_every": 1}}
    list(events(state, run, validator=tiny.Scripted("bleu", [2.0, 1.0]), **first))
    state.progress.ended = None
    second: Any = {"plan": {"last_update": 4, "validate_every": 1}, "early_stopping": {"metric": "loss"}}
    list(events(state, run, validator=tiny.Scripted("loss", [3.0, 4.0]), **second))
    assert run.names()["best"] == "step-00000003"
    assert (state.progress.best, state.progress.stale) == (3.0, 1)


def test_nothing_but_skipped_updates_ends_the_run_with_an_error(run: RunDir) -> None:
    state = tiny.state()
    break_gradients(state, when=lambda: state.progress.update >= 4)
    message = r"3 updates in a row .*the newest with train.src:1.*the last good checkpoint is step-00000004.*train.optimizer.lr"
    with pytest.raises(TrainError, match=message):
        list(events(state, run, plan={"save_every": 2}, max_skipped=3))
    good = tiny.state(seed=9)
    good.restore(run.step(4))
    assert good.progress.update == 4
    assert all(torch.isfinite(p).all() for p in good.model.parameters())


def test_skipped_updates_from_the_start(run: RunDir) -> None:
    state = tiny.state()
    break_gradients(state)
    with pytest.raises(TrainError, match="no checkpoint was written yet"):
        list(events(state, run, max_skipped=3))


def test_a_skipped_update_is_told_and_made_up_for(run: RunDir) -> None:
    state = tiny.state()
    calls: list[int] = []

    def third() -> bool:
        calls.append(1)
        return len(calls) == 3

    break_gradients(state, when=third)
    found = list(events(state, run, plan={"last_update": 4}))
    updates = [event for event in found if isinstance(event, Update)]
    assert [(event.update, event.skipped) for event in updates] == [(1, False), (2, False), (2, True), (3, False), (4, False)]
    assert updates[2].lr == updates[3].lr  # the schedule did not move on
    assert isinstance(found[-1], Ended)
    assert found[-1].skipped == 1


def test_the_loop_is_a_generator_that_can_be_left(run: RunDir) -> None:
    found = events(tiny.state(), run, plan={"save_every": 2})
    assert [type(event) for event in islice(found, 3)] == [Update, Update, Saved]
    assert run.steps() == [2]


def test_two_loops_from_one_seed_are_equal_to_the_bit(tmp_path: Path) -> None:
    def losses(name: str, *, seed: int) -> tuple[list[float], dict[str, Any]]:
        run = RunDir(tmp_path / name)
        state = tiny.state(seed=seed, dropout=0.3)
        found = list(events(state, run, plan={"last_update": 4}))
        return [event.loss for event in found if isinstance(event, Update)], contents(run.step(4))

    one, two, other = losses("one", seed=5), losses("two", seed=5), losses("other", seed=6)
    assert one[0] == two[0]
    assert differences(one[1], two[1]) == []
    assert one[0] != other[0]
