"""Batches that are tried before the first update: whether the largest of a run fit into memory, and with `auto` how large they may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import torch

from mt.config.schema import TrainConfig
from mt.data.batches import Batch
from mt.data.chance import Indices
from mt.data.loader import TrainingData
from mt.data.meter import Say
from mt.errors import TrainError
from mt.train.memory import Shape, enough_memory, memory_of
from mt.train.state import State
from mt.train.update import gradients

TRIED_ON = {"cuda"}
"""Where memory that runs out is an error at once, and a trial takes a moment."""
EPOCHS = 4
"""Of noise that are looked at, as what a sentence comes to is another thing each time."""
SPARE = 0.1
"""Share of the free memory that `auto` leaves: noise of later epochs, and pieces of memory too small to be used."""
MOMENTS = 2
"""Tensors that the optimiser keeps for each parameter, from the first update on."""
LEAST, MOST = 512, 65536
"""Batch tokens that `auto` tries."""


def largest(data: TrainingData) -> list[Shape]:
    """The largest batches of an epoch, by what may take most memory: all positions, target positions, attention.

    Without noise they are known from the lengths alone; else some draws of it are made of these batches, and no text but theirs is read.
    """
    shapes = [shape_of(data, draws) for draws in data.order.largest()]
    return list(dict.fromkeys(shapes))


def shape_of(data: TrainingData, draws: Indices) -> Shape:
    """The shape of a batch of these draws; with noise, the longest sides that it comes to in some epochs."""
    lengths = [data.order.sizes(draws).max(axis=0)]
    if data.augment and data.augment.active:
        plain = data.store.take(draws)
        noisy = [example for epoch in range(EPOCHS) for example in data.augment(plain, epoch=epoch)]
        sources = [len(data.prefixes[one.corpus]) + len(one.src_ids) for one in noisy]
        lengths.append([max(sources) + 1, max(len(one.tgt_ids) for one in noisy) + 1])
    src, tgt = (max(sides) for sides in zip(*lengths, strict=True))
    return Shape(len(draws), int(src), int(tgt))


def try_out(state: State, shapes: Sequence[Shape], *, cfg: TrainConfig) -> None:
    """Go forward and back through batches of these shapes, and leave everything as it was. Raises TrainError if one does not fit."""
    trained = [p for p in state.model.parameters() if p.requires_grad]
    with enough_memory(cfg):
        waiting = [] if state.optimizer.state else [torch.empty_like(p) for p in trained for _ in range(MOMENTS)]
    try:
        with torch.random.fork_rng(devices=[state.device] if state.device.type == "cuda" else []):
            for shape in shapes:
                gradients(state, full(shape).to(state.device), share=shape.rows * shape.tgt, last=False, cfg=cfg)
    finally:
        state.optimizer.zero_grad()
        del waiting


def full(shape: Shape, *, piece: int = 1) -> Batch:
    """A batch without padding, of one piece (by default the unknown one)."""
    src_BS, tgt_BT = torch.full(shape[:2], piece), torch.full((shape.rows, shape.tgt), piece)
    return Batch(src_BS, tgt_BT, tgt_BT, tokens=tgt_BT.numel(), src_tokens=src_BS.numel(), origins=())


def try_largest(state: State, data: TrainingData, *, cfg: TrainConfig, say: Say) -> None:
    """Try the largest batches of a run before its first update, where they could be too large; says what they take."""
    if state.device.type not in TRIED_ON:
        return
    shapes = largest(data)
    if state.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(state.device)
    try_out(state, shapes, cfg=cfg)
    if state.device.type == "cuda":
        taken, there = torch.cuda.max_memory_allocated(state.device), memory_of(state.device) or 0
        most = max(shapes, key=lambda shape: shape.rows * (shape.src + shape.tgt))
        say(f"memory: batches up to {most} take {taken / 2**30:.1f} of {there / 2**30:.1f} GiB")


# ── auto ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def choose_batch_tokens(state: State, data_of: Callable[[int], TrainingData], *, cfg: TrainConfig, room: int | None) -> int:
    """The most batch tokens whose largest batches fit into `room` bytes of the device, if that is less than it has."""

    def attempt(tokens: int) -> None:
        try_out(state, largest(data_of(tokens)), cfg=cfg.model_copy(update={"batch_tokens": tokens}))

    def fits(tokens: int) -> bool:
        with suppress(TrainError):
            attempt(tokens)
            return True
        if state.device.type == "cuda":
            torch.cuda.empty_cache()
        return False

    epoch = data_of(LEAST).order.measure()
    with limited(state.device, room):
        found = most_that_fits(fits, most=max(LEAST, min(MOST, epoch.padded // 2 // 100)))
        if not found:  # then there is a pair that does not, however few others are with it
            attempt(1)
    return found


@contextmanager
def limited(device: torch.device, room: int | None) -> Iterator[None]:
    """Within, a CUDA device gives this process no more than what is free, or `room` if that is less, and leaves a part of that."""
    if device.type != "cuda":
        yield
        return
    free, there = torch.cuda.mem_get_info(device)
    own = free + torch.cuda.memory_reserved(device)
    torch.cuda.set_per_process_memory_fraction((1 - SPARE) * min(own, room or own) / there, device.index)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device.index)


def most_that_fits(fits: Callable[[int], bool], *, most: int) -> int:
    """The largest number up to `most` that fits, short of it by a sixteenth at most; 0 if none does."""
    low, high = 0, LEAST
    while high < most and fits(high):
        low, high = high, 2 * high
    if high >= most:
        if fits(most):
            return most
        high = most
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
