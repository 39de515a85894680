"""The examination of one corpus: every pair passes by once, what is wrong with it is counted, the first of each kind are kept.

Legend: N pairs of a block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mt.clean.duplicates import Seen, text_fingerprint
from mt.clean.traits import has_markup
from mt.config.schema import Corpus, Langs
from mt.doctor.characters import CODES, census
from mt.doctor.findings import EXAMPLES, Spots
from mt.doctor.lengths import LONG, LengthLog, far
from mt.doctor.looks import Sample
from mt.doctor.reading import Advance, Block, Places, Reading, plain
from mt.doctor.shingles import mixed
from mt.formats.pairs import Pair

UNUSUAL = 20 * EXAMPLES
"""Pairs with a ratio that seems unusual are remembered up to this number; the usual one is known for sure only at the end."""


class Usable(NamedTuple):
    """Pairs of a block as training would see them: those with bytes that are not UTF-8 and those with an empty side left out."""

    src: list[str]
    tgt: list[str]
    rows: list[int]
    """Their rows in `places`."""
    places: Places

    def pair(self, row: int) -> Pair:
        """One of them."""
        return Pair(self.src[row], self.tgt[row], self.places.of(self.rows[row]))

    def without(self, rows: Container[int]) -> Usable:
        """All but some of them."""
        kept = [row for row in range(len(self.src)) if row not in rows]
        src, tgt = ([texts[row] for row in kept] for texts in (self.src, self.tgt))
        return Usable(src, tgt, [self.rows[row] for row in kept], self.places)


class Memory:
    """What pairs and sides were seen before: hashes, most of them on the disk."""

    def __init__(self, folder: Path) -> None:
        kinds = "duplicates", "duplicates_normalised", "same_source", "same_target"
        self._seen = {kind: Seen(folder) for kind in kinds}

    def known(self, src: list[str], tgt: list[str], *, tag: str | None) -> dict[str, NDArray[np.bool_]]:
        """By kind: which of these pairs repeat something with the same tag, (N,); all are known from now on."""
        exact = [_fingerprints(texts, "exact", tag) for texts in (src, tgt)]
        loose = [_fingerprints(texts, "normalised", tag) for texts in (src, tgt)]
        hashes = (_both(*exact), _both(*loose), *exact)
        known = {kind: seen.add(some) for (kind, seen), some in zip(self._seen.items(), hashes, strict=True)}
        known["same_source"] &= ~known["duplicates"]
        known["same_target"] &= ~known["duplicates"]
        return known

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for seen in self._seen.values():
            seen.close()


def _fingerprints(texts: list[str], kind: Literal["exact", "normalised"], tag: str | None) -> NDArray[np.uint64]:
    hashes = np.fromiter((text_fingerprint(text, kind) for text in texts), dtype=np.uint64, count=len(texts))
    return hashes ^ np.uint64(text_fingerprint(tag, "exact") if tag else 0)


def _both(src: NDArray[np.uint64], tgt: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return mixed(src + mixed(tgt))


class Examination:
    """One corpus; when `run` has ended, all is there to be judged."""

    def __init__(
        self, corpus: Corpus, langs: Langs | None, *, tag: str | None, memory: Memory, lengths: LengthLog, advance: Advance
    ) -> None:
        self.reading = Reading(corpus, langs, advance)
        self.pairs = 0
        """Those with two sides, good or bad."""
        self.lines = [0, 0]
        """Those of each side, with a partner or without."""
        self.spots: dict[tuple[str, int | None], Spots] = {}
        """What was met, by kind and side (None: of pairs)."""
        self.lengths = lengths
        self.sample = Sample()
        self.alphabets: list[Counter[str]] = [Counter(), Counter()]
        """Characters of each side, when all have passed."""
        self._name = corpus.called()
        self._tag, self._memory = tag, memory
        self._codes_2C = np.zeros((2, CODES), dtype=np.int64)
        self._unusual: list[tuple[NDArray[np.int32], Pair]] = []

    def run(self) -> Iterator[Usable]:
        """Examine all pairs; the usable ones come out on the way."""
        name = self._name
        for block in self.reading.blocks():
            if block.places.begins:
                self.lengths.end_files(name)
            name = block.places.names[0] or self._name
            if usable := self._look(block):
                yield usable
        self.lengths.end(name)
        self.alphabets = [Counter({chr(code): int(codes[code]) for code in np.flatnonzero(codes)}) for codes in self._codes_2C]
        del self._codes_2C
        self._settle_ratios()

    @property
    def rejected(self) -> int:
        """What was no pair."""
        return sum(spots.count for spots in self.reading.flaws.values())

    def _note(self, kind: str, side: int | None, rows: Iterable[int], block: Block) -> None:
        spots = self.spots.setdefault((kind, side), Spots())
        for row in rows:
            spots.add(block.places.of(row, side or 0), *(lines[row] if lines else "" for lines in (block.src, block.tgt)))

    def _look(self, block: Block) -> Usable | None:
        broken = set[int]()
        for side, lines in enumerate((block.src, block.tgt)):
            self.lines[side] += len(lines)
            if lines:
                broken |= self._characters(side, lines, block)
        alone = 0 if not block.tgt else 1 if not block.src else None
        if alone is not None:
            self.lengths.add_alone(alone, np.fromiter(map(len, block.src or block.tgt), dtype=np.int32))
            return None
        self.pairs += len(block.src)
        src, tgt = (plain(lines, begins=block.places.begins) for lines in (block.src, block.tgt))
        lengths_N2 = np.array([[len(text.strip()) for text in texts] for texts in (src, tgt)], dtype=np.int32).T
        places = block.places
        self.lengths.add(lengths_N2, [] if places.numbered else [places.of(row) for row in range(len(src))])
        empty_N = (lengths_N2 == 0).any(axis=1)
        self._note("empty", None, np.flatnonzero(empty_N), block)
        self._note("long_lines", None, np.flatnonzero((lengths_N2 > LONG).any(axis=1)), block)
        rows = [row for row in np.flatnonzero(~empty_N).tolist() if row not in broken]
        if not rows:
            return None
        usable = Usable([src[row] for row in rows], [tgt[row] for row in rows], rows, block.places)
        self._pairs(usable, block)
        self._watch_ratios(lengths_N2[rows], usable)
        self.sample.add(usable.src, usable.tgt, rows, block.places)
        return usable

    def _characters(self, side: int, lines: list[str], block: Block) -> set[int]:
        """Note what does not belong in a text; the rows with bytes that are not UTF-8."""
        found = census(lines, begins=block.places.begins)
        self._codes_2C[side] += found.characters
        for kind, rows in found.rows.items():
            self._note(kind, side, rows.tolist(), block)
        marked = [row for row, line in enumerate(lines) if ("<" in line or "&" in line) and has_markup(line)]
        self._note("markup", side, marked, block)
        return set(found.rows.get("undecodable", np.array([], dtype=np.intp)).tolist())

    def _pairs(self, usable: Usable, block: Block) -> None:
        """Note what repeats, and copies."""
        for kind, known_N in self._memory.known(usable.src, usable.tgt, tag=self._tag).items():
            self._note(kind, None, (usable.rows[i] for i in np.flatnonzero(known_N)), block)
        equal = (row for row, src, tgt in zip(usable.rows, usable.src, usable.tgt, strict=True) if src.strip() == tgt.strip())
        self._note("copies", None, equal, block)

    def _watch_ratios(self, lengths_N2: NDArray[np.int32], usable: Usable) -> None:
        """Remember pairs that seem to be outliers, by what is usual so far."""
        for row in np.flatnonzero(far(lengths_N2, self.lengths.usual())).tolist():
            if len(self._unusual) < UNUSUAL:
                self._unusual.append((lengths_N2[row], usable.pair(row)))

    def _settle_ratios(self) -> None:
        """Count the outliers, and choose the examples that really are some."""
        spots = self.spots["ratio", None] = Spots(self.lengths.outliers())
        usual = self.lengths.usual()
        spots.examples = [pair for lengths, pair in self._unusual if far(lengths[None], usual)[0]][:EXAMPLES]
