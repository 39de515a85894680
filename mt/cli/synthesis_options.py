"""The options that `mt backtranslate` and `mt distill` share."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import Annotated, Literal

import typer

from mt.errors import MTError

Checkpoint = Annotated[str, typer.Option(metavar="best|last|STEP|NAME", help="Which of the run's checkpoints; NAME: an average.")]
To = Annotated[str | None, typer.Option(metavar="LANG", help="Target language, for a model that has several.")]
Output = Annotated[
    Path,
    typer.Option("--output", readable=False, metavar="FILE", help="Appears whole, packed if it is called .gz; till then FILE.partial."),
]
BeamWidth = Annotated[int | None, typer.Option(min=1, metavar="N", help="Beam width; 1 is greedy.  [default: the run's]")]
MaxRatio = Annotated[float, typer.Option(metavar="X", help="Blank where one side has more than X times the characters of the other.")]
MaxRepeats = Annotated[float, typer.Option(metavar="X", help="Blank where more than this share of n-grams occurred before: a loop.")]
BatchTokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="Rows × longest source of a batch.  [default: the run's]")]
WhichWeights = Annotated[
    Literal["raw", "ema"] | None, typer.Option(help="As trained, or their moving average.  [default: ema if there is one]")
]
Precision = Annotated[Literal["fp32", "bf16", "fp16"], typer.Option(help="Arithmetic.")]
Device = Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps.")]


def refuse_limits(*, max_ratio: float, max_repeats: float) -> None:
    """Raise MTError, in one line, for limits that nothing can be within, or that are not numbers."""
    if not 1 < max_ratio < inf:
        raise MTError(f"--max-ratio {max_ratio:g}: give a number above 1, such as 6; a very large one keeps all")
    if not 0 <= max_repeats <= 1:
        raise MTError(f"--max-repeats {max_repeats:g}: give a share from 0 to 1, such as 0.5; 1 keeps all")


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)
