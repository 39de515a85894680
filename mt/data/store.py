"""Prepared pairs: a folder with an Arrow file, memory-mapped through the `datasets` library, and the lengths, memory-mapped too.

pairs.arrow   text, origin and unsampled ids of each pair
lengths.bin   pieces of both sides, int32, without EOS
store.json    the corpora, what was dropped of each, and how long the files are; written last

What is read lies in the system's file cache, so that a process needs as little memory for ten million pairs as for ten. Legend: N pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mt.clean.tally import Tally
from mt.data.plan import Span
from mt.errors import RunError
from mt.formats.pairs import Pair

FORMAT = 1
"""Version of what a store holds and how it is made; one of another version is made again."""

PAIRS, LENGTHS, FACTS = "pairs.arrow", "lengths.bin", "store.json"
IDS = pa.list_(pa.int32())
SCHEMA = pa.schema({"src": pa.string(), "tgt": pa.string(), "origin": pa.string(), "src_ids": IDS, "tgt_ids": IDS})
ROWS = 1000  # pairs that are read at once where all are


class Example(NamedTuple):
    """A pair with its ids, without bos and eos."""

    pair: Pair
    src_ids: list[int]
    tgt_ids: list[int]
    draw: int = 0
    """Which pair of the store and which pass over it in the epoch: index + N × pass. What varies by chance is a function of it."""
    corpus: int = 0
    """Number of its corpus in the config."""
    noise: tuple[str, ...] = ()
    """What was done to them on the way from the store, by the names of the settings."""
    prefix: tuple[int, ...] = ()
    """Ids that go before the source: what tells that it is synthetic, and the target language."""


class Store:
    """Pairs by index. Raises RunError where its files are not whole. Pickled as a path: another process opens it for itself."""

    def __init__(self, path: Path) -> None:
        from datasets import Dataset

        self.path = path
        try:
            facts = _facts(path)
            corpora = [(corpus["name"], Tally.from_json(corpus["tally"]), corpus["unknown"]) for corpus in facts["corpora"]]
            self.rows: Any = Dataset.from_file(str(path / PAIRS)).with_format("arrow")
            lengths = np.memmap(path / LENGTHS, dtype=np.int32, mode="r")
            self.lengths_N2 = np.asarray(lengths).reshape(-1, 2)
            """Pieces of both sides, without EOS, (N, 2)."""
            whole = len(self.rows) == len(self.lengths_N2) == sum(tally.kept for _, tally, _ in corpora)
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
            whole = False
        if not whole:
            raise RunError(f"{path}: is damaged or missing; remove this folder and start the run again with --resume, which makes it anew")
        self.tallies: dict[str, Tally] = {}
        """What was kept and dropped of each corpus, by its name; the second of one name is `name (2)`."""
        for name, tally, _ in corpora:
            number = sum(other == name or other.startswith(f"{name} (") for other in self.tallies)
            self.tallies[f"{name} ({number + 1})" if number else name] = tally
        self.unknown = sum(count for _, _, count in corpora)
        """Pieces that are the unknown one, in both sides of all pairs."""
        counts = [tally.kept for tally in self.tallies.values()]
        self.spans = [Span(end - count, count) for count, end in zip(counts, np.cumsum(counts).tolist(), strict=True)]
        """The corpora, each with weight 1."""

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self.path,)

    def __len__(self) -> int:
        return len(self.lengths_N2)

    def take(self, draws: Iterable[int]) -> list[Example]:
        """The examples of these draws, in this order; an index is a draw of the first pass."""
        draws = [int(draw) for draw in draws]
        indices = [draw % len(self) for draw in draws]
        table = self.rows[indices]
        src, tgt, origin, src_ids, tgt_ids = (table.column(name).to_pylist() for name in SCHEMA.names)
        corpora = np.searchsorted([span.start for span in self.spans], indices, side="right") - 1
        columns = zip(src, tgt, origin, src_ids, tgt_ids, draws, corpora.tolist(), strict=True)
        return [Example(Pair(*text), s, t, draw, corpus) for *text, s, t, draw, corpus in columns]

    def pairs(self) -> Iterator[Pair]:
        """All pairs in order."""
        for start in range(0, len(self), ROWS):
            yield from (example.pair for example in self.take(range(start, min(start + ROWS, len(self)))))


def write_facts(path: Path, corpora: Iterable[tuple[str, Tally, int]]) -> None:
    """Complete the store in a folder: of each corpus name, tally and unknown pieces."""
    facts = {
        "format": FORMAT,
        "files": {name: (path / name).stat().st_size for name in (PAIRS, LENGTHS)},
        "corpora": [{"name": name, "tally": tally.to_json(), "unknown": unknown} for name, tally, unknown in corpora],
    }
    (path / FACTS).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8", newline="\n")


def _facts(path: Path) -> dict[str, Any]:
    """What store.json says. Raises ValueError or OSError where it is not that of the files beside it."""
    facts: dict[str, Any] = json.loads((path / FACTS).read_text(encoding="utf-8"))
    if facts["format"] != FORMAT or any((path / name).stat().st_size != size for name, size in facts["files"].items()):
        raise ValueError("another version, or files of another length")
    return facts


def is_whole(path: Path) -> bool:
    """Whether there is a store of this version in the folder whose files are as long as they were; this takes a moment for any store."""
    try:
        return set(_facts(path)["files"]) == {PAIRS, LENGTHS}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False
