"""Documents filled in by a translator that shouts."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from mt.config.schema import Langs
from mt.formats.exchange import Kind, Unit, open_document, table, translated

EN_DE = Langs(src="en", tgt="de")


def shout(text: str) -> str:
    """The right translation of a line."""
    return f"{text.upper()}!"


def shouted(lines: Iterator[tuple[str, str]]) -> Iterator[str]:
    """The right translations, of as many lines as are asked for at a time."""
    yield from (shout(line) for _, line in lines)


def filled(
    data: str | bytes,
    kind: Kind,
    *,
    langs: Langs | None = EN_DE,
    sources: Sequence[str] = (),
    retranslate: bool = False,
    as_table: bool = False,
    name: str = "x",
) -> bytes:
    """A document with its translations; `sources` are those of a model that has several."""
    document = open_document(io.BytesIO(data if isinstance(data, bytes) else data.encode()), name, kind)
    known = sources or ([langs.src] if langs else [])
    units = translated(document.units(known, langs.tgt if langs else None, retranslate=retranslate), shouted)
    return b"".join(table(units) if as_table else document.written(units))


def units_of(data: str | bytes, kind: Kind, *, langs: Langs | None = EN_DE, retranslate: bool = False) -> list[Unit]:
    """Its units, before anything is translated."""
    document = open_document(io.BytesIO(data if isinstance(data, bytes) else data.encode()), "x", kind)
    return list(document.units([langs.src] if langs else [], langs.tgt if langs else None, retranslate=retranslate))


def saved(folder: Path, name: str, data: str | bytes) -> Path:
    """A file."""
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path
