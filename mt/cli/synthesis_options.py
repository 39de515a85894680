"""The options that `mt backtranslate` and `mt distill` have and no other command."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from mt.errors import MTError

Output = Annotated[
    Path,
    typer.Option("--output", readable=False, metavar="FILE", help="Appears whole, packed if it is called .gz; till then FILE.partial."),
]
MaxRatio = Annotated[float, typer.Option(metavar="X", help="Blank where one side has more than X times the characters of the other.")]
MaxRepeats = Annotated[float, typer.Option(metavar="X", help="Blank where more than this share of n-grams occurred before: a loop.")]


def refuse_limits(*, max_ratio: float, max_repeats: float) -> None:
    """Raise MTError, in one line, for limits that nothing can be within, or that are not numbers."""
    if not 1 < max_ratio < inf:
        raise MTError(f"--max-ratio {max_ratio:g}: give a number above 1, such as 6; a very large one keeps all")
    if not 0 <= max_repeats <= 1:
        raise MTError(f"--max-repeats {max_repeats:g}: give a share from 0 to 1, such as 0.5; 1 keeps all")


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)
