"""Test sets: which files they are, their lines, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mt.cli.streams import DASH, reading
from mt.errors import DataError, MTError
from mt.files import decode_lines


class EvalSet(NamedTuple):
    """What is scored: `src` is what a run translates; there is none when the translations come from a file."""

    name: str
    src: Path | None
    refs: list[Path]


class Lines(NamedTuple):
    """The lines of a set: `given` is the source text, or the translations themselves; `refs` has a list for each reference file."""

    given: list[str]
    refs: list[list[str]]


def named_sets(values: list[str]) -> list[EvalSet]:
    """The sets that `--test NAME:SRC:REF` stand for."""
    sets: dict[str, EvalSet] = {}
    for value in values:
        name, *files = value.split(":")
        if not name or len(files) != 2 or not all(files):
            raise MTError(f"--test {value}: expected NAME:SRC:REF, a name and two files with colons between them")
        if name in sets:
            raise MTError(f"--test {value}: another set is called {name}; give each its own name")
        sets[name] = EvalSet(name, Path(files[0]), [Path(files[1])])
    return list(sets.values())


def read_set(one: EvalSet, hyp: Path | None, *, max_lines: int | None) -> Lines:
    """The first `max_lines` lines of a set."""
    given = one.src or hyp or DASH
    lines, *refs = read_parallel([given, *one.refs], max_lines=max_lines)
    return Lines(lines, refs)


def read_parallel(paths: Sequence[Path], *, max_lines: int | None = None) -> list[list[str]]:
    """The lines of files of which line n of one answers line n of the others; raises DataError, with names, when they differ in length."""
    first, *others = (lines_of(path) for path in paths)
    for path, lines in zip(paths[1:], others, strict=True):
        if len(lines) != len(first):
            where = _parting(first, lines)
            counts = f"{_named(paths[0])} has {len(first)} lines, {_named(path)} has {len(lines)}"
            about = f"; by their lengths they part about line {where}" if where else ""
            raise DataError(f"{counts}: line n of one must answer line n of the other{about}")
    return [lines[:max_lines] for lines in (first, *others)]


def lines_of(path: Path) -> list[str]:
    """Of a file or of stdin."""
    with reading(path) as source:
        return list(decode_lines(source(), _named(path)))


def _named(path: Path) -> str:
    """As messages call it."""
    return "<stdin>" if path == DASH else str(path)


def _parting(lines: list[str], ref: list[str]) -> int | None:
    """Where two files of different lengths seem to part; None if that cannot be told."""
    import numpy as np

    from mt.doctor.alignment import surplus_at

    return surplus_at(np.array([len(line) for line in lines]), np.array([len(line) for line in ref]))
