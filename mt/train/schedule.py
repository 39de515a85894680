"""The learning rate of each update."""

from __future__ import annotations

import math
from typing import assert_never

from mt.config.schema import Constant, Cosine, InverseSqrt, Linear, Noam, Schedule


def learning_rate(schedule: Schedule, update: int, *, lr: float, dim: int, warmup: int, end: int | None) -> float:
    """The rate the update-th update is made with (the first is 1), so that the first of a warm-up over w uses lr / w, the w-th lr.

    `end`, the last update, is needed by cosine and linear alone; after it the rate stays where it is.
    """
    match schedule:
        case Noam(factor=factor):
            return factor * dim**-0.5 * min(update**-0.5, update * warmup**-1.5)
        case _ if update < warmup:
            return lr * update / warmup
        case InverseSqrt():
            return lr * math.sqrt(warmup / update)
        case Constant():
            return lr
        case Cosine(floor=floor):
            return lr * (floor + (1 - floor) * (1 + math.cos(math.pi * done(update, warmup, end))) / 2)
        case Linear(floor=floor):
            return lr * (floor + (1 - floor) * (1 - done(update, warmup, end)))
        case _:
            assert_never(schedule)


def done(update: int, warmup: int, end: int | None) -> float:
    """Share of the way from the end of the warm-up to the end of the run, 0 to 1."""
    assert end is not None, "cosine and linear need max_updates or max_epochs: the config is checked for it"
    return min(1.0, (update - warmup) / max(1, end - warmup))
