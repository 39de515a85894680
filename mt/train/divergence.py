"""Numbers out of hand: updates that are not finite, a loss that came down and went up again for good, a loss scale that is used up.

A run that diverges may do so in finite numbers: its loss jumps to what knowing the frequencies of words would give, and stays there. So
the loss is smoothed, its lowest value kept, and the updates in a row counted for which it is far above that. What is usual does not get
so far: a warm-up comes down, noise is gone after a hundred updates, overfitting and label smoothing lower the loss or move all of it, and
a run that starts from another has only itself to be compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mt.config.schema import TrainConfig
from mt.errors import TrainError
from mt.rundir import RunDir
from mt.train.events import Update
from mt.train.state import Progress, State

HORIZON = 100
"""Updates that the loss is smoothed over."""
FAR = 1.0
"""So much above its lowest the smoothed loss is far from it: the perplexity is e times as large."""
LEAST_SCALE = 1e-4
"""Of fp16: with a smaller one, gradients that fit at the top are gone at the bottom."""


def follow(progress: Progress, loss: float) -> None:
    """Take in the loss of an update that was made: the mean of the first hundred, from then on a moving one."""
    smoothed = loss if progress.smoothed is None else progress.smoothed
    progress.smoothed = smoothed + (loss - smoothed) / min(progress.update, HORIZON)
    if progress.update < HORIZON:  # a lucky first batch is no measure
        return
    progress.lowest = progress.smoothed if progress.lowest is None else min(progress.lowest, progress.smoothed)
    above = progress.smoothed - progress.lowest
    progress.risen = progress.risen + 1 if above > FAR else 0
    progress.calm = progress.update if above < FAR / 4 else progress.calm


def refuse_divergence(state: State, event: Update, *, cfg: TrainConfig, run: RunDir) -> None:
    """Raise TrainError where a run should not go on after this update, naming the last checkpoint from before the trouble."""
    refuse_endless_skipping(state, event, cfg=cfg, run=run)
    refuse_spent_scale(state, event, run)
    refuse_explosion(state.progress, cfg=cfg, run=run)


def refuse_endless_skipping(state: State, event: Update, *, cfg: TrainConfig, run: RunDir) -> None:
    """Raise TrainError when nothing but non-finite updates has come for too long."""
    if state.progress.skipped_in_a_row < cfg.max_skipped:
        return
    newest = f"the newest with {event.origins[0]}" if event.origins else "the newest without pairs"
    raise TrainError(f"{cfg.max_skipped} updates in a row had a non-finite loss or gradient ({newest}); {last_good(run)}. {calmer(run)}")


def refuse_spent_scale(state: State, event: Update, run: RunDir) -> None:
    """Raise TrainError when fp16 no longer holds large and small gradients at once."""
    if event.skipped and state.scaler.is_enabled() and (scale := state.scaler.get_scale()) < LEAST_SCALE:
        what = f"the loss scale of fp16 has come down to {scale:g}, as gradients were too large again and again"
        raise TrainError(f"{what}; {last_good(run)}. {calmer(run)}")


def refuse_explosion(progress: Progress, *, cfg: TrainConfig, run: RunDir) -> None:
    """Raise TrainError when the loss has been far above its lowest for too long."""
    if not cfg.max_risen or progress.risen < cfg.max_risen:
        return
    calm = progress.calm - HORIZON // 4  # the smoothed loss lags behind
    good = [update for update in run.steps() if update <= calm]
    where = f"the last checkpoint from before that is {run.step(good[-1]).name}" if good else "no checkpoint is left from before that"
    loss = f"the loss came down to {progress.lowest:.2f} and is {progress.smoothed:.2f} now, more than {FAR:g} above it"
    raise TrainError(f"{loss} for {progress.risen} updates (train.max_risen); {where}. {calmer(run, good)}")


def refuse_broken_weights(state: State, run: RunDir) -> None:
    """Raise TrainError instead of saving weights that an update, itself of finite gradients, has thrown beyond what numbers hold."""
    if not all(torch.isfinite(weights).all() for weights in state.model.parameters()):
        raise TrainError(f"the weights are no longer finite after update {state.progress.update}; {last_good(run)}. {calmer(run)}")


def last_good(run: RunDir) -> str:
    """Where to go on from, for a message."""
    last = run.names().get("last")
    return f"the last good checkpoint is {last}" if last else "no checkpoint was written yet"


def calmer(run: RunDir, good: Sequence[int] | None = None) -> str:
    """What helps, and the way to it, as a run that goes on keeps its settings; `good` are its good checkpoints, if not all are."""
    best = run.names().get("best")
    is_good = good is None or best in {run.average.name, *(run.step(update).name for update in good)}
    start = best if is_good else run.step(good[-1]).name if good else None
    ways = "start over with --overwrite"
    if start:
        named = "" if is_good else f', once it is "best" in {run.names_file},'
        ways += f", or from {start}{named} with --init-from {run.path} --run-dir NEW"
    settings = "Lower train.optimizer.lr, lengthen train.schedule.warmup, or set train.precision: fp32"
    return f"{settings}; --resume would keep these as they are: {ways}"
