"""What became of one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mt.clean.flags import Flag, flags_of
from mt.decode.glossary import Term
from mt.decode.links import Alignment
from mt.decode.step import Hypothesis


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    source: str
    hypotheses: list[tuple[str, Hypothesis]]
    """Texts with what was searched, best first; empty for a blank line. For a line in parts L counts the EOS of each part."""
    flags: list[str] = field(default_factory=list)
    """What can be told about the best translation; see `mt.clean.flags.Flag`."""
    unknown: int = 0
    """Runs of characters in the source that the tokenizer has no piece for."""
    terms: list[tuple[Term, bool]] = field(default_factory=list)
    """Entries of the glossary in the source, and whether the best translation has what they ask for."""
    utilities: list[float] = field(default_factory=list)
    """Expected score of each hypothesis, best first, where they were chosen by it (MBR)."""
    alignments: list[Alignment] = field(default_factory=list)
    """Which words of each hypothesis belong to which of the source, where it was asked for."""

    @property
    def text(self) -> str:
        """The best translation; a blank line stays blank."""
        return self.hypotheses[0][0] if self.hypotheses else ""


def flags_on(line: str, whole: Sequence[tuple[str, Hypothesis]], *, parts: int, unknown: int, unmet: bool) -> list[str]:
    """The flags of a line and its best translation; of a blank one only that it does not obey."""
    if not parts:
        return [Flag.UNMET.value] if unmet else []
    text, best = whole[0] if whole else ("", Hypothesis([], 0.0, 0.0, truncated=False))
    confidence = math.exp(best.log_prob / (len(best.ids) + parts))
    known = {"split": parts > 1, "truncated": best.truncated, "unmet": unmet, "unknown": unknown > 0}
    return [flag.value for flag in flags_of(line, text, confidence=confidence, **known)]
