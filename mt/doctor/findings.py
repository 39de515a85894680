"""What the doctor found: examples as they are met, findings at the end, and the whole as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from mt.doctor.kinds import BOUNDS, Severity
from mt.formats.pairs import Pair

EXAMPLES = 5
"""Examples that are kept of each finding: the first in the corpus."""
EXAMPLE_CHARACTERS = 400
"""Longer texts are cut in examples."""


@dataclass
class Spots:
    """How often something was met, and where first."""

    count: int = 0
    examples: list[Pair] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether no more examples are kept."""
        return len(self.examples) >= EXAMPLES

    def add(self, origin: str, src: str, tgt: str) -> None:
        """One more."""
        self.count += 1
        if not self.full:
            self.examples.append(Pair(src, tgt, origin))


@dataclass(frozen=True)
class Finding:
    """One thing to know about a corpus."""

    kind: str
    severity: Severity
    corpus: str
    side: str | None
    """`source` or `target`; None if it is about pairs."""
    count: int
    share: float
    """Of the pairs or lines looked at."""
    what: str
    """A sentence, without the corpus and without places."""
    cure: str
    examples: list[dict[str, str]]
    """The first in the corpus: origin, src, tgt; for leakage also those of the other pair."""

    def as_json(self) -> dict[str, Any]:
        """As in the JSON report."""
        return asdict(self) | {"severity": self.severity.name.lower()}


@dataclass
class CorpusFacts:
    """What was counted in one corpus."""

    name: str
    role: str
    """`train`, `dev` or `test`."""
    files: list[str]
    pairs: int = 0
    """Lines with a partner, records, rows: good or bad."""
    usable: int = 0
    """Those with text on both sides, in UTF-8."""
    sampled: int = 0
    """How many of the usable ones the dear checks looked at; all or a sample."""
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BOUNDS, 0))
    """By kind of finding; those too rare to be told too."""
    characters: tuple[int, int] = (0, 0)
    """Median length of the two sides."""

    def as_json(self) -> dict[str, Any]:
        """As in the JSON report."""
        facts = asdict(self)
        median = dict(zip(("source", "target"), facts.pop("characters"), strict=True))
        sizes = {"pairs": self.pairs, "usable": self.usable, "sampled": self.sampled, "median_characters": median}
        return {"role": self.role, "files": self.files, **sizes, **self.counts}


@dataclass
class Diagnosis:
    """All that was found."""

    corpora: list[CorpusFacts]
    findings: list[Finding]
    """Errors first, then in the order of the corpora and kinds."""
    leakage: dict[str, dict[str, Any]]
    """By held-out set: how many of its pairs are in the training data, by level and side, with examples."""

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding."""
        return max((finding.severity for finding in self.findings), default=None)

    def as_json(self) -> dict[str, Any]:
        """The JSON report."""
        return {
            "corpora": {facts.name: facts.as_json() for facts in self.corpora},
            "findings": [finding.as_json() for finding in self.findings],
            "leakage": self.leakage,
        }


def legible(text: str) -> str:
    """The text with bytes that are not UTF-8 as in `\\xe9`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def example(pair: Pair) -> dict[str, str]:
    """A pair as an example, cut if it is long."""
    src, tgt = (text if len(text) <= EXAMPLE_CHARACTERS else f"{text[: EXAMPLE_CHARACTERS - 1]}…" for text in map(legible, pair.sides))
    return {"origin": legible(pair.origin), "src": src, "tgt": tgt}


def number(count: int, noun: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def percent(share: float) -> str:
    """`0.12%`; never 0 for what is there."""
    return f"{share:.2%}" if share >= 5e-5 or not share else "<0.01%"


_SINGULAR = {"have": "has", "are": "is"}


def sentence(count: int, of: int, noun: str, says: str) -> str:
    """`2 of 5 pairs (40.00%) have an empty side`, `1 of 5 pairs (20.00%) has an empty side`."""
    verb, _, rest = says.partition(" ")
    if count == 1:
        verb = _SINGULAR.get(verb, f"{verb}s")
    return f"{count} of {number(of, noun)} ({percent(count / of if of else 0.0)}) {verb} {rest}"
