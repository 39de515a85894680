"""The document side of `mt translate`: catalogues, memories and tables whose translations are filled in."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from mt.errors import MTError

if TYPE_CHECKING:
    from mt.decode.translation import Translation
    from mt.formats.exchange import Document, Kind, Unit

Search = Callable[[Iterator[str]], Iterable["Translation"]]
"""From lines to their translations."""


class Warned(Protocol):
    """Passes translations on, and warns of them at the end, with the place of each."""

    def __call__(self, translations: Iterable[Translation], *, places: Iterator[str]) -> Iterator[Translation]:
        """The same translations."""
        ...


class InputFormat(StrEnum):
    """What `mt translate` reads."""

    auto = "auto"
    text = "text"
    po = "po"
    xliff = "xliff"
    tmx = "tmx"
    tsv = "tsv"


def document_kind(asked: InputFormat, source: Path, output: Path, *, text_only: Mapping[str, object], retranslate: bool) -> Kind | None:
    """The kind of document to be filled in, by what was asked for or by the name of the input; None for text.

    Raises MTError, in one line, for options (by name; None or False if not given) that only go with text, for --retranslate with text, and
    for an output of another kind; lines of text are a TSV of one column.
    """
    from mt.formats.exchange import Kind, kind_of

    kind = kind_of(source) if asked is InputFormat.auto else None if asked is InputFormat.text else Kind(asked)
    into = kind_of(output)
    if kind is None:
        if into not in (None, Kind.tsv):
            cure = f"name it otherwise, or give --input-format {into} if the input is one"
            raise MTError(f"--output {output}: is the name of a {into}, but what is written is plain text; {cure}")
        if retranslate:
            raise MTError("--retranslate goes with documents; plain text has no translations yet (see --input-format)")
        return None
    for name, value in text_only.items():
        if value:
            raise MTError(f"{name} {value} goes with plain text: a {kind} has one translation a unit (--input-format text reads its lines)")
    if into not in (None, kind, Kind.tsv):
        raise MTError(f"--output {output}: a {kind} stays a {kind}, or becomes a table (.tsv), but no {into}")
    return kind


def fill_in(
    document: Document,
    file: BinaryIO,
    search: Search,
    warned: Warned,
    *,
    sources: Sequence[str],
    tgt: str | None,
    retranslate: bool,
    as_table: bool,
    protected: bool,
) -> None:
    """Translate what has no translation, and write the document, or a table of its units. What was done is said on stderr.

    What translations lost of placeholders and tags, too, unless the translations know what is `protected`, and tell it themselves.
    """
    from mt.formats.exchange import table, translated
    from mt.formats.pairs import counted
    from mt.formats.placeholders import lost

    places: deque[str] = deque()
    counts: Counter[str] = Counter()
    incomplete: list[str] = []

    def texts(lines: Iterator[tuple[str, str]]) -> Iterator[str]:
        def bare() -> Iterator[str]:
            for place, line in lines:
                places.append(place)
                yield line

        yield from (found.text for found in warned(search(bare()), places=iter(places.popleft, None)))

    def tallied(units: Iterator[Unit]) -> Iterator[Unit]:
        for unit in units:
            counts.update(units=1, new=int(unit.filled), old=int(not unit.wanted and unit.target != ""))
            if unit.filled and not protected and (missing := lost(unit.source, unit.target)):
                incomplete.append(f"{unit.origin} ({' '.join(missing)})")
            yield unit

    units = tallied(translated(document.units(sources, tgt, retranslate=retranslate), texts))
    for data in table(units) if as_table else document.written(units):
        file.write(data)
    if incomplete:
        print(f"warning: {counted(len(incomplete), 'unit')} lost a placeholder, first {incomplete[0]}", file=sys.stderr)
    old = f"; {counts['old']} had a translation already (--retranslate replaces it)" if counts["old"] else ""
    print(f"{counts['new']} of {counted(counts['units'], 'unit')} filled in{old}", file=sys.stderr)
