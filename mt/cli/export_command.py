"""`mt export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mt.cli.model_options import Checkpoint, WhichWeights
from mt.errors import MTError


def export_(
    model: Annotated[list[Path], typer.Option(readable=False, metavar="RUN", help="Run directory that `mt train` wrote.")],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the model is written; must not be there yet, or be empty.")],
    format_: Annotated[Literal["ctranslate2"], typer.Option("--format", help="The program that is to run it.")] = "ctranslate2",
    quantization: Annotated[
        Literal["int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"] | None,
        typer.Option(help="How the weights are kept.  [default: float32]"),
    ] = None,
    checkpoint: Checkpoint = "best",
    weights: WhichWeights = None,
) -> None:
    """Write a run as a model of another program, with its tokenizer beside it: CTranslate2, which is fast on processors.

    It gives what `mt translate` gives if it is asked with the options in mt.json, which lies beside the model.

    Examples:

    mt export --model runs/demo --output demo-ct2 --quantization int8
    """
    del format_  # there is one
    if len(model) > 1:
        raise MTError("mt export writes one model: give --model once")
    from mt.export.ct2 import export

    export(model[0], output, checkpoint, weights=weights, quantization=quantization)
