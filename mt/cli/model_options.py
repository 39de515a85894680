"""The options of every command that translates or scores with a model."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Checkpoint = Annotated[str, typer.Option(metavar="best|last|STEP|NAME", help="Which of the run's checkpoints; NAME: an average.")]
To = Annotated[str | None, typer.Option(metavar="LANG", help="Target language, for a model that has several.")]
BeamWidth = Annotated[int | None, typer.Option(min=1, metavar="N", help="Beam width; 1 is greedy.  [default: the run's]")]
Temperature = Annotated[float | None, typer.Option(metavar="T", help="Below 1 sharpens, above flattens; 0: greedy.")]
TopK = Annotated[int | None, typer.Option(metavar="K", help="Sample from the K most probable tokens; 0: all.")]
TopP = Annotated[float | None, typer.Option(metavar="P", help="Sample from the fewest tokens with this probability.")]
Seed = Annotated[
    int | None, typer.Option(min=0, metavar="S", help="Of --sample; what a line gets does not depend on its batch.  [default: 1]")
]
Sample = Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching for the best.")]
BatchTokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="Rows × longest source of a batch.  [default: the run's]")]
WhichWeights = Annotated[
    Literal["raw", "ema"] | None, typer.Option(help="As trained, or their moving average.  [default: ema if there is one]")
]
Precision = Annotated[
    Literal["auto", "fp32", "bf16", "fp16"] | None,
    typer.Option(help="Numbers of the weights; auto: the fastest here.  [default: the run's]"),
]
Device = Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps.")]
