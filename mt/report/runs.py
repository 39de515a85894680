"""The runs of a folder side by side. Loads no torch; what is no run, or a damaged one, is told and passed over."""

from __future__ import annotations

import glob
import json
import math
import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt.config.load import load
from mt.config.schema import Config
from mt.errors import MTError
from mt.report.history import History, numbers
from mt.report.settings import differing, flat, written
from mt.report.standing import State, duration, state_of
from mt.rundir import RunDir

NARROW = 30  # columns that are too few for the settings beside the rest
LONG = 40  # characters of a value


@dataclass(frozen=True)
class Run:
    """What is listed of a run."""

    name: str
    path: Path
    config: Config
    state: State
    updates: int
    seconds: float
    dev: dict[str, float]
    """Scores of the best validation, by metric."""
    tests: dict[str, float]
    """BLEU of each test set."""


def survey(folder: Path) -> tuple[list[Run], dict[str, str]]:
    """The runs in a folder, or the one that it is, by name; and what else is there, with what is the matter with it."""
    if RunDir(folder).config.is_file():
        folders = [folder]
    else:
        folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    found, others = [], {}
    for path in folders:
        try:
            found.append(_run(path))
        except MTError as error:
            others[path.name] = str(error).splitlines()[0].removeprefix(f"{path}: ")
        except OSError as error:
            others[path.name] = f"cannot be read ({(error.strerror or str(error)).lower()})"
    return found, others


def holds_runs(folder: str | Path) -> bool:
    """Whether a folder has runs directly in it, as far as it can be read."""
    return any(glob.iglob(os.path.join(glob.escape(str(folder)), "*", RunDir(folder).journal.name)))


def _run(path: Path) -> Run:
    run = RunDir(path)
    if not run.config.is_file():
        raise MTError("is no run")
    config = load(run.config).config
    history = History.of(run)
    best = history.best or next(iter(history.validations[-1:]), None)
    return Run(
        name=path.absolute().name,
        path=path,
        config=config,
        state=state_of(run, history),
        updates=history.update,
        seconds=history.seconds,
        dev=best["scores"] if best else {},
        tests=_tests(run),
    )


def _tests(run: RunDir) -> dict[str, float]:
    try:
        told = json.loads(run.test_scores.read_text(encoding="utf-8"))
        bleu = {name: next((one["score"] for one in test["metrics"] if one["name"] == "BLEU"), None) for name, test in told.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return numbers(bleu)


def as_objects(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """For JSON: numbers unrounded, those that are none as null, and under `settings` what is not the same in all runs."""
    names = differing([run.config for run in runs])
    return [
        {
            "name": run.name,
            "path": str(run.path),
            "state": run.state.name,
            "updates": run.updates,
            "seconds": run.seconds,
            "dev": {metric: value if math.isfinite(value) else None for metric, value in run.dev.items()},
            "tests": run.tests,
            "settings": {name: flat(run.config).get(name) for name in names},
        }
        for run in runs
    ]


def listed(runs: Sequence[Run], *, width: int) -> Iterator[str]:
    """A table no wider than `width`: the settings that differ stand in the last column, or on lines of their own where that is narrow."""
    if not runs:
        return
    tests = list(dict.fromkeys(name for run in runs for name in run.tests))
    head = ["run", "state", "updates", "time", "BLEU", "chrF", "loss", *(f"BLEU {name}" for name in tests)]
    rows = [
        [
            *(run.name, run.state.name, str(run.updates), duration(run.seconds)),
            *(_score(run.dev.get(metric), places) for metric, places in (("bleu", 2), ("chrf", 2), ("loss", 3))),
            *(_score(run.tests.get(name), 2) for name in tests),
        ]
        for run in runs
    ]
    keep = [place for place in range(len(head)) if place < 4 or any(row[place] for row in rows)]
    head, rows = [head[place] for place in keep], [[row[place] for place in keep] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    while len(widths) > 4 and sum(widths) + 2 * len(widths) > width:  # those of test sets first, they are the rightmost
        widths.pop()
    widths[0] = min(widths[0], max(8, width - sum(widths[1:]) - 2 * (len(widths) - 1)))
    lines = [_cells(row, widths) for row in (head, *rows)]
    settings = _settings(runs)
    beside = width - len(lines[0]) - 2
    if not any(settings):
        yield from map(str.rstrip, lines)
    elif beside >= NARROW:
        yield f"{lines[0]}  differs in"
        for line, text in zip(lines[1:], settings, strict=True):
            first, *rest = _wrapped(text, beside)
            yield f"{line}  {first}".rstrip()
            yield from (" " * (len(line) + 2) + more for more in rest)
    else:
        yield lines[0].rstrip()
        for line, text in zip(lines[1:], settings, strict=True):
            yield line.rstrip()
            yield from (f"    {more}" for more in _wrapped(text, max(width - 4, 20)))


def _cells(row: Sequence[str], widths: Sequence[int]) -> str:
    """Names to the left, numbers to the right; a name that is too long loses its middle."""
    cut = [
        cell if len(cell) <= width else f"{cell[: width // 2]}…{cell[len(cell) - (width - 1) // 2 :]}"
        for cell, width in zip(row, widths, strict=False)
    ]
    return "  ".join(
        cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in enumerate(zip(cut, widths, strict=True))
    )


def _score(value: float | None, places: int) -> str:
    return "" if value is None else f"{value:.{places}f}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=True, break_on_hyphens=False) or [""]


def _settings(runs: Sequence[Run]) -> list[str]:
    """For each run what is not the same in all, by names as short as they can be."""
    names = differing([run.config for run in runs])
    values_of = [flat(run.config) for run in runs]
    last = Counter(name.rpartition(".")[2] for name in {name for values in values_of for name in values})
    found = []
    for values in values_of:
        told = [(name, written(values.get(name))) for name in names if name in values]
        short = ((name.rpartition(".")[2] if last[name.rpartition(".")[2]] == 1 else name, text) for name, text in told)
        found.append(" ".join(f"{name}={text if len(text) <= LONG else text[: LONG - 1] + '…'}" for name, text in short))
    return found
