"""Pairs seen before: hashes of texts, and a set of hashes that needs little memory however many there are.

Hashes are 64 bits of XXH3: among 10 million different pairs the chance that any two share one is 3 in a million.
Legend: N hashes of a call.
"""

from __future__ import annotations

import mmap
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

import numpy as np
import xxhash
from numpy.typing import NDArray

from mt.errors import DataError
from mt.formats.pairs import Pair

Kind = Literal["exact", "normalised"]
Hashes = NDArray[np.uint64]

# ── fingerprints ────────────────────────────────────────────────────────────────────────────────────────────────────

_ASCII_LETTERS = bytes(range(256)).lower()
_ASCII_REST = bytes(byte for byte in range(128) if not chr(byte).isalpha())


class _LettersOnly(dict[int, str | None]):
    """For str.translate: keeps letters and the marks that belong to them; Unicode's tables are asked once a character."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        variant = 0xFE00 <= code <= 0xFE0F  # how an emoji or a character is to be drawn
        self[code] = character if unicodedata.category(character) in _KEPT and not variant else None
        return self[code]


_KEPT = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc"))
_LETTERS_ONLY = _LettersOnly()


def normalised(text: str) -> str:
    """The text without what does not make it another one: letter case, width, digits, punctuation, symbols and spacing.

    A text without any letter stays as it is: `12:30` is not `13:45`.
    """
    if text.isascii():
        return text.encode().translate(_ASCII_LETTERS, _ASCII_REST).decode() or text
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.translate(_LETTERS_ONLY) or text


def text_fingerprint(text: str, kind: Kind) -> int:
    """64 bits that equal texts share, `normalised`: texts equal but for letter case, digits, punctuation and spacing."""
    return _hash(text if kind == "exact" else normalised(text))


def fingerprint(pair: Pair, kind: Kind, *, tag: str | None = None) -> int:
    """64 bits that pairs share whose sources and targets are equal, as `text_fingerprint` has it, and whose tags are the same."""
    src, tgt = (pair.src, pair.tgt) if kind == "exact" else (normalised(pair.src), normalised(pair.tgt))
    return _hash(tgt, seed=_hash(src, seed=_hash(tag) if tag else 0))


def fingerprints(pairs: Iterable[Pair], kind: Kind) -> Hashes:
    """The fingerprint of each pair, (N,)."""
    return np.fromiter((fingerprint(pair, kind) for pair in pairs), dtype=np.uint64)


def _hash(text: str, seed: int = 0) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), seed)


# ── the set ─────────────────────────────────────────────────────────────────────────────────────────────────────────

FAN = 8  # runs of one level that are merged to one of the next
BITS = np.left_shift(1, np.arange(8)).astype(np.uint8)
FEWEST_BITS, MOST_BITS = 16, 29  # of the filter, as powers of two: 8 KiB, 64 MiB


class Seen:
    """A set of 64-bit hashes in sorted runs: the newest in memory, the others in files under `folder`.

    Anonymous memory stays below 100 MB for any number of hashes; on the disk are 8 bytes for each. A filter (Bloom's, with one bit a hash)
    knows most new hashes for new without a look at the runs. The files have no names: the disk space is free again when this is closed or
    garbage, or its process killed.
    """

    def __init__(self, folder: str | Path, *, buffer: int = 1 << 20, block: int = 1 << 16) -> None:
        """`buffer` is the number of hashes that are held in memory, `block` how many are sorted, or read of a run, at once."""
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._buffer, self._block = buffer, block
        self._recent: list[Hashes] = []
        self._levels: list[list[Hashes]] = []
        self._filter = _Filter(FEWEST_BITS)
        self._count = 0

    def __len__(self) -> int:
        """How many different hashes there are."""
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forget everything and give the memory and the disk space back."""
        self._recent, self._levels, self._filter, self._count = [], [], _Filter(FEWEST_BITS), 0

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Add hashes, (N,); True for each that was there before, or earlier in this call, (N,). Raises DataError where the disk is full."""
        known = np.empty(len(hashes), dtype=bool)
        for start in range(0, len(hashes), self._block):
            known[start : start + self._block] = self._add(hashes[start : start + self._block])
        return known

    def _add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """`add` for no more hashes than fit the memory several times."""
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        first = np.ones(len(hashes), dtype=bool)
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
        known_first = self._known(ordered[first])
        known = np.ones(len(hashes), dtype=bool)
        known[order[first]] = known_first
        self._insert(ordered[first][~known_first])
        return known

    def _known(self, ordered: Hashes) -> NDArray[np.bool_]:
        """Which of these sorted hashes there are."""
        known = self._filter.may_hold(ordered)
        doubtful = np.flatnonzero(known)
        for run in self._runs():
            if not len(doubtful):
                break
            wanted = ordered[doubtful]
            places = run.searchsorted(wanted)
            places[places == len(run)] = 0
            doubtful = doubtful[run[places] != wanted]
        known[doubtful] = False
        return known

    def _runs(self) -> Iterator[Hashes]:
        """All runs; each is sorted, and no hash is in two."""
        yield from self._recent
        for level in self._levels:
            yield from level

    def _insert(self, ordered: Hashes) -> None:
        """Add sorted hashes that are not there."""
        if not len(ordered):
            return
        self._count += len(ordered)
        self._recent.append(ordered)
        while len(self._recent) > 1 and len(self._recent[-2]) < 2 * len(self._recent[-1]):  # at most log2(buffer) runs, each twice the next
            self._recent[-2:] = [np.sort(np.concatenate(self._recent[-2:]), kind="stable")]
        if sum(map(len, self._recent)) >= self._buffer:
            self._store()
        self._filter.add(ordered)
        if self._filter.crowded(self._count):
            self._filter = self._filter.grown()
            for run in self._runs():
                for start in range(0, len(run), self._block):
                    self._filter.add(run[start : start + self._block])

    def _store(self) -> None:
        """Move the recent hashes to a file; merge the runs of a level that has enough of them."""
        runs, self._recent = self._recent, []
        for level in range(len(self._levels) + 1):
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(self._written(_merged(runs, self._block)))
            if len(self._levels[level]) < FAN:
                return
            runs, self._levels[level] = self._levels[level], []

    def _written(self, blocks: Iterator[Hashes]) -> Hashes:
        """The blocks as one array that lies in a file."""
        with _disk(self._folder), tempfile.TemporaryFile(dir=self._folder) as file:
            for block in blocks:
                file.write(block.data)
            file.flush()
            return _mapped(file)


class _Filter:
    """One bit for each of 2^power ranges of hashes: set where a hash of the range was added."""

    def __init__(self, power: int) -> None:
        self._power = power
        self._bits = np.zeros(1 << (power - 3), dtype=np.uint8)

    def _places(self, hashes: Hashes) -> tuple[Hashes, NDArray[np.uint8]]:
        """Byte and bit of each hash; sorted hashes have sorted places."""
        places = hashes >> np.uint64(64 - self._power)
        return places >> np.uint64(3), BITS[places & np.uint64(7)]

    def may_hold(self, hashes: Hashes) -> NDArray[np.bool_]:
        """False where a hash was certainly never added."""
        places, bits = self._places(hashes)
        return (self._bits[places] & bits) != 0

    def add(self, hashes: Hashes) -> None:
        places, bits = self._places(hashes)
        np.bitwise_or.at(self._bits, places, bits)

    def crowded(self, count: int) -> bool:
        """Should there be a larger one for so many hashes?"""
        return self._power < MOST_BITS and count > 1 << (self._power - 3)

    def grown(self) -> _Filter:
        """An empty one, larger."""
        return _Filter(min(self._power + 4, MOST_BITS))


def _merged(runs: list[Hashes], block: int) -> Iterator[Hashes]:
    """The hashes of sorted runs in order, in blocks; no more than `block` of each run are in memory at once."""
    starts = [0] * len(runs)
    while any(start < len(run) for start, run in zip(starts, runs, strict=True)):
        heads = [run[start : start + block] for start, run in zip(starts, runs, strict=True)]
        # All that is not above the least of the last ones is in the heads; a head that ends with its run sets no limit.
        limits = [head[-1] for head, start, run in zip(heads, starts, runs, strict=True) if start + block < len(run)]
        ends = [head.searchsorted(min(limits), side="right") if limits else len(head) for head in heads]
        yield np.sort(np.concatenate([head[:end] for head, end in zip(heads, ends, strict=True)]), kind="stable")
        starts = [start + int(end) for start, end in zip(starts, ends, strict=True)]


def _mapped(file: IO[bytes]) -> Hashes:
    """The hashes in a file, read as they are needed; the mapping outlives the file object."""
    return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint64)


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """Turn the system's error into one line."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{folder}: the list of pairs seen cannot be kept there: {(error.strerror or str(error)).lower()}") from None
