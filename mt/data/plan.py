"""The order of the data: a pure function of (seed, epoch, window), so that a position in it is three integers and resuming is a jump.

An epoch has M places, as many for a pair as its corpus has passes. A permutation of the places, computed and never kept, is cut into
windows; a window is sorted by length and cut into batches of a token budget, and these are shuffled. So memory does not grow with the
corpus, and any window can be made without those before it. Legend: N pairs of the store, M places of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mt.data.chance import Indices, Permutation

WINDOW = 1 << 17  # places sorted together: enough for batches of equal length, little enough to sort in a moment

MEASURED = 32  # windows that an epoch is measured by: all, up to 4 million pairs


@dataclass(frozen=True)
class Span:
    """A corpus within a store: where it begins, its pairs, its passes per epoch."""

    start: int
    count: int
    weight: float = 1.0


@dataclass(frozen=True)
class Cursor:
    """The next batch to be trained on."""

    epoch: int = 0
    window: int = 0
    batch: int = 0
    """Within the window."""


class Measure(NamedTuple):
    """What an epoch comes to."""

    batches: int
    real: int
    """Positions of both sides that hold a token, end marks counted."""
    padded: int
    """Positions of both sides, with those that only fill up."""


def tempered(spans: Sequence[Span], temperature: float) -> list[Span]:
    """The spans with weights: a corpus of n pairs is seen in proportion to n^(1/temperature), the epoch staying as long as all of them."""
    shares = [span.count ** (1 / temperature) for span in spans]
    pairs = sum(span.count for span in spans)
    return [replace(span, weight=pairs * share / sum(shares) / span.count) for span, share in zip(spans, shares, strict=True)]


def sorted_places(sizes_N2: NDArray[np.int64]) -> Indices:
    """The places in the order of the target's length, then the source's, then their own, so that equals stay shuffled.

    A sort of one 64-bit number for each place (22 bits for each length) takes a fifth of the time of numpy's lexsort.
    """
    bits = len(sizes_N2).bit_length()
    assert bits <= 18, "a window is no larger than 2^17"
    src, tgt = np.minimum(sizes_N2, (1 << 22) - 1).T
    return np.sort((((tgt << 22) | src) << bits) | np.arange(len(sizes_N2))) & ((1 << bits) - 1)


def cut(order: Indices, sizes_N2: NDArray[np.integer], *, budget: int) -> Iterator[Indices]:
    """Cut places that are sorted by length into batches of at most `budget` = rows × longest side; a longer pair is a batch by itself."""
    longest_N = sizes_N2.max(axis=1)
    begin = 0
    while begin < len(order):
        most = max(1, budget // int(longest_N[begin]))  # rows that fit if none is longer than the first
        longest = np.maximum.accumulate(longest_N[begin : begin + most])
        fits = longest * np.arange(1, len(longest) + 1) <= budget
        rows = len(fits) if fits.all() else max(1, int(fits.argmin()))
        yield order[begin : begin + rows]
        begin += rows


def longest_first(lengths: Sequence[int], *, budget: int) -> Iterator[list[int]]:
    """Places, from long to short, in batches of rows × longest ≤ budget; a longer one is a batch by itself."""
    sizes_N1 = np.array(lengths, dtype=np.int64)[:, np.newaxis]
    order = np.argsort(-sizes_N1[:, 0], kind="stable")
    return (places.tolist() for places in cut(order, sizes_N1[order], budget=budget))


def sizes(lengths_N2: NDArray[np.integer], *, before: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Places that the two sides take, (N, 2): their pieces, the end mark, and what stands `before` the source, of all or of each."""
    return lengths_N2.astype(np.int64) + np.stack(np.broadcast_arrays(np.asarray(before) + 1, 1), axis=-1)


class Order:
    """The batches of every epoch, each a list of draws: a draw is index + N × pass, a pair of the store and which pass over it.

    A corpus of weight 2.5 has two whole passes and half of a third: the first places of a permutation of its own, at least one.
    """

    def __init__(
        self,
        lengths_N2: NDArray[np.integer],
        spans: Sequence[Span],
        *,
        budget: int,
        seed: int,
        window: int = WINDOW,
        before: Sequence[int] = (),
    ) -> None:
        """Lengths are in pieces; the end mark, and as many ids as stand `before` the sources of each corpus, are added here."""
        self.lengths_N2, self.spans, self.budget, self.seed, self.window = lengths_N2, list(spans), budget, seed, window
        self.before = np.array(before or [0] * len(spans), dtype=np.int64)
        passes = [int(span.weight + 1e-9) for span in spans]
        rest = [span.weight - whole for span, whole in zip(spans, passes, strict=True)]
        parts = [max(1, round(span.count * part)) if part > 1e-9 else 0 for span, part in zip(spans, rest, strict=True)]
        blocks = [size for span, whole, part in zip(spans, passes, parts, strict=True) for size in (span.count * whole, part)]
        self._passes, self._ends = passes, np.cumsum(blocks)
        self.places = int(self._ends[-1])
        """Of an epoch."""
        self.windows = -(-self.places // window)
        """Of an epoch."""
        self._recent: dict[tuple[int, int], list[Indices]] = {}

    def draws(self, epoch: int, window: int) -> Indices:
        """The draws of a window in random order."""
        first = window * self.window
        places = np.arange(first, min(first + self.window, self.places))
        places = Permutation(self.places, self.seed, epoch)(places)
        blocks = np.searchsorted(self._ends, places, side="right")  # two for each corpus: its whole passes, and the rest
        inside = places - np.concatenate([[0], self._ends])[blocks]
        starts, counts = (np.array([getattr(span, name) for span in self.spans]) for name in ("start", "count"))
        corpus = blocks // 2
        passed, index = np.divmod(inside, counts[corpus])
        for number in np.unique(corpus[blocks % 2 == 1]).tolist():
            partial = blocks == 2 * number + 1
            passed[partial] = self._passes[number]
            index[partial] = Permutation(self.spans[number].count, self.seed, epoch, number)(inside[partial])
        return starts[corpus] + index + len(self.lengths_N2) * passed

    def batches(self, epoch: int, window: int) -> list[Indices]:
        """The batches of a window in the order they are trained on; two windows are remembered, as an update may have batches of both."""
        if (epoch, window) not in self._recent:
            self._recent = {**dict(list(self._recent.items())[-1:]), (epoch, window): self._batches(epoch, window)}
        return self._recent[epoch, window]

    def _batches(self, epoch: int, window: int) -> list[Indices]:
        draws = self.draws(epoch, window)
        sizes_M2 = self.sizes(draws)
        by_length = sorted_places(sizes_M2)
        batches = list(cut(draws[by_length], sizes_M2[by_length], budget=self.budget))
        shuffled = Permutation(len(batches), self.seed, epoch, window, 1)(np.arange(len(batches)))
        return [batches[i] for i in shuffled]

    def sizes(self, draws: Indices) -> NDArray[np.int64]:
        """Positions that the pairs take, with end marks and what stands before the sources."""
        indices = draws % len(self.lengths_N2)
        corpus = np.searchsorted([span.start for span in self.spans], indices, side="right") - 1
        return sizes(self.lengths_N2[indices], before=self.before[corpus])

    def measure(self, epoch: int = 0) -> Measure:
        """What an epoch comes to; of a long one, what some of its windows let expect. Others differ by a few batches as well."""
        count = real = padded = 0
        some = self._measured()
        for window in some:
            for batch in self._batches(epoch, window):
                sizes_B2 = self.sizes(batch)
                count, real, padded = count + 1, real + int(sizes_B2.sum()), padded + len(batch) * int(sizes_B2.max(axis=0).sum())
        return Measure(*(round(number * self.windows / len(some)) for number in (count, real, padded)))

    def largest(self, epoch: int = 0) -> list[Indices]:
        """The batches of an epoch with most positions, most target positions and most attention, and the longest pair.

        Of a long epoch those of some windows: others have none that are larger by much, as all have the same budget.
        """
        best: list[tuple[int, Indices]] = []
        for window in self._measured():
            for batch in self._batches(epoch, window):
                rows, (src, tgt) = len(batch), self.sizes(batch).max(axis=0).tolist()
                found = [(size, batch) for size in (rows * (src + tgt), rows * tgt, rows * max(src, tgt) ** 2)]
                best = [max(pair, key=itemgetter(0)) for pair in zip(best or found, found, strict=True)]
        return [*(batch for _, batch in best), np.array([self.lengths_N2.max(axis=1).argmax()])]

    def _measured(self) -> list[int]:
        found: list[int] = np.unique(np.linspace(0, self.windows - 1, MEASURED).round().astype(int)).tolist()
        return found

    def cursors(self, start: Cursor) -> Iterator[tuple[Cursor, Cursor]]:
        """Endless: each batch from there on, and the one after it."""
        cursor = start
        while True:
            after = self.after(cursor)
            yield cursor, after
            cursor = after

    def after(self, cursor: Cursor) -> Cursor:
        """The batch after this one."""
        if cursor.batch + 1 < len(self.batches(cursor.epoch, cursor.window)):
            return replace(cursor, batch=cursor.batch + 1)
        if cursor.window + 1 < self.windows:
            return Cursor(cursor.epoch, cursor.window + 1)
        return Cursor(cursor.epoch + 1)


class Deal(NamedTuple):
    """What one rank does in one update."""

    batches: list[Cursor | None]
    """Its micro-batches; None is an empty one, where others of the ranks have one more."""
    after: Cursor
    """Where the next update begins, for all ranks."""


def deals(order: Order, start: Cursor, *, accumulate: int, rank: int = 0, ranks: int = 1) -> Iterator[Deal]:
    """Endless: the updates of a rank. One takes `accumulate` batches of each rank, the last of an epoch what is left."""
    group: list[Cursor] = []
    for cursor, after in order.cursors(start):
        group.append(cursor)
        if len(group) == accumulate * ranks or after.epoch > cursor.epoch:
            mine: list[Cursor | None] = [*group[rank::ranks]]
            each = -(-len(group) // ranks)
            yield Deal(mine + [None] * (each - len(mine)), after)
            group = []
