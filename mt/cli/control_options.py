"""The options of `mt translate` that say what translations are to obey."""

from __future__ import annotations

from typing import Annotated

import typer

from mt.decode.control import Control
from mt.errors import DecodeError, MTError

MinLength = Annotated[int, typer.Option(min=0, metavar="N", help="Pieces of a translation at least.")]
NoRepeat = Annotated[int, typer.Option("--no-repeat-ngram", min=0, metavar="N", help="So many pieces in a row come only once; 0: off.")]
Penalty = Annotated[float, typer.Option(metavar="X", help="Above 1: pieces that are there already become less probable.")]


def asked(*, min_length: int, no_repeat_ngram: int, repetition_penalty: float) -> Control:
    """What the options come to. Raises MTError, in one line, for what cannot be met."""
    try:
        return Control(min_length=min_length, no_repeat_ngram=no_repeat_ngram, repetition_penalty=repetition_penalty)
    except DecodeError as error:
        raise MTError(f"--{error}") from None
