"""The prepared pairs of one set: an Arrow file, memory-mapped through the `datasets` library, with text, ids and origin of each pair.

Legend: N pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mt.data.filters import Tally, drop_reason, length_reason
from mt.data.pairs import Pair
from mt.errors import RunError
from mt.files import write_atomic
from mt.tokenizer.spm import Tokenizers

ROWS = 1000  # pairs of a record batch
IDS = pa.list_(pa.int32())
SCHEMA = pa.schema({"src": pa.string(), "tgt": pa.string(), "origin": pa.string(), "src_ids": IDS, "tgt_ids": IDS})


class Example(NamedTuple):
    """A pair with its ids, without bos and eos."""

    pair: Pair
    src_ids: list[int]
    tgt_ids: list[int]
    noise: tuple[str, ...] = ()
    """What was done to them on the way from the store, by the names of the settings."""
    tag: int | None = None
    """Id that goes before the source, for the target language."""


@dataclass(frozen=True)
class Span:
    """A corpus within a store: where it begins, its pairs, its passes per epoch."""

    start: int
    count: int
    weight: float = 1.0


class Store:
    """Pairs by index; only lengths and what is asked for are in memory. Raises RunError where its two files are not whole."""

    def __init__(self, path: Path) -> None:
        from datasets import Dataset

        self.path = file = path
        try:
            self.rows: Any = Dataset.from_file(str(path)).with_format("arrow")
            columns = self.rows.data.select(["src_ids", "tgt_ids"])
            self.lengths_N2 = np.stack([pc.list_value_length(column).to_numpy() for column in columns.columns], axis=1).astype(np.int64)
            """Pieces of both sides, without EOS, (N, 2)."""
            file = spans_file(path)
            self.spans = [Span(**span) for span in json.loads(file.read_text(encoding="utf-8"))]
            whole = len(self) == sum(span.count for span in self.spans)
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
            whole = False
        if not whole:
            raise RunError(f"{file}: is damaged or missing; copy the whole run directory, or start over with --overwrite")

    def __len__(self) -> int:
        return len(self.lengths_N2)

    def take(self, indices: Iterable[int]) -> list[Example]:
        """The examples at these places, in this order."""
        table = self.rows[list(map(int, indices))]
        src, tgt, origin, src_ids, tgt_ids = (table.column(name).to_pylist() for name in SCHEMA.names)
        return [Example(Pair(*text), s, t) for *text, s, t in zip(src, tgt, origin, src_ids, tgt_ids, strict=True)]

    def pairs(self) -> Iterator[Pair]:
        """All pairs in order."""
        for start in range(0, len(self), ROWS):
            yield from (example.pair for example in self.take(range(start, min(start + ROWS, len(self)))))


def spans_file(path: Path) -> Path:
    """Where the spans of a store are kept."""
    return path.with_suffix(".json")


def build_store(
    path: Path, corpora: Iterable[tuple[str, float, Iterable[Pair]]], tokenizers: Tokenizers, *, max_pieces: int | None
) -> list[str]:
    """Filter, encode and write (name, weight, pairs) of each corpus to `path`, whole or not at all; returns a line about each.

    Pairs with an empty side are dropped, and pairs longer than `max_pieces` (None: kept whatever their length).
    Raises DataError when nothing is left of a corpus.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    spans, report, start = [], [], 0
    with write_atomic(path, "wb") as sink:
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            for name, weight, pairs in corpora:
                tally = Tally()
                for columns in _encoded(pairs, tokenizers, tally, max_pieces=max_pieces):
                    writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
                tally.require_pairs(name)
                report.append(tally.line(name))
                spans.append(Span(start, tally.kept, weight))
                start += tally.kept
        with write_atomic(spans_file(path)) as file:
            json.dump([asdict(span) for span in spans], file)
    return report


def _encoded(pairs: Iterable[Pair], tokenizers: Tokenizers, tally: Tally, *, max_pieces: int | None) -> Iterator[list[list[Any]]]:
    """Columns of up to ROWS pairs that are kept, in the order of SCHEMA; each pair is counted."""
    for chunk in batched_list(pairs):
        usable = []
        for pair in chunk:
            if reason := drop_reason(pair):
                tally.add(reason, pair.origin)
            else:
                usable.append(pair)
        src_ids = tokenizers.src.encode_batch([pair.src for pair in usable])
        tgt_ids = tokenizers.tgt.encode_batch([pair.tgt for pair in usable])
        rows = []
        for pair, src, tgt in zip(usable, src_ids, tgt_ids, strict=True):
            reason = length_reason(src, tgt, max_pieces=max_pieces or max(len(src), len(tgt)))
            tally.add(reason, pair.origin)
            if reason is None:
                rows.append((*pair[:3], src, tgt))
        if rows:
            yield [list(column) for column in zip(*rows, strict=True)]


def batched_list(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Lists of up to ROWS pairs."""
    rest = iter(pairs)
    while chunk := list(islice(rest, ROWS)):
        yield chunk
