"""Held-out pairs that training sees: dev and test sets are indexed in memory, the training corpora pass by.

Two texts are the same at one of three levels, each of which holds those after it:

    near         bags of shingles (see shingles.py) with a Jaccard index of at least 4/5: |shared| / |all|, repetitions counted
    normalised   the same words in the same order: letter case, punctuation and spacing do not count
    exact        equal, but for white space at the ends

A held-out pair is met on a side if another pair has the same text there, and on both if one other pair has both. Near texts are found
without exception, by prefix filtering (Bayardo et al. 2007): a text that lacks more than a fifth of another's shingles cannot be near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mt.doctor.shingles import Hashes, Shingles, shingles
from mt.formats.pairs import Pair

SHARED, ALL = 4, 5
"""Least Jaccard index of texts that are nearly the same, as a fraction: about one word in fourteen may be another."""
LEVELS = "near", "normalised", "exact"
"""The number of a level is its place here; -1 is none."""
SIDES = "source", "target", "both"

_BITS = 22  # 4 million places of the table that tells shingles of no held-out text


class HeldOut:
    """The pairs of dev and test sets, by all that another pair may share with them."""

    def __init__(self, sets: Mapping[str, Sequence[Pair]]) -> None:
        self.pairs = [pair for pairs in sets.values() for pair in pairs]
        ends = np.cumsum([len(pairs) for pairs in sets.values()]).tolist()
        self.sets = {name: slice(end - len(pairs), end) for (name, pairs), end in zip(sets.items(), ends, strict=True)}
        """Which of the pairs are those of each set."""
        self._sides = [_Side([pair.sides[side] for pair in self.pairs]) for side in (0, 1)]

    def same(self, src: Sequence[str], tgt: Sequence[str]) -> Iterator[tuple[int, dict[int, tuple[int, int, int]]]]:
        """Of some pairs those that share a side with a held-out one: row, and held-out pair → its level by source, target, both."""
        if not self.pairs:
            return
        by_src, by_tgt = (side.same(texts) for side, texts in zip(self._sides, (src, tgt), strict=True))
        for row in sorted(by_src.keys() | by_tgt.keys()):
            on_src, on_tgt = by_src.get(row, {}), by_tgt.get(row, {})
            levels = {item: (on_src.get(item, -1), on_tgt.get(item, -1)) for item in on_src.keys() | on_tgt.keys()}
            yield row, {item: (*both, min(both)) for item, both in levels.items()}


class Leaks:
    """Which held-out pairs were met among some others, and how closely."""

    def __init__(self, held_out: HeldOut) -> None:
        self._held_out = held_out
        self.levels_I3: NDArray[np.int8] = np.full((len(held_out.pairs), 3), -1, dtype=np.int8)
        """Closest level of each held-out pair by its source, its target, and both in one pair."""
        self.met: dict[int, Pair] = {}
        """For each held-out pair that was met the first of the closest pairs: by both sides, then by one."""

    def look(
        self,
        src: Sequence[str],
        tgt: Sequence[str],
        pair: Callable[[int], Pair],
        *,
        own: slice = slice(0, 0),
        elsewhere: Sequence[slice] = (),
    ) -> list[int]:
        """Compare some pairs with all held-out ones but their own set. Returns the rows that share something.

        `elsewhere` are sets that go to another language: one source in two languages is meant, so these share only what has both sides.
        """
        rows = []
        for row, items in self._held_out.same(src, tgt):
            others = {
                item: levels
                for item, levels in items.items()
                if not within(item, own) and (levels[2] >= 0 or not any(within(item, one) for one in elsewhere))
            }
            if others:
                rows.append(row)
            for item, levels in others.items():
                before = self.levels_I3[item].tolist()
                if item not in self.met or (levels[2], max(levels)) > (before[2], max(before)):
                    self.met[item] = pair(row)
                self.levels_I3[item] = np.maximum(before, levels)
        return rows

    def counts(self, name: str) -> dict[str, dict[str, int]]:
        """How many pairs of a set were met: level → side → number; a level counts all that are closer too."""
        levels = self.levels_I3[self._held_out.sets[name]]
        met = [(levels >= number).sum(axis=0).tolist() for number in range(len(LEVELS))]
        return {level: dict(zip(SIDES, numbers, strict=True)) for level, numbers in zip(LEVELS, met, strict=True)}

    def same(self, name: str) -> int:
        """How many pairs of a set were met on a side, normalised or exactly."""
        return int((self.levels_I3[self._held_out.sets[name]].max(axis=1, initial=-1) >= LEVELS.index("normalised")).sum())

    def closest(self, name: str) -> list[int]:
        """The pairs of a set that were met, by both sides and closely first."""
        first = self._held_out.sets[name].start
        levels = self.levels_I3[self._held_out.sets[name]].astype(int)
        met = np.flatnonzero(levels.max(axis=1, initial=-1) >= 0)
        order = np.lexsort((met, -levels[met].max(axis=1, initial=-1), -levels[met, 2]))
        return (first + met[order]).tolist()


def within(item: int, part: slice) -> bool:
    """Whether a held-out pair is one of a set."""
    return bool(part.start <= item < part.stop)


class _Side:
    """The held-out texts of one side, by text, by normalised text and by shingle."""

    def __init__(self, texts: Sequence[str]) -> None:
        found = shingles(texts)
        self._exact: dict[str, list[int]] = {}
        self._normalised: dict[int, list[int]] = {}
        for item, (text, normalised) in enumerate(zip(texts, found.text_N.tolist(), strict=True)):
            if text.strip():
                self._exact.setdefault(text.strip(), []).append(item)
            if normalised:
                self._normalised.setdefault(normalised, []).append(item)

        bags = found.as_sets()
        self._bags = [set(bag) for bag in bags.by_row()]
        self._sizes = bags.sizes_N
        order = np.argsort(bags.hashes_G, kind="stable")
        self._shingles, self._starts, self._holders = np.unique(bags.hashes_G[order], return_index=True, return_counts=True)
        self._items = bags.rows_G[order]  # those that hold _shingles[i] are _items[_starts[i] : _starts[i] + _holders[i]]
        self._present = np.zeros(1 << _BITS, dtype=bool)
        self._present[_places(found.hashes_G)] = True

    def same(self, texts: Sequence[str]) -> dict[int, dict[int, int]]:
        """Row of a text → items it is the same as → at which level; rows without any are left out."""
        found = shingles(texts)
        matches: dict[int, dict[int, int]] = {}
        for row, item in self._near(found):
            matches.setdefault(row, {})[item] = 0
        for row, normalised in enumerate(found.text_N.tolist()):
            for item in self._normalised.get(normalised, ()):
                matches.setdefault(row, {})[item] = 1
        for row, text in enumerate(texts):
            for item in self._exact.get(text.strip(), ()):
                matches.setdefault(row, {})[item] = 2
        return matches

    def _near(self, found: Shingles) -> Iterator[tuple[int, int]]:
        """Rows and items whose bags are near each other."""
        strange_G = ~self._present[_places(found.hashes_G)]
        strange_N = np.bincount(found.rows_G[strange_G], minlength=len(found.sizes_N))
        hopeful_N = (found.sizes_N > 0) & (strange_N <= _spare(found.sizes_N))
        if not len(self._shingles) or not hopeful_N.any():
            return
        hopeful = found.only(hopeful_N).as_sets()
        bags, row_of = hopeful.by_row(), np.flatnonzero(hopeful_N).tolist()
        for row, item in zip(*self._candidates(hopeful), strict=True):
            bag = bags[row]
            shared = len(self._bags[item].intersection(bag))
            if ALL * shared >= SHARED * (len(bag) + len(self._bags[item]) - shared):
                yield row_of[row], item

    def _candidates(self, found: Shingles) -> tuple[list[int], list[int]]:
        """Rows and items of similar size that share one of the row's rarest shingles, one more of them than may be missing."""
        places = np.minimum(np.searchsorted(self._shingles, found.hashes_G), len(self._shingles) - 1)
        holders = np.where(self._shingles[places] == found.hashes_G, self._holders[places], 0)
        order = np.lexsort((holders, found.rows_G))  # by row, in each the rarest first
        firsts = np.cumsum(found.sizes_N) - found.sizes_N
        rank = np.arange(len(order)) - np.repeat(firsts, found.sizes_N)
        chosen = order[rank <= np.repeat(_spare(found.sizes_N), found.sizes_N)]

        counts = holders[chosen]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows, items = np.repeat(found.rows_G[chosen], counts), self._items[np.repeat(self._starts[places[chosen]], counts) + within]
        ours, theirs = found.sizes_N[rows], self._sizes[items]
        similar = (ALL * ours >= SHARED * theirs) & (ALL * theirs >= SHARED * ours)
        pairs = np.unique(np.stack([rows[similar], items[similar]]), axis=1)
        return pairs[0].tolist(), pairs[1].tolist()


def _spare(sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many of its shingles a text can do without and still be near."""
    return sizes * (ALL - SHARED) // ALL


def _places(hashes: Hashes) -> NDArray[np.intp]:
    return (hashes >> np.uint64(64 - _BITS)).astype(np.intp)
