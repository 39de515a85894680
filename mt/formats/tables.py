"""Pairs in the columns of a table: TSV, where quotes are ordinary characters, and CSV, where they are not (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from mt.config.corpora import KINDS
from mt.errors import DataError
from mt.files import BOM, decode_lines, read_lines
from mt.formats.exchange import Unit
from mt.formats.pairs import Pair, counted, listed, one_line

CSV_FAULTS = {
    "unexpected end of data": "a quote that begins here is never closed",
    "field larger than field limit": f"a field of more than {csv.field_size_limit()} characters; is a quote never closed?",
    "expected after": "text between a closing quote and the next separator; a quote within quotes is written twice",
    "new-line character": "a carriage return outside quotes; save the file with plain line ends",
}
"""What the csv module says, and what is meant."""


def read_tsv(path: Path, *, columns: tuple[int, int] | None = None) -> Iterator[Pair]:
    """Two columns of a tab-separated file without header; quotes are ordinary characters, so a line is always a pair.

    Without `columns` there must be exactly two; with them others are ignored, but all lines have as many as the first. Raises DataError
    naming the line, an empty line too.
    """
    rows = ((number, line.split("\t")) for number, line in enumerate(read_lines(path), 1))
    yield from _pairs(rows, path, columns or (0, 1), exactly_two=not columns)


def read_csv(path: Path, *, columns: tuple[int, int] | tuple[str, str] | None = None, separator: str = ",") -> Iterator[Pair]:
    """Two columns of a CSV file, chosen as in `read_tsv` or by the names in its first line; the origin is the line a record begins at.

    A field of several lines becomes one line; blank lines are no records. Raises DataError naming the line a record begins at.
    """
    rows = _csv_rows(path, separator)
    places: tuple[int, int] = (0, 1)
    match columns:
        case (str() as src, str() as tgt):
            number, header = next(rows, (1, []))
            for name in (src, tgt):
                if name not in header:
                    raise DataError(f"{path}:{number}: no column {name!r}; {listed(header)}")
            places = header.index(src), header.index(tgt)
        case (int() as first, int() as second):
            places = first, second
    yield from _pairs(rows, path, places, exactly_two=columns is None)


def _pairs(rows: Iterator[tuple[int, Sequence[str]]], path: Path, columns: tuple[int, int], *, exactly_two: bool) -> Iterator[Pair]:
    """The two columns of (line, cells), all rows having as many cells as the first, or two."""
    src, tgt = columns
    width, first = 2 if exactly_two else 0, 0
    for number, cells in rows:
        if not width:
            if max(src, tgt) >= len(cells):
                asked = f"columns: [{src}, {tgt}] counts from 0 and asks for more"
                raise DataError(f"{path}:{number}: {counted(len(cells), 'column')}, but {asked}")
            width, first = len(cells), number
        if len(cells) != width:
            cure = f"as in line {first}" if first else "choose with columns: [0, 1]" if len(cells) > 1 else _nothing_separates(path)
            raise DataError(f"{path}:{number}: {counted(len(cells), 'column')}, expected {width} ({cure})")
        yield Pair(one_line(cells[src]), one_line(cells[tgt]), f"{path.name}:{number}")


def _nothing_separates(path: Path) -> str:
    """What is said of a line that is one column, in a file that may by its name be no table."""
    kind = next((suffix[1:] for suffix in path.suffixes if suffix[1:] in KINDS), None)
    return "no separator in it" + (f"; .{kind} is read with {kind}: FILE" if kind not in (None, "tsv", "csv") else "")


def _csv_rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """(line it begins at, cells) of each record."""
    rows = csv.reader((f"{line}\n" for line in read_lines(path)), delimiter=separator, strict=True)
    while True:
        begin = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reason = next((meant for said, meant in CSV_FAULTS.items() if said in str(error)), str(error))
            raise DataError(f"{path}:{begin}: {reason}") from None
        if cells:
            yield begin, cells


class _Beginning:
    """A stream that remembers its first line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._head = b""

    def read(self, size: int) -> bytes:
        """What there is now."""
        data: bytes = self._read(size)
        if b"\n" not in self._head:
            self._head += data
        return data

    @property
    def mark(self) -> bytes:
        """The byte order mark, if it has one."""
        return BOM if self._head.startswith(BOM) else b""

    @property
    def line_end(self) -> str:
        """How the first line ends."""
        return "\r\n" if self._head.partition(b"\n")[0].endswith(b"\r") else "\n"


class TsvDocument:
    """A TSV to be filled in: the source is the first column, its translation the second; read while it is translated, in bounded memory."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = _Beginning(stream), name

    def units(self, sources: Sequence[str], tgt: str | None, *, retranslate: bool) -> Iterator[Unit]:  # noqa: ARG002 (a table names none)
        """One a row; a blank second column is no translation."""
        for number, line in enumerate(decode_lines(cast(BinaryIO, self._stream), self._name), 1):
            cells = line.split("\t")
            target = cells[1] if len(cells) > 1 else ""
            yield Unit(f"{self._name}:{number}", cells[0], target, retranslate or not target.strip(), cells)

    def written(self, units: Iterator[Unit]) -> Iterator[bytes]:
        """The rows with their second column filled in, or added; others stay, and byte order mark and line ends as well."""
        for number, unit in enumerate(units):
            cells = unit.place
            row = [cells[0], unit.target if unit.filled else "".join(cells[1:2]), *cells[2:]]
            yield (b"" if number else self._stream.mark) + ("\t".join(row) + self._stream.line_end).encode()
