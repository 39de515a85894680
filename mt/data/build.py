"""Make a store: read, filter, tokenise, drop duplicates, write; the same to the last byte with any number of processes.

The parent reads pairs and hands out chunks; workers filter, encode and hash them; the parent takes the results in the order of the chunks,
drops the pairs seen before and writes. Few chunks are on the way at once, so memory does not grow with the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mt.clean.duplicates import Kind, Seen, fingerprint
from mt.clean.filters import Filter, drop_reason, length_reason
from mt.clean.tally import Tally
from mt.data.meter import Meter, Say
from mt.data.store import LENGTHS, PAIRS, SCHEMA, write_facts
from mt.data.workers import core_count, in_order
from mt.files import write_folder
from mt.formats.pairs import Pair
from mt.tokenizer.spm import Tokenizers

CHUNK = 8192  # pairs of a chunk, and most of a record batch: each record batch costs a reader 7 KB, so there should not be many
CHUNK_CHARACTERS = 4_000_000  # on the source side of a chunk: one of very long lines has fewer pairs
ALONE = 4  # chunks that are done before other processes are started: a small corpus ends there
DUPLICATE = "duplicate"
LIKE_HELD_OUT = "like a held-out pair"

Alike = Callable[[Sequence[str], Sequence[str]], Collection[int]]
"""Of pairs, given as sources and targets, the rows of those that are too close to held-out ones; can be pickled."""


@dataclass(frozen=True)
class Source:
    """A corpus to be stored."""

    name: str
    pairs: Iterable[Pair]
    reason: Filter = drop_reason
    """The filters on its text; can be pickled."""
    tag: str | None = None
    """The language of the tag before its sources, if there are tags: with another one the same texts are another pair."""


class Chunk(NamedTuple):
    """Pairs of one corpus, and its number."""

    corpus: int
    pairs: list[Pair]


class Encoded(NamedTuple):
    """What became of a chunk."""

    corpus: int
    rows: pa.RecordBatch
    lengths_N2: NDArray[np.int32]
    unknown_N: NDArray[np.int64]
    """Unknown pieces of each row."""
    hashes_N: NDArray[np.uint64] | None
    """Where duplicates are dropped."""
    dropped: Tally
    """Nothing is counted as kept yet."""


@dataclass(frozen=True)
class Recipe:
    """What makes rows of pairs; can be pickled."""

    reasons: list[Filter]
    tags: list[str | None]
    tokenizers: Tokenizers
    max_pieces: int | None
    duplicates: Kind | None
    alike: Alike | None

    def __call__(self, chunk: Chunk) -> Encoded:
        """Filter and encode a chunk."""
        tally = Tally()
        pairs = list(tally.keep(chunk.pairs, self.reasons[chunk.corpus]))
        if self.alike and (rows := self.alike([pair.src for pair in pairs], [pair.tgt for pair in pairs])):
            for row in sorted(rows):
                tally.add(LIKE_HELD_OUT, pairs[row].origin, pairs[row].src, pairs[row].tgt)
            pairs = [pair for row, pair in enumerate(pairs) if row not in rows]
        sides = [
            self.tokenizers.src.encode_arrays([pair.src for pair in pairs]),
            self.tokenizers.tgt.encode_arrays([pair.tgt for pair in pairs]),
        ]
        lengths_N2 = np.array([list(map(len, ids)) for ids in sides], dtype=np.int32).T
        most = self.max_pieces or int(lengths_N2.max(initial=1))
        fits = (lengths_N2.min(axis=1) > 0) & (lengths_N2.max(axis=1) <= most)
        for row in np.flatnonzero(~fits).tolist():
            tally.add(length_reason(*(ids[row] for ids in sides), max_pieces=most), pairs[row].origin, pairs[row].src, pairs[row].tgt)
        tally.kept = 0
        kept = np.flatnonzero(fits).tolist()
        pairs, sides = [pairs[row] for row in kept], [[ids[row] for row in kept] for ids in sides]
        unknown = [[np.count_nonzero(row == tokenizer.unk) for row in ids] for ids, tokenizer in zip(sides, self.tokenizers, strict=True)]
        hashes = [fingerprint(pair, self.duplicates, tag=self.tags[chunk.corpus]) for pair in pairs] if self.duplicates else None
        columns = [pa.array([pair[column] for pair in pairs], type=pa.string()) for column in range(3)]
        return Encoded(
            corpus=chunk.corpus,
            rows=pa.record_batch([*columns, *map(list_array, sides)], schema=SCHEMA),
            lengths_N2=lengths_N2[fits],
            unknown_N=np.array(unknown, dtype=np.int64).sum(axis=0),
            hashes_N=None if hashes is None else np.array(hashes, dtype=np.uint64),
            dropped=tally,
        )


def list_array(rows: Sequence[NDArray[np.int32]]) -> pa.Array:
    """Lists of ids as Arrow has them."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return pa.ListArray.from_arrays(offsets, np.concatenate([*rows, np.empty(0, dtype=np.int32)]))


def build_store(
    path: Path,
    corpora: Sequence[Source],
    tokenizers: Tokenizers,
    *,
    max_pieces: int | None,
    duplicates: Kind | None = None,
    alike: Alike | None = None,
    workers: int | None = None,
    say: Say | None = None,
) -> None:
    """Make the folder `path`, whole or not at all, in place of what is there; that no two processes do so at once is the caller's care.

    Pairs are dropped for the reason their corpus has, for being `alike` held-out ones, for being longer than `max_pieces` (None: whatever
    their length, they stay), and as duplicates of earlier ones in any corpus. `workers` is the number of processes, None as many as there
    are cores.
    Raises DataError when nothing is left of a corpus, or the disk is full.
    """
    recipe = Recipe([source.reason for source in corpora], [source.tag for source in corpora], tokenizers, max_pieces, duplicates, alike)
    names = [source.name for source in corpora]
    with write_folder(path) as folder, closing(Meter("preparing", say)) as meter:
        encoded = in_order(recipe, in_chunks(corpora, meter), workers=core_count() if workers is None else workers, alone=ALONE)
        with closing(encoded), Seen(folder) if duplicates else nullcontext() as seen:  # whose files have no names
            tallies, unknown = write(folder, encoded, names, seen)
        write_facts(folder, zip(names, tallies, unknown, strict=True))


def in_chunks(corpora: Sequence[Source], meter: Meter) -> Iterator[Chunk]:
    """The pairs of all corpora; no chunk has pairs of two."""
    for number, source in enumerate(corpora):
        pairs = iter(source.pairs)
        while chunk := list(some(pairs)):
            yield Chunk(number, chunk)
            meter.add(len(chunk))


def some(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """The next pairs, as many as a chunk has."""
    characters = 0
    for pair in islice(pairs, CHUNK):
        yield pair
        characters += len(pair.src)
        if characters > CHUNK_CHARACTERS:
            return


def write(folder: Path, encoded: Iterable[Encoded], names: Sequence[str], seen: Seen | None) -> tuple[list[Tally], list[int]]:
    """Write rows and lengths; of each corpus what was kept and dropped, and its unknown pieces."""
    tallies, unknown, begun = [Tally() for _ in names], [0] * len(names), 0
    with open(folder / PAIRS, "wb") as pairs, open(folder / LENGTHS, "wb") as lengths, pa.ipc.new_stream(pairs, SCHEMA) as writer:
        for corpus, rows, lengths_N2, unknown_N, hashes_N, dropped in encoded:
            for number in range(begun, corpus):  # these are done: better now than after all the others
                tallies[number].require_pairs(names[number])
            begun = corpus
            tallies[corpus] += dropped
            if seen is not None and hashes_N is not None and (known_N := seen.add(hashes_N)).any():
                for src, tgt, origin in zip(*texts(rows.filter(pa.array(known_N))), strict=True):
                    tallies[corpus].add(DUPLICATE, origin, src, tgt)
                rows, lengths_N2, unknown_N = rows.filter(pa.array(~known_N)), lengths_N2[~known_N], unknown_N[~known_N]
            tallies[corpus].kept += rows.num_rows
            unknown[corpus] += int(unknown_N.sum())
            if rows.num_rows:
                writer.write_batch(rows)
                lengths.write(lengths_N2.tobytes())
    for tally, name in zip(tallies[begun:], names[begun:], strict=True):
        tally.require_pairs(name)
    return tallies, unknown


def texts(rows: pa.RecordBatch) -> list[list[str]]:
    """Sources, targets, origins."""
    return [rows.column(name).to_pylist() for name in ("src", "tgt", "origin")]
