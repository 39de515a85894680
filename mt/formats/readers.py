"""Pairs from a corpus, whatever its format: one function a format, all lazy, all naming file and line of what is wrong.

Where a format lets a segment hold a TAB or a line break, each becomes a space; all other white space is left alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice, zip_longest
from pathlib import Path
from typing import assert_never

from mt.config.schema import Corpus, CsvFile, Fields, HubDataset, JsonlFile, Langs, PoFile, TextFiles, TmxFile, TsvFile, XliffFile
from mt.errors import DataError, EmptyError
from mt.files import read_lines, shards
from mt.formats.hub import read_hub
from mt.formats.pairs import Pair, choose_fields, counted, flatten, text_of
from mt.formats.po import read_po
from mt.formats.tables import read_csv, read_tsv
from mt.formats.tmx import read_tmx
from mt.formats.xliff import read_xliff


def read_pairs(corpus: Corpus, *, langs: Langs | None = None) -> Iterator[Pair]:
    """The first `max_pairs` pairs of a corpus in its order, those with an empty side or a flaw too.

    A folder or pattern of files is read file by file, in the order of their names. `langs`, unless the corpus has its own, name the fields
    of records and the variants of a translation memory. Raises DataError for bad input, EmptyError for a corpus without pairs.
    """
    pairs = islice(_pairs(corpus, corpus.langs or langs), corpus.max_pairs)
    first = next(pairs, None)
    if first is None:
        place = corpus.paths()[0] if corpus.paths() else corpus.called()
        raise EmptyError(f"{place}: is empty, there are no pairs in it")
    yield first
    yield from pairs


def read_held_out(corpus: Corpus, *, langs: Langs | None = None) -> list[Pair]:
    """The pairs of a dev or test set: all but those that their file calls unfit. Raises DataError as `read_pairs`, and if none is left."""
    flaws: Counter[str] = Counter()
    pairs = []
    for pair in read_pairs(corpus, langs=langs):
        if pair.flaw:
            flaws[pair.flaw] += 1
        else:
            pairs.append(pair)
    if not pairs:
        counts = ", ".join(f"{count} {flaw}" for flaw, count in flaws.most_common())
        raise DataError(f"{corpus.called()}: no pair can be used ({counts}); give another file")
    return pairs


def _pairs(corpus: Corpus, langs: Langs | None) -> Iterator[Pair]:
    match corpus:
        case TextFiles():
            return read_texts(corpus.src, corpus.tgt)
        case TsvFile():
            return _each(corpus.tsv, lambda file: read_tsv(file, columns=corpus.columns))
        case CsvFile():
            return _each(corpus.csv, lambda file: read_csv(file, columns=corpus.columns, separator=corpus.separator))
        case JsonlFile():
            return _each(corpus.jsonl, lambda file: read_jsonl(file, fields=corpus.fields, langs=langs))
        case TmxFile():
            return _each(corpus.tmx, lambda file: read_tmx(file, langs=langs))
        case XliffFile():
            return _each(corpus.xliff, lambda file: read_xliff(file, langs=langs))
        case PoFile():
            return _each(corpus.po, read_po)
        case HubDataset():
            return read_hub(corpus, name=corpus.called(), langs=langs)
        case _:
            assert_never(corpus)


def _each(path: Path, read: Callable[[Path], Iterator[Pair]]) -> Iterator[Pair]:
    """The pairs of each of the files behind a path."""
    for file in shards(path):
        yield from read(file)


def read_texts(src: Path, tgt: Path) -> Iterator[Pair]:
    """The pairs of two text files, or of two folders or patterns: the n-th file of one with the n-th of the other, see `read_text`.

    Raises DataError with both counts when one side has more files.
    """
    src_files, tgt_files = shards(src), shards(tgt)
    if len(src_files) != len(tgt_files):
        counts = f"{src} stands for {counted(len(src_files), 'file')}, {tgt} for {len(tgt_files)}"
        raise DataError(f"{counts}: file n of one must translate file n of the other, in the order of their names")
    for src_file, tgt_file in zip(src_files, tgt_files, strict=True):
        yield from read_text(src_file, tgt_file)


def read_text(src: Path, tgt: Path) -> Iterator[Pair]:
    """Line n of one file with line n of the other; the origin is the source line.

    Raises DataError with both counts when one file has more lines: after the last common line, before anything else.
    """
    with closing(read_lines(src)) as src_lines, closing(read_lines(tgt)) as tgt_lines:  # at once, also where the other side is broken
        lines = zip_longest(src_lines, tgt_lines)
        for number, (src_line, tgt_line) in enumerate(lines, 1):
            if src_line is None or tgt_line is None:
                shorter, longer = number - 1, number + sum(1 for _ in lines)
                src_count, tgt_count = (shorter, longer) if src_line is None else (longer, shorter)
                counts = f"{src} has {counted(src_count, 'line')}, {tgt} has {tgt_count}"
                raise DataError(f"{counts}: line n of one must translate line n of the other")
            yield Pair(src_line.replace("\t", " "), tgt_line.replace("\t", " "), f"{src.name}:{number}")


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
