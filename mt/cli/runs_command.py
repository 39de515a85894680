"""`mt runs`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from mt.errors import MTError


def runs(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", readable=False, help="Folder that holds run directories.")] = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead, with all settings that differ, unrounded.")
    ] = False,
) -> None:
    """List the runs of a folder: state, updates, time, best scores, and the settings in which they differ.

    A folder that holds something else, or a run that is damaged, is named below the table. Scores are those of the best validation on
    dev, and BLEU of each test set.

    Examples:

    mt runs

    mt runs experiments --json
    """
    from mt.report.runs import as_objects, listed, survey

    if not folder.is_dir():
        raise MTError(f"{folder}: {'is a file' if folder.exists() else 'there is no such folder'}; {_instead(folder)}")
    found, others = survey(folder)
    if as_json:
        print(json.dumps({"runs": as_objects(found), "others": others}, ensure_ascii=False, indent=2))
        return
    for line in listed(found, width=shutil.get_terminal_size((120, 24)).columns):
        print(line)
    for name, why in others.items():
        print(f"{name}: {why}", file=sys.stderr)
    if not found:
        raise MTError(f"{folder}: holds no run; {_instead(folder)}")


def _instead(folder: Path) -> str:
    """What to write where no runs are: the folder near by that holds some, be it the current one or the one that a run lies in."""
    from mt.files import meant
    from mt.report.runs import holds_runs

    def fits(other: str | Path) -> bool:
        return holds_runs(other) and os.path.realpath(other) != os.path.realpath(folder)  # which may hold damaged ones

    around = (folder / "runs", Path("runs"), Path(), Path(".."), Path("../.."))
    found = next((one for one in around if fits(one)), None) or meant(folder, fits)
    if found:
        return f"write mt runs {shlex.quote(str(found))} for those that are near by"
    return "name the folder that holds run directories: mt runs DIR (without DIR that is runs)"
