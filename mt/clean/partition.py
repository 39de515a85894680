"""Which pairs are held out: told by the fingerprint of the source alone, so that neither order nor other pairs have a say in it.

A source has a place in [0, 1): the 64 bits of its normalised text. The dev set has the places at the lower end, the test set those at the
upper one, each as wide as its share. All pairs with one source, letter case, digits, punctuation and spacing aside, are on one side, and
a larger share holds out the same pairs and more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mt.clean.duplicates import fingerprint, text_fingerprint
from mt.clean.filters import Filter
from mt.config.cleaning import SplitConfig
from mt.config.schema import Corpus, DataConfig, Langs
from mt.formats.pairs import Pair

Part = Literal["dev", "test"]

HELD_OUT = "held out"
"""Why a pair is not trained on."""
LARGEST, USUAL = 0.2, 0.05
"""Share of a tiny corpus, and the most of one that is not."""
ENOUGH, MOST = 100, 2000
"""Pairs of a set: a tiny corpus gives more than the usual share to have as many, a large one less to have no more."""


class Shares(NamedTuple):
    """How much of the training pairs is held out, as dev and as test set."""

    dev: float
    test: float

    def part(self, src: str) -> Part | None:
        """On which side a source is; None: it is trained on."""
        return self.part_at(place_of(src))

    def part_at(self, place: float) -> Part | None:
        """On which side a place is."""
        return "dev" if place < self.dev else "test" if place >= 1 - self.test else None


def place_of(src: str) -> float:
    """The place of a source, in [0, 1)."""
    return (text_fingerprint(src.strip(), "normalised") >> 11) / 2**53


def usual_share(pairs: int) -> float:
    """Of so many pairs: 20 %, halved until it is 5 % or would be fewer than 100 pairs, and on while it is more than 2000."""
    share = LARGEST
    while (share > USUAL and pairs * share / 2 >= ENOUGH) or pairs * share > MOST:
        share /= 2
    return share


def shares_of(cfg: SplitConfig, pairs: int, *, with_test: bool) -> Shares:
    """What the settings come to for so many pairs."""
    usual = usual_share(pairs)
    dev, test = (usual if share == "auto" else share for share in (cfg.dev, cfg.test))
    return Shares(dev, test if with_test else 0.0)


def shares_in(data: DataConfig) -> Shares | None:
    """What stays out of training, as the config of a run has it; None where nothing was held out of it."""
    split = data.split
    return Shares(split.dev, split.test) if split and data.dev and split.dev != "auto" and split.test != "auto" else None


def sets_in(data: DataConfig) -> dict[str, Corpus]:
    """The sets that were held out: their like stays out of training, too."""
    if not (shares := shares_in(data)):
        return {}
    return {**data.dev_sets(), **({f"test {name}": corpus for name, corpus in data.test.items()} if shares.test else {})}


@dataclass(frozen=True)
class Trained:
    """The filters of a corpus of which pairs are held out; can be pickled."""

    reason: Filter
    shares: Shares

    def __call__(self, pair: Pair) -> str | None:
        """Why the pair is not trained on; None if it is."""
        return self.reason(pair) or (HELD_OUT if self.shares.part(pair.src) else None)


@dataclass
class Chosen:
    """The pairs to be held out of all that pass by; in memory are no more than these, and a few of those that a smaller share left out."""

    cfg: SplitConfig
    with_test: bool
    pairs: int = 0
    """That have passed."""
    _held: dict[tuple[Langs | None, int], tuple[float, Pair]] = field(default_factory=dict)
    _shares: Shares | None = None

    @property
    def shares(self) -> Shares:
        """As of now."""
        return shares_of(self.cfg, self.pairs, with_test=self.with_test)

    def add(self, pairs: Iterable[Pair], *, langs: Langs | None) -> None:
        """Have pairs of these languages pass by. Of those that differ in no more than case, digits, punctuation and spacing one stays."""
        for pair in pairs:
            self.pairs += 1
            if self._shares is None or self.pairs % ENOUGH == 0:
                self._narrow()
            place = place_of(pair.src)
            if self._shares is not None and self._shares.part_at(place):
                key = langs, fingerprint(pair, "normalised")
                other = self._held.get(key)
                if other is None or pair.sides < other[1].sides:
                    self._held[key] = place, pair
        self._narrow()

    def _narrow(self) -> None:
        if (now := self.shares) != self._shares:
            self._shares = now
            self._held = {key: held for key, held in self._held.items() if now.part_at(held[0])}

    def sets(self) -> dict[Part, dict[Langs | None, list[Pair]]]:
        """The pairs of each part by languages, in the order of their places: the first N are as good a sample as any."""
        parts: dict[Part, dict[Langs | None, list[Pair]]] = {"dev": {}, "test": {}}
        for (langs, _), (place, pair) in sorted(self._held.items(), key=lambda item: (item[1][0], item[1][1].sides)):
            if part := self.shares.part_at(place):
                parts[part].setdefault(langs, []).append(pair)
        return parts
