"""What a corpus is like, as far as settings depend on it: how many pairs, how long, in which characters and languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from mt.clean.scripts import SCRIPT_OF
from mt.config.schema import Corpus, CsvFile, JsonlFile, Langs, PoFile, TextFiles, TmxFile, TsvFile, XliffFile
from mt.data.meter import Meter, Say
from mt.errors import DataError
from mt.formats.pairs import counted, drop_reason
from mt.formats.readers import read_pairs

SHARE = 0.1
"""Of a side's letters that a script has that is told of it."""
RARE = 3
"""Times a character has to come to count in the alphabet."""


@dataclass
class Look:
    """What was seen."""

    pairs: int = 0
    """With two sides that are not empty."""
    unusable: int = 0
    characters: list[Counter[str]] = field(default_factory=lambda: [Counter(), Counter()])
    """Of each side."""

    def mean(self, side: int) -> float:
        """Characters of a line."""
        return self.characters[side].total() / max(1, self.pairs)

    @property
    def alphabet(self) -> int:
        """Different characters of both sides that are not rare."""
        return sum(count >= RARE for count in (self.characters[0] + self.characters[1]).values())

    def scripts(self, side: int) -> list[str]:
        """Those a side is written in, the commonest first."""
        counts: Counter[str] = Counter()
        for character, count in self.characters[side].items():
            if script := SCRIPT_OF[character]:
                counts[script] += count
        return [script for script, count in counts.most_common() if count >= SHARE * counts.total()]

    def line(self) -> str:
        """For people."""
        sides = (f"{' and '.join(self.scripts(side)) or 'no'} letters, {self.mean(side):.0f} characters a line" for side in (0, 1))
        source, target = sides
        left_out = f" ({self.unusable} more with an empty side, or marked as unfit)" if self.unusable else ""
        return f"{counted(self.pairs, 'pair')}{left_out}; source: {source}; target: {target}; {self.alphabet} different characters"


def look(corpus: Corpus, *, langs: Langs | None, say: Say) -> Look:
    """Read a corpus once. Raises DataError for bad input, and where no pair can be used."""
    found = Look()
    with closing(Meter("looking", say)) as meter:
        for pair in meter.counted(read_pairs(corpus, langs=langs)):
            if drop_reason(pair):
                found.unusable += 1
                continue
            found.pairs += 1
            for characters, side in zip(found.characters, pair.sides, strict=True):
                characters.update(side)
    if not found.pairs:
        raise DataError(f"{corpus.called()}: no pair can be used, as every one has an empty side or is marked as unfit; give another file")
    return found


BY_SUFFIX = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".tmx": "tmx", ".xlf": "xliff", ".xliff": "xliff", ".po": "po"}


def corpus_of(src: Path | None, tgt: Path | None, pairs: Path | None, *, what: str = "") -> Corpus:
    """The corpus in two files, or in one with both sides. Raises DataError where neither is given, or both, or it has no known suffix.

    `what` is put into the names of the options, as in `--dev-src`.
    """
    if pairs and (src or tgt):
        raise DataError(f"--{what}pairs and --{what}{'src' if src else 'tgt'}: give one file with both sides, or two files")
    if pairs:
        kind = next((BY_SUFFIX[suffix] for suffix in reversed(PurePath(pairs).suffixes) if suffix in BY_SUFFIX), None)
        of: dict[str, Callable[..., Corpus]] = {
            "tsv": TsvFile,
            "csv": CsvFile,
            "jsonl": JsonlFile,
            "tmx": TmxFile,
            "xliff": XliffFile,
            "po": PoFile,
        }
        if kind is None:
            raise DataError(f"--{what}pairs {pairs}: its name tells no format; it should end in {', '.join(BY_SUFFIX)}")
        return of[kind](**{kind: pairs})
    if not (src and tgt):
        missing = (
            f"--{what}tgt FILE" if src else f"--{what}src FILE" if tgt else f"--{what}src FILE and --{what}tgt FILE, or --{what}pairs FILE"
        )
        raise DataError(f"{'one side is missing' if src or tgt else 'no corpus is given'}: add {missing}")
    return TextFiles(src=src, tgt=tgt)
