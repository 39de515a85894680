"""A translation written to a file that a killed process goes on with, for `mt translate --resume-output`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from mt.clean.tally import Tally
from mt.data.meter import Say
from mt.files import read_lines
from mt.formats.pairs import counted
from mt.synthesize.produce import told_if_interrupted
from mt.synthesize.unfinished import unfinished
from mt.translator import WINDOW


def resume(
    output: Path, settings: Mapping[str, Any], given: Path, records: Callable[[Iterable[str], int], Iterator[str]], *, say: Say
) -> None:
    """Make the file, or go on after the lines there are; `records` makes lines of lines, given the number of the first.

    Raises DataError where it was begun with other settings.
    """
    with unfinished(output, settings) as work, told_if_interrupted(work, say=say):
        if work.lines:
            say(f"{output}: goes on after {counted(work.lines, 'line')}")
        rest = records(islice(read_lines(given), work.lines, None), work.lines + 1)
        while some := list(islice(rest, WINDOW)):
            work.add(some, Tally())
        work.finish()
