"""The training loop: a generator of events. Read this file first."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from mt.checkpoint import rotate
from mt.config.schema import TrainConfig
from mt.data.batches import Batch
from mt.data.loader import TrainingData
from mt.errors import DecodeError, TooLargeError, TrainError
from mt.files import sync
from mt.formats.pairs import counted
from mt.rundir import RunDir
from mt.train.divergence import calmer, follow, last_good, refuse_broken_weights, refuse_divergence
from mt.train.events import Event, Saved, Update, Validated
from mt.train.memory import Shape, enough_memory
from mt.train.monitor import naming
from mt.train.optim import set_rate
from mt.train.precision import autocast
from mt.train.schedule import learning_rate
from mt.train.signals import Stop
from mt.train.state import State
from mt.train.validate import Validators, better

INTERRUPTED = "interrupted"
"""The reason to end that is none to validate out of turn: the run goes on later."""


@dataclass(frozen=True)
class Plan:
    """What the settings come to for this corpus."""

    warmup: int
    last_update: int | None
    """None: epochs, time or patience end the run."""
    curve_end: int | None
    """The update at which cosine and linear reach their floor."""
    validate_every: int
    save_every: int


def fit(
    state: State, data: TrainingData, *, cfg: TrainConfig, plan: Plan, run: RunDir, validator: Validators | None, stop: Stop
) -> Generator[Event]:
    """Train until a limit, patience or a signal ends the run; validates and saves on the way and at the end.

    Raises TrainError where numbers get out of hand (`divergence`), naming the last good checkpoint.
    """
    progress = state.progress
    began = time.perf_counter() - progress.seconds
    groups = data.groups(progress.cursor, size=cfg.accumulate)
    ended = progress.ended
    end = progress.end(ended or "")
    while ended is None:
        start = time.perf_counter()
        micro, after = next(groups)
        waited = time.perf_counter() - start
        epoch = progress.cursor.epoch
        event = update(state, micro, cfg=cfg, lr=rate_of(state, cfg, plan), epoch=epoch, start=start, waited=waited)
        progress.cursor = after
        progress.seconds = time.perf_counter() - began
        passes = event.seconds - event.waited - event.optimizing
        progress.spent = progress.spent.and_also(model=passes, optimizer=event.optimizing, data=event.waited)
        yield event
        progress.seconds, signal = state.ranks.settle(progress.seconds, stop.signal)
        refuse_divergence(state, event, cfg=cfg, run=run)

        ended = reason_to_end(state, cfg, plan, Stop(signal))
        if signal:
            stop.signal = signal
        due = progress.update % plan.validate_every == 0 and not event.skipped
        is_best = False
        if validator and (due or (ended and ended != INTERRUPTED)):
            validated = validate(state, validator, cfg=cfg, run=run, epoch=epoch, began=began)
            is_best = validated.best
            ended = ended or patience_lost(state, cfg)
            yield validated
        progress.ended = None if ended == INTERRUPTED else ended
        if ended or is_best or (progress.update % plan.save_every == 0 and not event.skipped):
            progress.seconds = time.perf_counter() - began
            end = progress.end(ended or "")  # as the checkpoint has it, of which it may be told again
            saved = save(state, run, cfg, best=is_best or validator is None, every=plan.save_every)
            progress.spent = progress.spent.and_also(saving=time.perf_counter() - began - progress.seconds)
            progress.seconds = time.perf_counter() - began
            yield saved
    groups.close()  # here, and not as garbage, where a second Ctrl-C would be lost
    yield end


def update(state: State, micro: Sequence[Batch], *, cfg: TrainConfig, lr: float, epoch: int, start: float, waited: float = 0.0) -> Update:
    """One update from the gradients of all micro-batches of all ranks, each token counting the same. Non-finite: the weights stay.

    It began at `start` by the clock, and had its data after `waited` seconds.
    """
    counts = ((b.tokens, b.src_tokens, b.src_BS.numel() + b.gold_BT.numel()) for b in micro)
    tokens, src_tokens, padded = state.ranks.sums(*map(sum, zip(*counts, strict=True)))
    share = tokens / state.ranks.count  # of all tokens: the gradients of the ranks will be averaged
    total = torch.zeros((), device=state.device)
    set_rate(state.optimizer, lr)
    for number, batch in enumerate(micro, start=1):
        batch = batch.to(state.device)
        total += gradients(state, batch, share=share, last=number == len(micro), cfg=cfg)
    scale = state.scaler.get_scale()
    state.scaler.unscale_(state.optimizer)  # before the clip, never after
    norm = float(clip_grad_norm_(state.model.parameters(), cfg.clip_norm or math.inf))
    loss_sum, norm = state.ranks.agree(float(total), norm)
    loss_per_token = loss_sum / tokens
    finite = math.isfinite(loss_per_token) and math.isfinite(norm)
    passed = time.perf_counter()  # a GPU is done by now: the norm was waited for
    if finite:
        state.scaler.step(state.optimizer)
    state.scaler.update()
    state.optimizer.zero_grad()
    count(state, loss_per_token, finite=finite)
    bad = () if finite else state.ranks.collect([origin for batch in micro for origin in batch.origins])
    done = time.perf_counter()
    return Update(
        update=state.progress.update,
        epoch=epoch,
        loss=loss_per_token,
        lr=lr,
        norm=norm,
        scale=scale,
        tokens=tokens,
        src_tokens=src_tokens,
        padded=padded,
        seconds=done - start,
        waited=waited,
        optimizing=done - passed,
        skipped=not finite,
        origins=tuple(chain.from_iterable(bad)),
    )


def gradients(state: State, batch: Batch, *, share: float, last: bool, cfg: TrainConfig) -> Tensor:
    """Add the gradients of a micro-batch, those of its loss over `share`; the loss. Raises TrainError if memory does not suffice."""
    with enough_memory(cfg, Shape.of(batch)), state.ranks.exchange(state.shared, now=last):
        with autocast(state.precision, state.device):
            loss: Tensor = state.shared(batch.src_BS, batch.inputs_BT, batch.gold_BT)[0]
        state.scaler.scale(loss / share).backward()
    return loss.detach()


def count(state: State, loss: float, *, finite: bool) -> None:
    """Move the counters on after an update that was made, or skipped."""
    progress = state.progress
    if not finite:
        progress.skipped += 1
        progress.skipped_in_a_row += 1
        return
    progress.update += 1
    progress.scores = {}
    progress.skipped_in_a_row = 0
    follow(progress, loss)
    if state.ema:
        state.ema.update(state.model, updates=progress.update)


def rate_of(state: State, cfg: TrainConfig, plan: Plan) -> float:
    """The learning rate of the next update."""
    update, dim = state.progress.update + 1, state.model.dim
    return learning_rate(cfg.schedule, update, lr=cfg.optimizer.lr, dim=dim, warmup=plan.warmup, end=plan.curve_end)


def validate(state: State, validator: Validators, *, cfg: TrainConfig, run: RunDir, epoch: int, began: float) -> Validated:
    """Measure the weights that would be used, and note whether they are the best so far. The run began at `began` by the clock."""
    start = time.perf_counter()
    try:
        with state.evaluated():
            found = state.ranks.first(lambda: validator(state.loss))
    except TooLargeError as error:
        cure = "lower decode.batch_tokens or train.validation.beam"
        raise TrainError(f"validation at update {state.progress.update}: {error.args[0].split(':')[0]}; {cure}") from None
    except DecodeError as error:  # not a number where the update before was finite
        what = f"validation at update {state.progress.update}: {error.args[0].split(';')[0]}"
        raise TrainError(f"{what}; {last_good(run)}. {calmer(run)}") from None
    progress, metric = state.progress, cfg.early_stopping.metric
    if progress.metric != metric:  # another one since the run was resumed: their scores cannot be compared
        progress.metric, progress.best, progress.stale = metric, None, 0
    best = better(metric, found.scores[metric], progress.best)
    progress.best = found.scores[metric] if best else progress.best
    progress.scores = found.scores
    progress.stale = 0 if best else progress.stale + 1
    now = time.perf_counter()
    progress.seconds, progress.spent = now - began, progress.spent.and_also(validation=now - start)
    return Validated(
        update=progress.update,
        epoch=epoch,
        loss=found.loss,
        tokens=found.tokens,
        lines=len(validator.pairs),
        scores=found.scores,
        signatures=found.signatures,
        beam=cfg.validation.beam,
        weights="ema" if state.ema else "raw",
        precision="fp32",
        best=best,
        seconds=found.seconds,
        samples=found.samples,
        to=found.to,
        sets=found.sets,
        shares=progress.spent.shares(progress.seconds),
    )


def save(state: State, run: RunDir, cfg: TrainConfig, *, best: bool, every: int) -> Saved:
    """Write a checkpoint, on the first rank."""
    refuse_broken_weights(state, run)
    state.ranks.refuse_differences(state.model)
    generators = state.ranks.collect(state.generators())
    return state.ranks.first(lambda: write(state, run, cfg, generators, best=best, every=every))


def write(state: State, run: RunDir, cfg: TrainConfig, generators: Sequence[Mapping[str, Any]], *, best: bool, every: int) -> Saved:
    """Write a checkpoint, let the names stand for it, delete what is no longer kept."""
    state.progress.journal_bytes = run.journal.stat().st_size if run.journal.exists() else 0
    if run.journal.exists():
        with naming(run.journal):
            sync(run.journal)
    path = state.save(run, generators)
    run.set_names(last=path, **({"best": path} if best else {}))
    if not state.progress.risen:  # else those from before may be wanted
        rotate(run, keep=cfg.keep, every=every, best=cfg.average.best, metric=cfg.early_stopping.metric)
    return Saved(state.progress.update, path)


def reason_to_end(state: State, cfg: TrainConfig, plan: Plan, stop: Stop) -> str | None:
    """Why the run is over after this update, or None."""
    progress = state.progress
    if plan.last_update is not None and progress.update >= plan.last_update:
        return f"the limit of {counted(plan.last_update, 'update')}"
    if cfg.max_epochs is not None and progress.cursor.epoch >= cfg.max_epochs:
        return f"the limit of {counted(cfg.max_epochs, 'epoch')}"
    if cfg.max_minutes is not None and progress.seconds >= 60 * cfg.max_minutes:
        return f"the limit of {counted(cfg.max_minutes, 'minute')}"
    return INTERRUPTED if stop.signal else None


def patience_lost(state: State, cfg: TrainConfig) -> str | None:
    """Why early stopping ends the run, or None."""
    stopping = cfg.early_stopping
    if not stopping.patience or state.progress.stale < stopping.patience:
        return None
    return f"{stopping.metric} no better for {stopping.patience} validations"
