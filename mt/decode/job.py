"""What is the same for all lines of a text."""

from __future__ import annotations

from typing import NamedTuple

from mt.constraints.spelling import Speller
from mt.decode.engine import Beam, Sampling
from mt.decode.mbr import Choice


class Target(NamedTuple):
    """Where a translation goes."""

    lang: str | None
    """The language, if it is known."""
    prefix: list[int]
    """Ids before the source: the tag, if the model has tags."""


class Job(NamedTuple):
    """What is the same for all lines."""

    search: Beam | Sampling
    speller: Speller
    choose: Choice | None
    """What MBR keeps; None: all."""
    target: Target
    budget: int
    """Rows × longest source of a batch."""
    seed: int
    align: bool
    alternatives: int
