"""Test sets: which files they are, their lines, and what is wrong with them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mt.cli.streams import DASH, reading
from mt.errors import DataError, MTError
from mt.files import decode_lines
from mt.formats.pairs import counted


class EvalSet(NamedTuple):
    """What is scored: `src` is what a run translates, and what else reads the source; `labels` are files of labels by what they are."""

    name: str
    src: Path | None
    refs: list[Path]
    labels: dict[str, Path] = {}  # noqa: RUF012


class Lines(NamedTuple):
    """The lines of a set: translations if there are any yet, source if known, a list for each reference, labels if asked for."""

    hypotheses: list[str] | None
    sources: list[str] | None
    refs: list[list[str]]
    labels: list[str] | None


def named_sets(values: list[str]) -> list[EvalSet]:
    """The sets that `--test NAME:SRC:REF` and `--test SET:PAIR` stand for."""
    sets: dict[str, EvalSet] = {}
    for value in values:
        name, *files = value.split(":")
        if len(files) > 2 or not all((name, *files)):
            raise MTError(f"--test {value}: expected NAME:SRC:REF, a name and two files with colons between them")
        if len(files) == 2:
            one = EvalSet(name, Path(files[0]), [Path(files[1])])
        else:
            from mt.evaluate.known_sets import known_set

            src, refs, labels = known_set(name, "".join(files))
            one = EvalSet(value, src, refs, labels)
        if one.name in sets:
            raise MTError(f"--test {value}: another set is called {one.name}; give each its own name")
        sets[one.name] = one
    return list(sets.values())


def read_set(one: EvalSet, hyp: Path | None, *, max_lines: int | None, groups: str | None = None) -> Lines:
    """The first `max_lines` lines of a set; `groups` is a file of labels, or the kind of those that the set has."""
    labels = one.labels.get(groups, Path(groups)) if groups else None
    files = [path for path in (hyp, one.src, labels, *one.refs) if path]
    read = dict(zip(files, read_parallel(files, max_lines=max_lines), strict=True))
    return Lines(
        read[hyp] if hyp else None, read[one.src] if one.src else None, [read[ref] for ref in one.refs], read[labels] if labels else None
    )


def read_parallel(paths: Sequence[Path], *, max_lines: int | None = None) -> list[list[str]]:
    """The lines of files of which line n of one answers line n of the others.

    Raises DataError, with names, when they differ in length or are empty.
    """
    if list(paths).count(DASH) > 1:
        raise MTError("-: is given more than once, but a pipe can be read only once; give files")
    first, *others = (lines_of(path) for path in paths)
    for path, lines in zip(paths[1:], others, strict=True):
        if len(lines) != len(first):
            where = _parting(first, lines)
            counts = f"{_named(paths[0])} has {counted(len(first), 'line')}, {_named(path)} has {len(lines)}"
            about = f"; by their lengths they part about line {where}" if where else ""
            raise DataError(f"{counts}: line n of one must answer line n of the other{about}")
    if not first:
        raise DataError(f"{_named(paths[0])}: has no lines, so that there is nothing to score")
    return [lines[:max_lines] for lines in (first, *others)]


def lines_of(path: Path) -> list[str]:
    """Of a file or of stdin. Raises MTError where stdin is a terminal, which would be waited for in silence."""
    if path == DASH and sys.stdin.isatty():
        raise MTError("-: reads a pipe, and nothing is piped in; give a file, or `mt translate … | mt eval --hyp - …`")
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
