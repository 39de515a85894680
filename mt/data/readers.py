"""Pairs from a corpus, whatever its format: one function a format, all lazy, all naming file and line of what is wrong.

Where a format lets a segment hold a TAB or a line break, each becomes a space; all other white space is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import assert_never

from mt.config.schema import Corpus, Fields, HubDataset, JsonlFile, Langs, TextFiles, TsvFile
from mt.data.hub import read_hub
from mt.data.pairs import Pair, choose_fields, flatten, text_of
from mt.errors import DataError
from mt.files import read_lines


def read_pairs(corpus: Corpus, *, langs: Langs | None = None) -> Iterator[Pair]:
    """All pairs of a corpus in its order, those with an empty side too. Raises DataError for bad input and for a corpus without pairs.

    `langs` names the fields of records when the corpus does not.
    """
    place: str | Path
    match corpus:
        case TextFiles():
            place, pairs = corpus.src, read_text(corpus.src, corpus.tgt)
        case TsvFile():
            place, pairs = corpus.tsv, read_tsv(corpus.tsv, columns=corpus.columns)
        case JsonlFile():
            place, pairs = corpus.jsonl, read_jsonl(corpus.jsonl, fields=corpus.fields, langs=langs)
        case HubDataset():
            place, pairs = corpus.called(), read_hub(corpus, name=corpus.called(), langs=langs)
        case _:
            assert_never(corpus)
    first = next(pairs, None)
    if first is None:
        raise DataError(f"{place}: is empty, there are no pairs in it")
    yield first
    yield from pairs


def read_text(src: Path, tgt: Path) -> Iterator[Pair]:
    """Line n of one file with line n of the other; the origin is the source line.

    Raises DataError with both counts when one file has more lines: after the last common line, before anything else.
    """
    lines = zip_longest(read_lines(src), read_lines(tgt))
    for number, (src_line, tgt_line) in enumerate(lines, 1):
        if src_line is None or tgt_line is None:
            shorter, longer = number - 1, number + sum(1 for _ in lines)
            src_count, tgt_count = (shorter, longer) if src_line is None else (longer, shorter)
            counts = f"{src} has {_count(src_count, 'line')}, {tgt} has {tgt_count}"
            raise DataError(f"{counts}: line n of one must translate line n of the other")
        yield Pair(src_line.replace("\t", " "), tgt_line.replace("\t", " "), f"{src.name}:{number}")


def read_tsv(path: Path, *, columns: tuple[int, int] | None = None) -> Iterator[Pair]:
    """Two columns of a tab-separated file without header; quotes are ordinary characters, so a line is always a pair.

    Without `columns` there must be exactly two; with them others are ignored, but all lines have as many as the first. Raises DataError
    naming the line, an empty line too.
    """
    src, tgt = columns or (0, 1)
    width = 0 if columns else 2
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if not width:
            if max(src, tgt) >= len(cells):
                asked = f"columns: [{src}, {tgt}] counts from 0 and asks for more"
                raise DataError(f"{path}:{number}: {_count(len(cells), 'column')}, but {asked}")
            width = len(cells)
        if len(cells) != width:
            cure = "as in line 1" if columns else "choose with columns: [0, 1]"
            raise DataError(f"{path}:{number}: {_count(len(cells), 'column')}, expected {width} ({cure})")
        yield Pair(cells[src], cells[tgt], f"{path.name}:{number}")


def read_jsonl(path: Path, *, fields: Fields | None = None, langs: Langs | None = None) -> Iterator[Pair]:
    """One JSON object a line; the first one decides which fields are read if `fields` does not (see `choose_fields`).

    Blank lines are skipped: as a record is a pair, nothing moves. Raises DataError naming the line for what is no JSON object, and line and
    field for a field that is missing or no string.
    """
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
            record = flatten(value) if isinstance(value, dict) else None
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: no valid JSON, {error.msg} (at character {error.colno}); expected one object a line") from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets thousands deep
            raise DataError(f"{where}: JSON that cannot be read ({error})") from None
        if record is None:
            raise DataError(f'{where}: expected a JSON object, such as {{"src": "…", "tgt": "…"}}')
        fields = fields or choose_fields(record, fields=None, langs=langs, where=where)
        src, tgt = text_of(record, fields.src, where=where), text_of(record, fields.tgt, where=where)
        yield Pair(src, tgt, f"{path.name}:{number}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
