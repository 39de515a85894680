"""The options that `mt backtranslate` and `mt distill` share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

Checkpoint = Annotated[str, typer.Option(metavar="best|last|STEP", help="Which of the run's checkpoints.")]
To = Annotated[str | None, typer.Option(metavar="LANG", help="Target language, for a model that has several.")]
Output = Annotated[
    Path,
    typer.Option("--output", readable=False, metavar="FILE", help="Appears whole, packed if it is called .gz; till then FILE.partial."),
]
BeamWidth = Annotated[int | None, typer.Option(min=1, metavar="N", help="Beam width; 1 is greedy.  [default: the run's]")]
MaxRatio = Annotated[
    float, typer.Option(min=1, metavar="X", help="Blank where one side has more than X times the characters of the other.")
]
MaxRepeats = Annotated[
    float, typer.Option(min=0, max=1, metavar="X", help="Blank where more than this share of n-grams occurred before: a loop.")
]
BatchTokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="Rows × longest source of a batch.  [default: the run's]")]
WhichWeights = Annotated[
    Literal["raw", "ema"] | None, typer.Option(help="As trained, or their moving average.  [default: ema if there is one]")
]
Precision = Annotated[Literal["fp32", "bf16", "fp16"], typer.Option(help="Arithmetic.")]
Device = Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps.")]


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)
