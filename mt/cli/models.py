"""The options that name one model or several, and what they load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mt.cli.remarks import waiting, warn
from mt.errors import MTError
from mt.rundir import ExportDir, RunDir

if TYPE_CHECKING:
    from mt.translator import Translator

Models = Annotated[
    list[Path], typer.Option(readable=False, metavar="RUN", help="Run directory that `mt train` wrote; several are an ensemble.")
]
How = Annotated[
    Literal["mean", "log"] | None,
    typer.Option(help="With several --model: mean of their probabilities, or of the logarithms.  [default: mean]"),
]
Shares = Annotated[
    str | None, typer.Option(metavar="X,Y,…", help="With several --model: the weight of each, in order.  [default: all alike]")
]


def load_models(models: Sequence[Path], *, how: Literal["mean", "log"] | None, shares: str | None, **named: Any) -> Translator:
    """The run, or the ensemble of several. Raises MTError, in one line, for options that only an ensemble has."""
    ready(models)
    given = {"--ensemble": how, "--ensemble-weights": shares}
    if len(models) == 1:
        if alone := [name for name, value in given.items() if value]:
            raise MTError(f"{alone[0]} goes with several models: give --model RUN again for each")
        from mt.translator import Translator

        return warned(Translator.load(models[0], **named))
    try:
        weights = tuple(map(float, shares.split(","))) if shares else ()
    except ValueError:
        raise MTError(f"--ensemble-weights {shares}: give a number for each model, with commas, such as 2,1") from None
    from mt.search.ensemble import Mix
    from mt.translator import Translator

    return warned(Translator.ensemble(models, mix=Mix(how or "mean", weights), **named))


def ready(models: Sequence[Path]) -> None:
    """Say what is loaded, and ask of the process what makes searches fast on a CPU, and keeps them small; before anything is loaded."""
    waiting(f"loading {' + '.join(map(str, models))}")
    from mt.model.process import SEARCHED, keep_few_primitives, keep_freed_memory

    keep_freed_memory()
    keep_few_primitives(SEARCHED)


def warned(translator: Translator) -> Translator:
    """The same; a warning if its numbers are none that the hardware multiplies."""
    from mt.model.device import fastest, imitates

    device, precision = translator.engine.device, translator.precision
    if imitates(device, precision):
        warn(f"{precision} is imitated by this {device.type}, and slower than {fastest(device)}: try --precision auto")
    return translator


def entries(models: Sequence[Path]) -> list[Path]:
    """Everything in the run directories, and in exports, which nothing may be written over."""
    found = [ExportDir(model) if ExportDir(model).is_there() else RunDir(model) for model in models]
    return [path for one in found for path in one.entries()]
