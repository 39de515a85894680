"""Pairs that are too close to what was held out of their corpus to be trained on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from mt.clean.partition import sets_in
from mt.config.directions import langs_of
from mt.config.schema import Config
from mt.doctor.leakage import HeldOut
from mt.formats.pairs import Pair
from mt.formats.readers import read_held_out

BLOCK = 250_000  # characters that are compared at once: each takes some 100 bytes meanwhile


class Alike:
    """Tells pairs that share a side with a held-out one, nearly or exactly, as `leakage` has it; can be pickled."""

    def __init__(self, held_out: HeldOut) -> None:
        self._held_out = held_out

    @classmethod
    def of(cls, config: Config) -> Self | None:
        """To the sets that were held out of the training corpora; None where none were."""
        sets = {name: read_held_out(corpus, langs=langs_of(config, corpus)) for name, corpus in sets_in(config.data).items()}
        return cls(HeldOut(sets)) if sets else None

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> set[int]:
        """Their rows among pairs of these sources and targets."""
        rows = set[int]()
        for part in blocks(map(max, map(len, src), map(len, tgt))):
            rows.update(part.start + row for row, _ in self._held_out.same(src[part], tgt[part]))
        return rows


def without_alike(pairs: Sequence[Pair], held_out: Sequence[Pair]) -> list[Pair]:
    """The pairs that share nothing with held-out ones."""
    alike = Alike(HeldOut({"": held_out}))([pair.src for pair in pairs], [pair.tgt for pair in pairs])
    return [pair for row, pair in enumerate(pairs) if row not in alike]


def blocks(lengths: Iterable[int]) -> Iterator[slice]:
    """Parts of what has these lengths, each short enough to be compared at once."""
    start, end, characters = 0, 0, 0
    for end, length in enumerate(lengths, 1):
        characters += length
        if characters > BLOCK:
            yield slice(start, end)
            start, characters = end, 0
    if end > start:
        yield slice(start, end)
