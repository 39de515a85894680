"""Documents whose translations are filled in: the units they consist of, and the way from units to lines and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, BinaryIO, Protocol, assert_never

from mt.formats.pairs import one_line

PACKED = frozenset((".gz", ".bz2", ".xz", ".zst"))


class Kind(StrEnum):
    """Formats of documents."""

    po = "po"
    xliff = "xliff"
    tmx = "tmx"
    tsv = "tsv"


SUFFIXES = {".po": Kind.po, ".pot": Kind.po, ".xlf": Kind.xliff, ".xliff": Kind.xliff, ".tmx": Kind.tmx, ".tsv": Kind.tsv}


@dataclass
class Unit:
    """A text of a document with its translation."""

    origin: str
    """Where it comes from, for messages."""
    source: str
    target: str
    """Empty where there is none."""
    wanted: bool
    """To be translated: it has no translation, or a new one was asked for."""
    place: Any = None
    """What the document needs to put the translation where it belongs."""
    filled: bool = False
    """The translation is a new one."""


class Document(Protocol):
    """A file of one format, read and checked."""

    def units(self, sources: Sequence[str], tgt: str | None, *, retranslate: bool) -> Iterator[Unit]:
        """All units in order, for a translation from one of these languages (none: not known, the file is to tell) to another.

        With `retranslate` those that have a translation are wanted as well. Raises DataError where the file goes from another language,
        or does not tell from which of them.
        """
        ...

    def written(self, units: Iterator[Unit]) -> Iterator[bytes]:
        """The file with the translations of its units, which are taken from the iterator as they become ready."""
        ...


def kind_of(path: PurePath) -> Kind | None:
    """The format that a name stands for, under compression suffixes too; None for text."""
    while path.suffix.lower() in PACKED:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())


def open_document(stream: BinaryIO, name: str, kind: Kind) -> Document:
    """Read a document; a TSV is read later, row by row. `name` is the file in messages. Raises DataError as the readers of corpora do."""
    from mt.formats.po_document import PoDocument
    from mt.formats.tables import TsvDocument
    from mt.formats.tmx import TmxDocument
    from mt.formats.xliff import XliffDocument

    match kind:
        case Kind.po:
            return PoDocument(stream, name)
        case Kind.xliff:
            return XliffDocument(stream, name)
        case Kind.tmx:
            return TmxDocument(stream, name)
        case Kind.tsv:
            return TsvDocument(stream, name)
        case _:
            assert_never(kind)


def table(units: Iterable[Unit]) -> Iterator[bytes]:
    """A TSV of source and translation, a row a unit."""
    for unit in units:
        yield f"{one_line(unit.source)}\t{one_line(unit.target)}\n".encode()


# ── units and lines ─────────────────────────────────────────────────────────────────────────────────────────────────


def lines_of(text: str) -> list[str]:
    """What is to be translated of a text: its lines, without white space around them and without blank ones."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def with_lines(text: str, translations: Iterable[str]) -> str:
    """The text with its lines replaced, those of `lines_of` in order; line breaks and the white space around lines stay."""
    rest = iter(translations)

    def replaced(line: str) -> str:
        core = line.strip()
        if not core:
            return line
        before, _, after = line.partition(core)
        return f"{before}{next(rest)}{after}"

    return "\n".join(map(replaced, text.split("\n")))


def translated(units: Iterable[Unit], translate: Callable[[Iterator[tuple[str, str]]], Iterable[str]]) -> Iterator[Unit]:
    """The same units, the wanted ones with a translation.

    `translate` gets (origin, line) of each line and gives a translation for each, in order, reading as far ahead as it likes. What is
    nothing but white space is copied; a unit of which nothing was made stays as it is.
    """
    waiting: deque[tuple[Unit, int]] = deque()

    def lines() -> Iterator[tuple[str, str]]:
        for unit in units:
            found = lines_of(unit.source) if unit.wanted else []
            waiting.append((unit, len(found)))
            yield from ((unit.origin, line) for line in found)

    def ready(done: list[str]) -> Iterator[Unit]:
        while waiting and waiting[0][1] <= len(done):
            unit, count = waiting.popleft()
            if unit.wanted and (any(done[:count]) or (unit.source and not count)):
                unit.target, unit.filled = with_lines(unit.source, done[:count]), True
            del done[:count]
            yield unit

    done: list[str] = []
    for text in translate(lines()):
        done.append(text)
        yield from ready(done)
    yield from ready(done)
