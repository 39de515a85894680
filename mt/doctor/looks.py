"""A bounded sample of a corpus, and what its texts look like: checks that cost too much to make on every pair."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from mt.clean import traits
from mt.clean.filters import in_other_script
from mt.clean.identify import Identifier
from mt.clean.scripts import scripts_of
from mt.config.schema import Langs
from mt.doctor.findings import Spots
from mt.doctor.reading import Place, Places
from mt.errors import ConfigError
from mt.formats.pairs import Pair

MOST = 200_000
"""Pairs of a sample; of a corpus that has no more it is all."""
MOST_CHARACTERS = 100_000_000
"""Characters of a sample: of a corpus of paragraphs it has fewer pairs."""
USUAL_SCRIPT = 0.05
"""Where the languages are not named, a script that this share of the lines is mostly in belongs to the side."""
IDENTIFIED = 1000
"""Pairs whose languages are looked at; one takes as long as all other checks of a hundred."""
SURE = 0.9
"""Probability from which a line is said to be in another language."""
EVIDENCE = 10
"""Lines that must show something or its contrary before anything is said of a side."""
_DIGIT = re.compile(r"\d")


class Sample:
    """A uniform sample without replacement (Vitter 1985, algorithm R): the same one each time."""

    def __init__(self, most: int = MOST, most_characters: int = MOST_CHARACTERS) -> None:
        self._most, self._most_characters = most, most_characters
        self._characters = 0
        self.seen = 0
        """Pairs it was chosen from."""
        self._kept: list[tuple[int, Place, str, str]] = []
        self._rng = np.random.default_rng(1)

    def add(self, src: list[str], tgt: list[str], rows: list[int], places: Places) -> None:
        """Take some of these pairs; `rows` are their rows in `places`."""
        free = max(0, min(len(src), self._most - self.seen))
        self._kept += [(self.seen + i, places.one(rows[i]), src[i], tgt[i]) for i in range(free)]
        self._characters += sum(map(len, src[:free])) + sum(map(len, tgt[:free]))
        later = np.arange(free, len(src))
        slots = self._rng.integers(0, self.seen + later + 1)
        for i, slot in zip(later[slots < self._most].tolist(), slots[slots < self._most].tolist(), strict=True):
            self._characters += len(src[i]) + len(tgt[i]) - sum(map(len, self._kept[slot][2:]))
            self._kept[slot] = (self.seen + i, places.one(rows[i]), src[i], tgt[i])
        self.seen += len(src)
        while self._characters > self._most_characters and len(self._kept) > 1:
            self.thin()

    def __len__(self) -> int:
        return len(self._kept)

    def pairs(self) -> Iterator[tuple[Pair, Callable[[int], str]]]:
        """The pairs in the order of the corpus, and what gives the place of each side."""
        self._kept.sort(key=lambda kept: kept[0])
        for _, place, src, tgt in self._kept:
            yield Pair(src, tgt, ""), place.of

    def thin(self) -> None:
        """Forget every other pair; from now on there will be no more than are left."""
        self._kept.sort(key=lambda kept: kept[0])
        del self._kept[1::2]
        self._most = len(self._kept)
        self._characters = sum(len(src) + len(tgt) for _, _, src, tgt in self._kept)


class Look(NamedTuple):
    """How many texts of a side (or pairs) look like something."""

    kind: str
    side: int | None
    spots: Spots
    of: int
    """Those that were looked at."""
    telling: bool = False
    """Whether these are only those that can show it."""


def looks(sample: Sample, langs: Langs | None) -> Iterator[Look]:
    """What the texts of a sample look like: tokenised, in small letters, cut into sub-words, in another script; and numbers that differ."""
    yield _numbers(sample)
    for side in (0, 1):
        yield from _evidence(sample, side)
        expected = scripts_of((langs.src, langs.tgt)[side]) if langs else _usual_scripts(sample, side)
        if expected is not None:
            yield _scripts(sample, side, expected)
    if langs:
        yield from _languages(sample, langs)


def _numbers(sample: Sample) -> Look:
    spots = Spots()
    for pair, place in sample.pairs():
        digits = [sorted(map(unicodedata.digit, _DIGIT.findall(text))) for text in pair.sides]
        if all(digits) and digits[0] != digits[1]:
            spots.add(place(0), pair.src, pair.tgt)
    return Look("numbers", None, spots, len(sample))


def _evidence(sample: Sample, side: int) -> Iterator[Look]:
    """Of each kind the lines that show it, among those that show it or its contrary."""
    signs: dict[str, Callable[[str], bool | None]] = {
        "tokenised": traits.tokenised,
        "lower_cased": traits.lower_cased,
        "subwords": traits.subword_split,
    }
    spots, telling = {kind: Spots() for kind in signs}, Counter[str]()
    for pair, place in sample.pairs():
        for kind, sign in signs.items():
            shown = sign(pair.sides[side])
            telling[kind] += shown is not None
            if shown:
                spots[kind].add(place(side), pair.src, pair.tgt)
    for kind in signs:
        if telling[kind] >= EVIDENCE:
            yield Look(kind, side, spots[kind], telling[kind], telling[kind] < len(sample))


def _usual_scripts(sample: Sample, side: int) -> Collection[str]:
    """Those that enough lines are mostly in."""
    found = Counter(traits.script(pair.sides[side]) for pair, _ in sample.pairs())
    return {script for script, count in found.items() if script and count >= USUAL_SCRIPT * len(sample)}


def _scripts(sample: Sample, side: int, expected: Collection[str]) -> Look:
    """Lines mostly in letters of other scripts than these."""
    spots = Spots()
    for pair, place in sample.pairs():
        if in_other_script(pair.sides[side], pair.sides[1 - side], expected):
            spots.add(place(side), pair.src, pair.tgt)
    return Look("script", side, spots, len(sample))


def _languages(sample: Sample, langs: Langs) -> Iterator[Look]:
    """Lines that are surely in another language than their side; nothing where the library that tells is not installed."""
    try:
        identifier = Identifier(langs.src, langs.tgt)
    except ConfigError:
        return
    step = max(1, -(-len(sample) // IDENTIFIED))
    for side, language in enumerate((langs.src, langs.tgt)):
        spots, of = Spots(), 0
        for pair, place in islice(sample.pairs(), 0, None, step) if identifier.knows(language) else ():
            of += 1
            if identifier.elsewhere(pair.sides[side], language) > SURE:
                spots.add(place(side), pair.src, pair.tgt)
        yield Look("language", side, spots, of)
