"""The loop: what happens between updates, and how a run ends."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.errors import TrainError
from mt.rundir import RunDir
from mt.train.events import Ended, Event, Saved, Update, Validated
from mt.train.loop import AHEAD, Plan, fit, patience_lost, reason_to_end
from mt.train.signals import Stop
from mt.train.state import State
from tests.runs import contents, differences
from tests.train import tiny
from tests.train.tiny import break_gradients


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
    assert found[-1].reason == "the limit of 2 epochs"


def test_minutes_add_up_over_resumes(run: RunDir) -> None:
    state = tiny.state()
    state.progress.seconds = 59.9999
    found = list(events(state, run, max_minutes=1.0))
    assert len([event for event in found if isinstance(event, Update)]) < 20
    assert isinstance(found[-1], Ended)
    assert found[-1].reason == "the limit of 1 minute"
    assert found[-1].seconds >= 60
    assert state.progress.seconds >= 60


def test_the_time_of_a_run_is_told_by_what_it_went_to_resumes_included(run: RunDir) -> None:
    class Slow(tiny.Scripted):
        def __call__(self, loss: torch.nn.Module) -> Any:
            time.sleep(0.2)
            return super().__call__(loss)

    first, second = tiny.state(), tiny.state()
    plan = {"last_update": 4, "validate_every": 2}
    found = list(events(first, run, plan=plan, validator=Slow("bleu", [1.0])))
    spent = [event.shares for event in found if isinstance(event, Validated | Ended)]
    assert [next(iter(shares)) for shares in spent] == ["validation"] * 3
    assert all(0.9 < sum(shares.values()) <= 1 for shares in spent)
    assert all(share > 0 for share in spent[-1].values())
    told = found[-1]
    assert isinstance(told, Ended)
    second.restore(run.step(4))
    assert second.progress.end(told.reason) == told
    second.progress.ended = None
    *_, told = events(second, run, plan={"last_update": 6})
    before, after = (vars(state.progress.spent) for state in (first, second))
    assert isinstance(told, Ended)
    assert after["validation"] == before["validation"]
    assert after["model"] > before["model"]
    assert sum(told.shares.values()) <= 1


def test_the_first_limit_reached_ends_the_run() -> None:
    state = tiny.state()
    state.progress.update = 5
    everything = tiny.cfg(max_epochs=3, max_minutes=2.0)
    plan = Plan(**{**vars(tiny.PLAN), "last_update": 6})
    assert reason_to_end(state, everything, plan, Stop()) is None
    state.progress.update = 6
    assert reason_to_end(state, everything, plan, Stop()) == "the limit of 6 updates"
    state.progress.update, state.progress.seconds = 5, 120.0
    assert reason_to_end(state, everything, plan, Stop()) == "the limit of 2 minutes"


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
    assert state.progress.ended is None  # it goes on later
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
    assert state.progress.ended == "the limit of 3 updates"


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


# ── begun ahead, as on a GPU ────────────────────────────────────────────────────────────────────────────────────────


def told(event: Event) -> Any:
    """All that an event says but for times."""
    if isinstance(event, Saved):
        return event.update
    return replace(event, **{name: 0.0 for name in ("seconds", "waited", "optimizing") if hasattr(event, name)}, **without_shares(event))


def without_shares(event: Event) -> dict[str, Any]:
    return {"shares": {}} if hasattr(event, "shares") else {}


def lived(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, ahead: int, skip: int | None = None, ema: float = 0.9, **rest: Any
) -> tuple[list[Any], Any]:
    """A run in which so many updates are begun before one is read: what it told, and its last checkpoint. Gradient `skip` is broken."""
    monkeypatch.setitem(AHEAD, "cpu", ahead)
    run, state = RunDir(folder / str(ahead)), tiny.state(tiny.cfg(ema=ema), dropout=0.3)
    begun = count(1)
    break_gradients(state, when=lambda: next(begun) == skip)
    validator = tiny.Scripted("bleu", [2.0, 6.0, 4.0, 6.0, 5.0, 4.0])
    data = tiny.Data(tiny.batch(4, 6, seed=1), tiny.batch(3, seed=2), epoch=4)
    found = [told(event) for event in events(state, run, validator=validator, data=data, ema=ema, **rest)]
    return found, contents(run.step(run.steps()[-1]))


@pytest.mark.parametrize(
    "rest",
    [
        {"plan": {"last_update": 9, "validate_every": 4, "save_every": 3}},
        {"plan": {"validate_every": 5, "save_every": 100}, "max_epochs": 3},
        {"plan": {"validate_every": 2}, "early_stopping": {"patience": 2}},
        {"plan": {"last_update": 7, "validate_every": 1}},
    ],
    ids=["updates", "epochs", "patience", "each validated"],
)
def test_updates_begun_ahead_of_others_are_the_same_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: Any) -> None:
    expected, checkpoint = lived(monkeypatch, tmp_path, ahead=0, **rest)
    for ahead in (1, 2, 5):
        found, other = lived(monkeypatch, tmp_path, ahead=ahead, **rest)
        assert found == expected
        assert differences(checkpoint, other) == []


def test_a_skip_that_is_known_late_leaves_weights_and_counts_as_one_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the rate of those that were begun meanwhile, and their share in the average: both are constant here."""
    monkeypatch.setattr("mt.train.loop.rate_of", lambda *_: 1e-3)
    rest: Any = {"plan": {"last_update": 9, "validate_every": 4}, "skip": 5, "ema": 0.05}
    expected, checkpoint = lived(monkeypatch, tmp_path, ahead=0, **rest)
    assert [event.update for event in expected if isinstance(event, Update) and event.skipped] == [2]
    found, other = lived(monkeypatch, tmp_path, ahead=2, **rest)
    assert found == expected
    assert differences(checkpoint, other) == []


def test_asked_to_stop_what_was_begun_is_made_and_saved(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AHEAD, "cpu", 2)
    stop, state = Stop(), tiny.state()
    found = events(state, run, plan={"validate_every": 50}, validator=tiny.Scripted("bleu", [1.0]), stop=stop)
    assert stop_at(3, found, stop) == ["Update 1", "Update 2", "Update 3", "Update 4", "Update 5", "Saved 5", "Ended 5"]
    assert state.progress.ended is None


def test_endless_skipping_ends_a_run_whose_updates_are_begun_ahead(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AHEAD, "cpu", 2)
    state = tiny.state()
    break_gradients(state)
    with pytest.raises(TrainError, match="3 updates in a row"):
        list(events(state, run, max_skipped=3))
    assert state.progress.update == 0
