"""`mt average`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from mt.errors import MTError


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)


def average(
    model: Annotated[Path, typer.Option(readable=False, metavar="RUN", help="Run directory that `mt train` wrote.")],
    last: Annotated[int | None, typer.Option(min=1, metavar="N", help="The newest N checkpoints.")] = None,
    best: Annotated[int | None, typer.Option(min=1, metavar="N", help="The N best on the dev set, of those that are kept.")] = None,
    checkpoint: Annotated[
        list[str] | None, typer.Option(metavar="best|last|STEP", help="Or these, one by one: repeat it for each.")
    ] = None,
    output: Annotated[str, typer.Option(metavar="NAME", help="What the mean is called: --checkpoint NAME takes it.")] = "average",
    weights: Annotated[
        Literal["raw", "ema"] | None, typer.Option(help="As trained, or their moving averages.  [default: ema if there are any]")
    ] = None,
    device: Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps; for the scores.")] = "auto",
) -> None:
    """Average the weights of several checkpoints of a run: another checkpoint of it, which often translates a little better.

    Says how the mean does on the dev set of the run, and how its best checkpoint does. What `best` stands for does not change:
    give --checkpoint average to mt translate and mt eval.

    Examples:

    mt average --model runs/demo --best 5

    mt average --model runs/demo --checkpoint 8000 --checkpoint 9000 --output two
    """
    given = {"--last": last, "--best": best, "--checkpoint": checkpoint}
    chosen = [name for name, value in given.items() if value]
    if not chosen:
        raise MTError("nothing to average: give --last N, --best N, or --checkpoint STEP several times")
    if len(chosen) > 1:
        raise MTError(f"{chosen[0]} and {chosen[1]}: give one of the two")
    from mt.launch.combine import average_run

    average_run(model, last=last, best=best, checkpoints=checkpoint or (), output=output, weights=weights, device=device, say=say)
