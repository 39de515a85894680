"""What became of one line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from mt.clean.flags import Flag, flags_of
from mt.constraints.glossary import Term
from mt.decode.parts import spaced
from mt.forced.links import Alignment
from mt.formats.pairs import one_line
from mt.search.step import Hypothesis, concatenated
from mt.tokenizer.spm import Tokenizer


class Following(NamedTuple):
    """What comes after a prefix."""

    piece: str
    """As the tokenizer writes it; `</s>` is the end."""
    probability: float

    @classmethod
    def of(cls, found: Hypothesis, place: int, tgt: Tokenizer) -> Following:
        """What a hypothesis has at a place, which may be its end or that of its first part."""
        own = found.ids[: found.parts[0]] if found.parts else found.ids
        return cls(tgt.pieces([[*own, tgt.eos][place]])[0], math.exp(found.tokens[place]))


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
    following: list[Following] = field(default_factory=list)
    """What each hypothesis has after the prefix, where alternatives were asked for."""
    protected: list[tuple[str, bool]] = field(default_factory=list)
    """What is protected in the source, and whether the best translation has it."""
    retried: bool = False
    """Whether it looped, and was tried a second time; where it still has the flag, the first translation stands."""

    @property
    def text(self) -> str:
        """The best translation; a blank line stays blank."""
        return self.hypotheses[0][0] if self.hypotheses else ""


def whole_lines(
    parts: Sequence[list[Hypothesis]], tgt: Tokenizer, *, lang: str | None, length_penalty: float, ranked: bool = True
) -> list[tuple[str, Hypothesis]]:
    """Hypotheses of a line with their texts: the n-th is made of the n-th of each part (or its last, if it has fewer).

    Best first, or if they are not to be `ranked` in the order of those of the parts.
    """
    glue = " " if spaced(lang) else ""
    found = []
    for rank in range(max(map(len, parts), default=0)):
        chosen = [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in parts]
        text = one_line(glue.join(tgt.decode(h.ids) for h in chosen))
        found.append((text, chosen[0] if len(chosen) == 1 else concatenated(chosen, length_penalty=length_penalty)))
    return sorted(found, key=lambda one: -one[1].score) if ranked else found


def flags_on(line: str, whole: Sequence[tuple[str, Hypothesis]], *, parts: int, unknown: int, unmet: bool, lost: bool) -> list[str]:
    """The flags of a line and its best translation; of a blank one only that it does not obey."""
    if not parts:
        return [Flag.UNMET.value] if unmet else []
    text, best = whole[0] if whole else ("", Hypothesis([], 0.0, 0.0, truncated=False))
    confidence = math.exp(best.log_prob / (len(best.ids) + parts))
    known = {"split": parts > 1, "truncated": best.truncated, "unmet": unmet, "lost": lost, "unknown": unknown > 0}
    return [flag.value for flag in flags_of(line, text, confidence=confidence, **known)]


def second_tries(
    found: Iterable[Translation], again: Callable[..., Iterable[Translation]], given: Sequence[Sequence[Any]]
) -> list[Translation]:
    """The same, but those that loop are tried again; what then does not loop, and says something, takes the place of the first.

    `given` is what `again` takes for each line; it gets that of the lines in question.
    """
    first = list(found)
    places = [place for place, one in enumerate(first) if Flag.LOOP in one.flags]
    if places:
        chosen = ([values[place] for place in places] for values in given)
        for place, second in zip(places, again(*chosen), strict=True):
            better = Flag.LOOP not in second.flags and Flag.EMPTY not in second.flags
            first[place] = replace(second if better else first[place], retried=True)
    return first
