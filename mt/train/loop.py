"""The training loop: a generator of events. Read this file first."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt.checkpoint import rotate
from mt.config.schema import TrainConfig
from mt.data.loader import TrainingData
from mt.errors import DecodeError, TooLargeError, TrainError
from mt.files import sync
from mt.formats.pairs import counted
from mt.rundir import RunDir
from mt.train.divergence import calmer, last_good, refuse_broken_weights, refuse_divergence
from mt.train.events import Event, Saved, Validated
from mt.train.monitor import naming
from mt.train.schedule import learning_rate
from mt.train.signals import Stop
from mt.train.state import State
from mt.train.update import Begun, begin, finish
from mt.train.validate import Validators, better

AHEAD = {"cpu": 0, "mps": 0, "cuda": 2}
"""Updates that are begun, at most, before the figures of one are read: then a GPU has always something to do."""
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

    On a GPU updates are begun before those ahead of them are known to be done, though never across a point where the run may validate, save
    or end.
    Raises TrainError where numbers get out of hand (`divergence`), naming the last good checkpoint.
    """
    progress = state.progress
    began = time.perf_counter() - progress.seconds
    groups = data.groups(progress.cursor, size=cfg.accumulate)
    ahead: deque[Begun] = deque()
    ended = progress.ended
    end = progress.end(ended or "")
    while ended is None or ahead:
        start, waited = time.perf_counter(), 0.0
        while ended is None and (not ahead or (len(ahead) <= AHEAD[state.device.type] and not is_stop(ahead[-1], cfg, plan))):
            asked = time.perf_counter()
            micro, after = next(groups)
            waited += time.perf_counter() - asked
            number = progress.update + len(ahead) + 1
            ahead.append(begin(state, micro, cfg=cfg, lr=rate_of(state, cfg, plan, number), number=number, after=after))
        event = finish(state, ahead.popleft(), start=start, waited=waited)
        progress.seconds = time.perf_counter() - began
        passes = event.seconds - event.waited - event.optimizing
        progress.spent = progress.spent.and_also(model=passes, optimizer=event.optimizing, data=event.waited)
        yield event
        progress.seconds, signal = state.ranks.settle(progress.seconds, stop.signal)
        refuse_divergence(state, event, cfg=cfg, run=run)

        ended = reason_to_end(state, cfg, plan, Stop(signal)) or ended
        if signal:
            stop.signal = signal
        if ahead:
            continue
        due = progress.update % plan.validate_every == 0 and not event.skipped
        is_best = False
        if validator and (due or (ended and ended != INTERRUPTED)):
            validated = validate(state, validator, cfg=cfg, run=run, epoch=event.epoch, began=began)
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


def is_stop(newest: Begun, cfg: TrainConfig, plan: Plan) -> bool:
    """Whether the run may validate, save or end once this update is done."""
    is_last = newest.number == plan.last_update or (cfg.max_epochs is not None and newest.after.epoch >= cfg.max_epochs)
    return is_last or newest.number % plan.validate_every == 0 or newest.number % plan.save_every == 0


def rate_of(state: State, cfg: TrainConfig, plan: Plan, number: int) -> float:
    """The learning rate of an update, the first being number 1."""
    return learning_rate(cfg.schedule, number, lr=cfg.optimizer.lr, dim=state.model.dim, warmup=plan.warmup, end=plan.curve_end)


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
        attention=found.attention,
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
