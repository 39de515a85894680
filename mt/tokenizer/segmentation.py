"""Random segmentations: BPE with merges left out (Provilkov et al. 2020), and draws from a unigram model (Kudo 2018).

sentencepiece samples too, but in 0.2.3 its generator mixes the seed with a number that every process draws anew (Abseil's salt), so no seed
repeats a run. Here all chance comes from a `random.Random`, of which only `random()` is used, as Python keeps what that gives for a seed;
with no chance left, BPE gives what sentencepiece gives (tested).

No piece reaches across a space or into a declared symbol. Text therefore falls into units, words mostly, that are cut independently and
whose tables are worth keeping. Text comes normalised, spaces written U+2581.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from random import Random
from typing import NamedTuple

UNIT = re.compile("\u2581[^\u2581]*|[^\u2581]+")
KEPT_UNITS = 2**15


class Vocabulary:
    """The pieces of a model: `scores` of those that text is cut into, `symbols` that stay whole, `bytes_` for other characters, or None."""

    def __init__(
        self, scores: Mapping[str, float], *, symbols: Sequence[str], ids: Mapping[str, int], bytes_: Sequence[int] | None, unk: int
    ):
        self.scores = scores
        self.symbols = frozenset(symbols)
        self.longest = max(map(len, scores), default=0)
        self._ids, self._bytes, self._unk = ids, bytes_, unk
        longest_first = sorted(symbols, key=len, reverse=True)
        self._symbol = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if symbols else None

    def units(self, text: str) -> Iterator[str]:
        """The parts of a text that are cut independently, in order."""
        for part in self._symbol.split(text) if self._symbol else [text]:
            if part in self.symbols:
                yield part
            else:
                yield from UNIT.findall(part)

    def spell(self, pieces: Iterable[str]) -> list[int]:
        """Ids of pieces; a character that is none is its bytes, or unknown, of which there is one for several in a row."""
        ids: list[int] = []
        for piece in pieces:
            if (known := self._ids.get(piece)) is not None:
                ids.append(known)
            elif self._bytes is not None:
                ids += [self._bytes[byte] for byte in piece.encode("utf-8")]
            elif ids[-1:] != [self._unk]:
                ids.append(self._unk)
        return ids


class MergeDropout:
    """BPE in which each merge that comes up is left out for good with probability p."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._usual = lru_cache(KEPT_UNITS)(self._whole)

    def sample(self, text: str, *, p: float, rng: Random) -> list[int]:
        """Ids of a text, 0 < p < 1.

        One number is drawn for each merge left out: the merges until the next one are geometrically distributed, so most units need
        none and come from the table.
        """
        gaps = iter(lambda: int(math.log(1.0 - rng.random()) / math.log1p(-p)), None)
        gap = next(gaps)
        line: list[int] = []
        for unit in self._vocabulary.units(text):
            ids, merges = self._usual(unit)
            if merges <= gap:
                gap -= merges
                line += ids
            else:
                pieces, gap = self._merge(unit, gap, gaps)
                line += self._vocabulary.spell(pieces)
        return line

    def _whole(self, unit: str) -> tuple[list[int], int]:
        """Ids of a unit with no merge left out, and how many merges that takes."""
        if unit in self._vocabulary.symbols:
            return self._vocabulary.spell([unit]), 0
        pieces, _ = self._merge(unit, len(unit), iter(()))
        return self._vocabulary.spell(pieces), len(unit) - len(pieces)

    def _merge(self, unit: str, gap: int, gaps: Iterator[int]) -> tuple[list[str], int]:
        """Pieces of a unit, and the rest of the gap: the best merge first, the leftmost of equals; after `gap` merges one is left out."""
        scores = self._vocabulary.scores
        parts = list(unit)
        right = list(range(1, len(parts) + 1))
        left = list(range(-1, len(parts)))
        agenda = [(-scores[a + b], i, a + b) for i, (a, b) in enumerate(pairwise(parts)) if a + b in scores]
        heapq.heapify(agenda)
        while agenda:
            _, i, piece = heapq.heappop(agenda)
            j = right[i]
            if not parts[i] or j == len(parts) or parts[i] + parts[j] != piece:
                continue  # one of the two has been merged with another neighbour since
            if not gap:
                gap = next(gaps)
                continue
            gap -= 1
            parts[i], parts[j] = piece, ""
            right[i] = right[j]
            left[right[j]] = i
            for a, b in ((left[i], i), (i, right[i])):
                if a >= 0 and b < len(parts) and (longer := parts[a] + parts[b]) in scores:
                    heapq.heappush(agenda, (-scores[longer], a, longer))
        return [part for part in parts if part], gap


class _Ends(NamedTuple):
    """Ways to reach a position: where the last piece begins, the piece, and the running total of the probabilities."""

    starts: list[int]
    pieces: list[str]
    totals: list[float]


class LatticeSampler:
    """Segmentations drawn with probability ∝ exp(alpha · sum of scores): sums forward, draws backward."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._lattice = lru_cache(KEPT_UNITS)(self._forward)

    def sample(self, text: str, *, alpha: float, rng: Random) -> list[int]:
        """Ids of a text."""
        return [i for unit in self._vocabulary.units(text) for i in self._draw(unit, alpha, rng)]

    def _draw(self, unit: str, alpha: float, rng: Random) -> list[int]:
        pieces: list[str] = []
        end, lattice = len(unit), self._lattice(unit, alpha)
        while end:
            starts, candidates, totals = lattice[end]
            chosen = bisect(totals, rng.random() * totals[-1], hi=len(totals) - 1)
            pieces.append(candidates[chosen])
            end = starts[chosen]
        return self._vocabulary.spell(reversed(pieces))

    def _forward(self, unit: str, alpha: float) -> list[_Ends]:
        if unit in self._vocabulary.symbols:
            return [_Ends([], [], [])] * len(unit) + [_Ends([0], [unit], [1.0])]
        scores, longest = self._vocabulary.scores, self._vocabulary.longest
        mass = [0.0]  # log of the summed weight of all ways to reach each position
        lattice = [_Ends([], [], [])]
        for end in range(1, len(unit) + 1):
            starts = [start for start in range(max(0, end - longest), end) if unit[start:end] in scores]
            if end - 1 not in starts:
                starts.append(end - 1)  # a character without a piece: the same factor in every way through
            pieces = [unit[start:end] for start in starts]
            logs = [mass[start] + alpha * scores.get(piece, 0.0) for start, piece in zip(starts, pieces, strict=True)]
            top = max(logs)
            totals = list(accumulate(math.exp(log - top) for log in logs))
            mass.append(top + math.log(totals[-1]))
            lattice.append(_Ends(starts, pieces, totals))
        return lattice
