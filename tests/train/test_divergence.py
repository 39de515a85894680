"""Numbers out of hand: what stops a run, what does not, and which checkpoint the message names."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.errors import TrainError
from mt.rundir import RunDir
from mt.train.divergence import FAR, HORIZON, calmer, follow, refuse_explosion
from mt.train.events import Saved, Update
from mt.train.loop import Plan, fit
from mt.train.monitor import Console, Journal
from mt.train.signals import Stop
from mt.train.state import Progress, State
from tests.runs import contents, differences
from tests.train import tiny
from tests.train.tiny import break_gradients


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


def go(state: State, run: RunDir, *, updates: int, every: int = 50, **settings: Any) -> list[float]:
    """Train on a handful of batches; the losses."""
    plan = Plan(**{**vars(tiny.PLAN), "last_update": updates, "save_every": every, "warmup": settings.pop("warmup", 20)})
    data: Any = tiny.Data(tiny.batch(5, 3, 8), epoch=7)
    events = fit(state, data, cfg=tiny.cfg(**settings), plan=plan, run=run, validator=None, stop=Stop())
    return [event.loss for event in events if isinstance(event, Update)]


# ── explosion ───────────────────────────────────────────────────────────────────────────────────────────────────────

WILD: dict[str, Any] = {"optimizer": {"lr": 20.0}, "warmup": 20_000}
"""A rate that is right while the warm-up is young, and far too high when it has gone on for a while."""


def test_a_loss_that_came_down_and_exploded_ends_the_run_and_names_a_checkpoint_from_before(run: RunDir) -> None:
    state = tiny.state()
    with pytest.raises(TrainError) as error:
        go(state, run, updates=3000, max_risen=60, keep=50, **WILD)
    words = str(error.value)
    found = re.fullmatch(
        r"the loss came down to ([\d.]+) and is ([\d.]+) now, more than 1 above it for 60 updates .train.max_risen.; "
        r"the last checkpoint from before that is step-0*(\d+). Lower train.optimizer.lr, .*; --resume would keep these as they are: "
        r"start over with --overwrite, or from step-0*\3, once it is \"best\" in \S+names.json, with "
        rf"--init-from {re.escape(str(run.path))} --run-dir NEW",
        words,
    )
    assert found, words
    lowest, now, named = float(found[1]), float(found[2]), int(found[3])
    assert now > lowest + FAR
    assert named < state.progress.update - 60
    good = tiny.state(seed=9)
    good.restore(run.step(named))
    batch = tiny.batch(5, 3, 8)
    with torch.no_grad():
        total, count = good.loss(batch.src_BS, batch.inputs_BT, batch.gold_BT)
    assert total / count < lowest + FAR  # of one checkpoint, at a rate that is high already


def test_the_way_on_is_from_the_best_checkpoint_where_that_is_a_good_one(run: RunDir) -> None:
    assert calmer(run).endswith("as they are: start over with --overwrite")
    state = tiny.state()
    state.save(run)
    for name in (run.step(0), run.average):
        run.set_names(best=name)
        for good in (None, [0]):
            assert calmer(run, good).endswith(f"--overwrite, or from {name.name} with --init-from {run.path} --run-dir NEW")
    run.set_names(best=run.step(7))
    assert f'or from step-00000000, once it is "best" in {run.names_file}, with --init-from' in calmer(run, [0])
    assert calmer(run, []).endswith("--overwrite")


def test_how_long_is_a_setting_and_0_is_for_ever(run: RunDir) -> None:
    progress = Progress()
    for loss in [2.0] * 150 + [9.0] * 150:
        progress.update += 1
        follow(progress, loss)
    assert 130 < progress.risen < 150
    for most in (0, progress.risen + 1):
        refuse_explosion(progress, cfg=tiny.cfg(max_risen=most), run=run)
    with pytest.raises(TrainError, match="no checkpoint is left from before that"):
        refuse_explosion(progress, cfg=tiny.cfg(max_risen=progress.risen), run=run)


@pytest.mark.parametrize(
    ("settings", "dropout"),
    [({}, 0.5), ({"label_smoothing": 0.0}, 0.0), ({"label_smoothing": 0.5}, 0.5), ({"optimizer": {"lr": 0.02}}, 0.3)],
)
def test_an_ordinary_run_is_left_alone(run: RunDir, settings: dict[str, Any], dropout: float) -> None:
    """Warm-up, noise, and a corpus so small that it is learnt by heart."""
    state = tiny.state(tiny.cfg(**settings), dropout=dropout)
    losses = go(state, run, updates=300, every=300, max_risen=1, **settings)
    assert min(losses) < losses[0] - FAR / 2


def test_what_has_been_seen_of_the_loss_survives_a_kill(tmp_path: Path) -> None:
    whole, parts = RunDir(tmp_path / "whole"), RunDir(tmp_path / "parts")
    go(tiny.state(dropout=0.1), whole, updates=300, every=150, max_risen=0, **WILD)
    go(tiny.state(dropout=0.1), parts, updates=150, every=150, max_risen=0, **WILD)
    resumed = tiny.state(seed=5, dropout=0.1)
    resumed.restore(parts.step(150))
    resumed.progress.ended = None
    go(resumed, parts, updates=300, every=150, max_risen=0, **WILD)
    one, other = contents(whole.step(300)), contents(parts.step(300))
    assert [name for name in differences(one, other) if not name.startswith("state")] == []
    for name in ("smoothed", "lowest", "risen", "calm"):
        assert one["state"]["progress"][name] == other["state"]["progress"][name]


def test_one_lucky_batch_at_the_beginning_is_no_measure() -> None:
    progress = Progress()
    for update in range(1, 2 * HORIZON):
        progress.update = update
        follow(progress, 0.5 if update == 1 else 4.0)
    assert progress.lowest == pytest.approx(4.0, abs=0.05)
    assert progress.risen == 0


def test_a_checkpoint_from_before_there_was_a_measure_goes_on_with_one() -> None:
    progress = Progress(update=5000)
    for update in range(5001, 5200):
        progress.update = update
        follow(progress, 4.0)
    assert (progress.smoothed, progress.lowest, progress.risen) == (4.0, 4.0, 0)


# ── what is not finite ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_skipped_update_names_its_pairs_on_the_console_and_in_the_journal(run: RunDir) -> None:
    state, stream = tiny.state(), io.StringIO()
    break_gradients(state, when=lambda: state.progress.update == 2 and not state.progress.skipped)
    plan = Plan(**{**vars(tiny.PLAN), "last_update": 4})
    data: Any = tiny.Data(tiny.batch(3, 5), tiny.batch(2, 2, 2))
    console = Console(total=4, minutes=None, stream=stream)
    run.path.mkdir()
    journal = Journal(run)
    for event in fit(state, data, cfg=tiny.cfg(), plan=plan, run=run, validator=None, stop=Stop()):
        if not isinstance(event, Saved):
            journal(event)
            console(event)
    journal.close()
    lines = [json.loads(line) for line in run.journal.read_text(encoding="utf-8").splitlines()]
    pairs = [f"train.src:{number}" for number in (1, 2, 1, 2, 3)]
    assert [line.get("origins") for line in lines] == [None, None, pairs, None, None, None]
    told = next(line for line in stream.getvalue().splitlines() if "skipped after" in line)
    assert told.endswith("gradient norm inf; one of its pairs? train.src:1, train.src:2, train.src:1 and 2 more")


def test_a_long_list_of_skipped_updates_is_told_once() -> None:
    stream = io.StringIO()
    console = Console(total=None, minutes=None, stream=stream)
    event = Update(7, 0, math.nan, 1e-3, math.inf, 1.0, 9, 9, 20, 1.0, skipped=True, origins=("a:1", "a:2"))
    for _ in range(8):
        console(event)
    lines = stream.getvalue().splitlines()
    assert [line.rpartition("; ")[2] for line in lines] == ["one of its pairs? a:1, a:2"] * 5 + ["its pairs are in the journal"] * 3


def test_a_loss_scale_that_is_too_high_is_told_as_that_and_no_pair_is_blamed() -> None:
    stream = io.StringIO()
    event = Update(0, 0, 9.0, 1e-3, math.inf, 65536.0, 9, 9, 20, 1.0, skipped=True, origins=("a:1",))
    Console(total=None, minutes=None, stream=stream)(event)
    assert stream.getvalue().endswith("loss 9, gradient norm inf; the loss scale was 65536 and is halved\n")


def test_a_loss_scale_that_is_used_up_ends_the_run(run: RunDir) -> None:
    state = tiny.state()
    state.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**-12)
    calls: list[int] = []

    def every_other() -> bool:
        calls.append(1)
        return len(calls) % 2 == 0

    break_gradients(state, when=every_other)
    with pytest.raises(TrainError, match=r"the loss scale of fp16 has come down to 6.1\d*e-05, .*is step-\d+. Lower .*fp32"):
        go(state, run, updates=50, every=1)
