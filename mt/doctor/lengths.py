"""The lengths of all pairs of a corpus, in characters: kept in files, so that memory does not grow, and judged at the end.

Legend: N pairs.
"""

from __future__ import annotations

import math
import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mt.doctor.alignment import Shift, find_shift, strangers, surplus_at
from mt.formats.pairs import one_line

TAIL = 100_000
"""Lines without a partner whose lengths are kept: where they belong is looked for among these."""
CHUNK = 1 << 18

MOST = 100_000  # a longer line counts as one of this length in the median
LONG = 1000
"""A line with more characters is not a sentence."""
FACTOR = 3.0
"""A ratio this far from the corpus's median is an outlier, at least; in a corpus whose ratios vary more, five deviations from it."""
SLACK = 10
"""Characters that a side may be too long or too short whatever the ratio: `No.` may be `Nein, danke.`"""
OCTAVE = 100  # steps of a ratio between 1 and 2; all ratios are counted in these
WIDEST = 16 * OCTAVE


class Usual(NamedTuple):
    """The ratio of lengths of a corpus, target / source, in steps of 1/OCTAVE octaves."""

    median: int
    """Of the pairs without an empty side."""
    bound: float
    """An outlier is further from the median than this."""

    @property
    def ratio(self) -> float:
        """The median as a ratio."""
        return 2 ** (self.median / OCTAVE)


class FilePair(NamedTuple):
    """What the lengths of two files say about how they belong together."""

    pairs: int
    """Lines with a partner."""
    places: tuple[str, ...]
    """Where the shift begins, or the first and the last of the strangers."""
    noun: str
    """What the pairs are counted in."""
    shift: Shift | None
    """Where they begin to be shifted."""
    strangers: tuple[int, int] | None
    """Lines that do not belong together at all."""


class LengthLog:
    """Takes the lengths of a corpus pair by pair, then answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed with this)
        self._origins = tempfile.TemporaryFile("w+", dir=folder, encoding="utf-8", errors="surrogateescape", newline="\n")  # noqa: SIM115
        self.count = 0
        self._ratios = np.zeros(2 * WIDEST + 1, dtype=np.int64)
        self._starts: list[int] = []
        self._names: list[str] = []
        self._start = 0
        self._tails: list[list[NDArray[np.int32]]] = [[], []]
        self.files: list[FilePair] = []
        """One for each pair of files, and perhaps one for all together."""

    def add(self, lengths_N2: NDArray[np.int32], origins: Sequence[str] = ()) -> None:
        """Note some pairs; `origins` are needed, for all pairs of a corpus, where line n of a file is not its pair n."""
        self._origins.writelines(f"{one_line(origin)}\n" for origin in origins)
        self._file.write(np.ascontiguousarray(lengths_N2).data)
        self.count += len(lengths_N2)
        steps, whole = _steps(lengths_N2)
        self._ratios += np.bincount(steps[whole] + WIDEST, minlength=len(self._ratios))

    def add_alone(self, side: int, lengths: NDArray[np.int32]) -> None:
        """Note lines without a partner at the end of a file."""
        if sum(map(len, self._tails[side])) < TAIL:
            self._tails[side].append(lengths)

    def end_files(self, name: str) -> None:
        """Judge a pair of files, whose source is called so: the next pair comes from other files."""
        if self.count == self._start and not any(self._tails):
            return
        self._starts.append(self._start)
        self._names.append(name)
        pairs = self._pairs()[self._start :]
        src, tgt = (self._whole(pairs[:, side], self._tails[side]) for side in (0, 1))
        surplus = len(tgt) - len(src)
        shift = find_shift(src, tgt)
        if shift is None and 0 < abs(surplus) < TAIL and (line := surplus_at(src, tgt)):
            shift = Shift(line, surplus)
        self._judge(self._start, shift, None if shift else strangers(src, tgt))
        self._start, self._tails = self.count, [[], []]

    def end(self, name: str) -> None:
        """Judge the last files, and all of them together, as what is too short to tell by itself may do so in sum."""
        self.end_files(name)
        if len(self.files) > 1 and not any(files.places for files in self.files):
            self._judge(0, None, strangers(*self._pairs().T))

    def _judge(self, start: int, shift: Shift | None, odd: tuple[int, int] | None) -> None:
        """Note what was found in the pairs from `start` on."""
        places = self._places([start + line - 1 for line in ((shift.line,) if shift else odd or ())])
        self.files.append(FilePair(self.count - start, places, "unit" if self._origins.tell() else "line", shift, odd))

    def usual(self) -> Usual:
        """The corpus's ratio and its spread, so far."""
        places = np.arange(-WIDEST, WIDEST + 1)
        median = _median(places, self._ratios)
        deviation = 1.4826 * _median(*_folded(places - median, self._ratios))  # of a normal distribution with this spread
        return Usual(median, max(OCTAVE * math.log2(FACTOR), 5 * deviation))

    def outliers(self) -> int:
        """How many pairs are far from the ratio."""
        usual = self.usual()
        return sum(int(far(chunk, usual).sum()) for chunk in self._chunks())

    def medians(self) -> tuple[int, int]:
        """The median length of each side, of those lines that hold something."""
        counts = np.zeros((2, MOST + 1), dtype=np.int64)
        for chunk in self._chunks():
            for side in (0, 1):
                counts[side] += np.bincount(np.minimum(chunk[:, side], MOST), minlength=MOST + 1)
        places = np.arange(1, MOST + 1)
        return _median(places, counts[0, 1:]), _median(places, counts[1, 1:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._origins.close()

    def _places(self, pairs: Sequence[int]) -> tuple[str, ...]:
        """Where some pairs, in ascending order and counted from 0 in the corpus, come from."""
        if not (pairs and self._origins.tell()):
            files = [(pair, bisect_right(self._starts, pair) - 1) for pair in pairs]
            return tuple(f"{self._names[file]}:{pair - self._starts[file] + 1}" for pair, file in files)
        self._origins.seek(0)
        found = tuple(origin.removesuffix("\n") for pair, origin in enumerate(self._origins) if pair in pairs)
        self._origins.seek(0, os.SEEK_END)
        return found

    def _whole(self, lengths: NDArray[np.int32], tail: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        """A side with its lines without a partner, on the disk as well."""
        if not tail:
            return lengths
        with tempfile.TemporaryFile(dir=self._folder) as file:
            for start in range(0, len(lengths), CHUNK):
                file.write(np.ascontiguousarray(lengths[start : start + CHUNK]).data)
            file.writelines(part.data for part in tail)
            file.flush()
            return np.memmap(file, dtype=np.int32, mode="r")

    def _pairs(self) -> NDArray[np.int32]:
        self._file.flush()
        if not self.count:
            return np.zeros((0, 2), dtype=np.int32)
        return np.memmap(self._file, dtype=np.int32, mode="r", shape=(self.count, 2))

    def _chunks(self) -> Iterator[NDArray[np.int32]]:
        pairs = self._pairs()
        for start in range(0, self.count, CHUNK):
            yield pairs[start : start + CHUNK]


def far(lengths_N2: NDArray[np.int32], usual: Usual) -> NDArray[np.bool_]:
    """Which pairs are outliers of the ratio."""
    steps, whole = _steps(lengths_N2)
    src, tgt = lengths_N2[:, 0], lengths_N2[:, 1]
    return whole & (np.abs(steps - usual.median) > usual.bound) & (np.abs(tgt - src * usual.ratio) >= SLACK)


def _steps(lengths_N2: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The ratio of each pair in steps, and whether it has one: both sides hold something."""
    whole: NDArray[np.bool_] = np.min(lengths_N2, axis=1, initial=1) > 0
    src, tgt = np.maximum(lengths_N2, 1).T
    return np.clip(np.rint(OCTAVE * np.log2(tgt / src)), -WIDEST, WIDEST).astype(np.int64), whole


def _median(values: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """The median of values in ascending order, each given so many times; 0 of none."""
    total = np.cumsum(counts)
    return int(values[np.searchsorted(total, total[-1] / 2)]) if total[-1] else 0


def _folded(values: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Absolute values in ascending order with their counts."""
    sizes = np.bincount(np.abs(values), weights=counts).astype(np.int64)
    return np.arange(len(sizes)), sizes
