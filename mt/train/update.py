"""One update of the weights: begun by telling the device what to do, finished when its figures are read.

What decides whether the weights change stays on the device, so that a GPU can be told of the next updates before this one is done.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from mt.config.schema import TrainConfig
from mt.data.batches import Batch
from mt.data.plan import Cursor
from mt.train.divergence import follow
from mt.train.events import Update
from mt.train.memory import Shape, enough_memory
from mt.train.optim import set_rate
from mt.train.precision import autocast
from mt.train.state import State


class Figures:
    """Numbers of a device, on their way to the host."""

    def __init__(self, *numbers: Tensor) -> None:
        self.numbers = torch.stack([number.detach() for number in numbers]).to("cpu", non_blocking=True)
        self.arrival = torch.cuda.Event() if numbers[0].device.type == "cuda" else None
        if self.arrival:
            self.arrival.record()

    def read(self) -> list[float]:
        """The numbers; waits until they are there."""
        if self.arrival:
            self.arrival.synchronize()
        return self.numbers.tolist()


@dataclass(frozen=True)
class Begun:
    """An update that the device has been told of."""

    figures: Figures
    """Sum of the loss over all ranks, norm of the gradient, loss scale."""
    micro: Sequence[Batch]
    number: int
    """The update it is if neither this one nor those it was begun after are skipped, from 1."""
    after: Cursor
    """The place in the data where the next one begins."""
    lr: float
    tokens: int
    src_tokens: int
    padded: int
    optimizing: float
    """Seconds for the optimiser; on a GPU those of the host."""


def update(state: State, micro: Sequence[Batch], *, cfg: TrainConfig, lr: float, start: float) -> Update:
    """One update, begun and finished; its time counts from `start` by the clock."""
    begun = begin(state, micro, cfg=cfg, lr=lr, number=state.progress.update + 1, after=state.progress.cursor)
    return finish(state, begun, start=start, waited=0.0)


def begin(state: State, micro: Sequence[Batch], *, cfg: TrainConfig, lr: float, number: int, after: Cursor) -> Begun:
    """Let the gradients of all micro-batches of all ranks change the weights, each token counting the same; those not finite do not."""
    counts = ((b.tokens, b.src_tokens, b.src_BS.numel() + b.gold_BT.numel()) for b in micro)
    tokens, src_tokens, padded = state.ranks.sums(*map(sum, zip(*counts, strict=True)))
    share = tokens / state.ranks.count  # of all tokens: the gradients of the ranks will be averaged
    total = torch.zeros((), device=state.device)
    for place, batch in enumerate(micro, start=1):
        total += gradients(state, batch.to(state.device), share=share, last=place == len(micro), cfg=cfg)
    total = state.ranks.total(total)
    scale = state.scaler.scale(torch.ones((), device=state.device))
    state.scaler.unscale_(state.optimizer)  # before the clip, never after
    norm = clip_grad_norm_(state.model.parameters(), cfg.clip_norm or math.inf)
    figures = Figures(total, norm, scale)
    passed = time.perf_counter()
    broken = ~(total.isfinite() & norm.isfinite())
    set_rate(state.optimizer, lr)
    state.optimizer.step_unless(broken)
    state.scaler.update()
    state.optimizer.zero_grad()
    if state.ema:
        state.ema.update(state.model, updates=number, unless=broken)
    optimizing = time.perf_counter() - passed
    return Begun(figures, micro, number, after, lr, tokens=tokens, src_tokens=src_tokens, padded=padded, optimizing=optimizing)


def gradients(state: State, batch: Batch, *, share: float, last: bool, cfg: TrainConfig) -> Tensor:
    """Add the gradients of a micro-batch, those of its loss over `share`; the loss. Raises TrainError if memory does not suffice."""
    with enough_memory(cfg, Shape.of(batch)), state.ranks.exchange(state.shared, now=last):
        with autocast(state.precision, state.device):
            loss: Tensor = state.shared(batch.src_BS, batch.inputs_BT, batch.gold_BT, batch.real_N)[0]
        state.scaler.scale(loss / share).backward()
    return loss.detach()


def finish(state: State, begun: Begun, *, start: float, waited: float) -> Update:
    """What has become of an update, in the counters too. Of the time from `start` by the clock, so many seconds were waits for data."""
    loss_sum, norm, scale = begun.figures.read()
    state.ranks.agree(norm)
    loss = loss_sum / begun.tokens
    skipped = not (math.isfinite(loss) and math.isfinite(norm))
    epoch = state.progress.cursor.epoch
    state.progress.cursor = begun.after
    count(state, loss, skipped=skipped)
    origins = state.ranks.collect([origin for batch in begun.micro for origin in batch.origins]) if skipped else ()
    return Update(
        update=state.progress.update,
        epoch=epoch,
        loss=loss,
        lr=begun.lr,
        norm=norm,
        scale=scale,
        tokens=begun.tokens,
        src_tokens=begun.src_tokens,
        padded=begun.padded,
        seconds=time.perf_counter() - start,
        waited=waited,
        optimizing=begun.optimizing,
        skipped=skipped,
        origins=tuple(chain.from_iterable(origins)),
    )


def count(state: State, loss: float, *, skipped: bool) -> None:
    """Move the counters on after an update that was made, or skipped."""
    progress = state.progress
    if skipped:
        progress.skipped += 1
        progress.skipped_in_a_row += 1
        return
    progress.update += 1
    progress.scores = {}
    progress.skipped_in_a_row = 0
    follow(progress, loss)
