"""`mt report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mt.cli.remarks import waiting
from mt.errors import MTError


def report(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="RUN", readable=False, help="Run directory that `mt train` wrote.")],
    output: Annotated[
        Path | None, typer.Option(readable=False, metavar="FILE", help="The page.  [default: RUN/reports/index.html]")
    ] = None,
    device: Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps; for attention and scores by length.")] = "auto",
) -> None:
    """Write a run as one HTML page that needs nothing else: scores, curves, samples, attention, data, settings, environment.

    mt train does it at the end of a run (train.report); this command at any time, also while a run is training, or after it was killed.

    Examples:

    mt report runs/demo

    mt report runs/demo --output demo.html
    """
    if context.args:
        raise MTError(f"{context.args[0]}: one run at a time; `mt runs` lists all of a folder")
    if output and output.is_dir():
        raise MTError(f"{output}: is a folder; give the name of a file, such as {output / 'report.html'}")
    if output and output.is_file() and (real := output.resolve()).suffix != ".html" and real.is_relative_to(model.resolve()):
        raise MTError(f"{output}: is a file of the run itself; give another, such as report.html")
    waiting(f"reading {model}")
    from mt.report.run_page import write_report
    from mt.rundir import RunDir

    print(f"report: {write_report(RunDir(model), output, device=device)}", file=sys.stderr)
