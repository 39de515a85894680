"""What a translation must not lose: `%d`, `%(name)s`, `{0}`, `{name}`, markup such as `<b>` in the text itself, and what is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mt.config.protection import flaw_of
from mt.errors import DecodeError

# No space after the percent sign, and no digit before it, though C allows both: "100% sure" and "a 100%ige Sache" hold none.
PATTERNS = {
    "tags": r"</?[a-zA-Z][^<>]*>",
    "placeholders": r"""(?x) %% | (?<!\d)%(?:\d+\$)?(?:\([^()\s]+\))?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[qjztL])?[a-zA-Z@]
        | (?<!\d)%L?\d+
        | \{[ ]?[^{}\s]*[ ]?\}""",
    "numbers": r"\d+(?:[.,:/'’\u00a0\u202f-]\d+)*",
    "urls": r"(?i:https?://|ftp://|www\.)[^\s<>\"“”„]*[^\s<>\"“”„.,;:!?)\]}'’»]",
    "emails": r"(?<![\w.+-])[\w.+-]*[\w+-]@[\w-]+(?:\.[\w-]+)+",
}

PATIENCE = 5.0
"""Seconds of the processor that a pattern has for a text: some go through a line for longer than anybody waits."""


@dataclass(frozen=True)
class Protected:
    """Patterns of what a translation is to have as its source has it; names of `PATTERNS`, or regular expressions.

    Of what overlaps, the first is meant, and of what begins at one place the longest: a number within a URL is the URL's.
    Raises DecodeError for a pattern that is none, or takes too long.
    """

    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if flaw := flaw_of(pattern):
                raise DecodeError(f"protect: {flaw}")

    @cached_property
    def _compiled(self) -> list[Any]:
        import regex  # Python's own has no limit of time; most texts have no pattern

        return [regex.compile(PATTERNS.get(pattern, pattern)) for pattern in self.patterns]

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        for pattern, compiled in zip(self.patterns, self._compiled, strict=True):
            try:
                yield from (match.span() for match in compiled.finditer(text, timeout=PATIENCE) if match[0].strip())
            except TimeoutError:
                line = f"{text[:60]}{'…' * (len(text) > 60)}"
                cure = "write it so that there is one way to match a text, without repetitions in repetitions as in (a+)+"
                raise DecodeError(f"protect: {pattern!r} takes more than {PATIENCE:g} seconds for a line ({line}); {cure}") from None

    def spans(self, text: str) -> list[str]:
        """What is protected of a text, in its order, as often as it comes."""
        found = {*self._found(text)}
        spans: list[str] = []
        end = 0
        for start, stop in sorted(found, key=lambda span: (span[0], -span[1])):
            if start >= end:
                spans.append(text[start:stop])
                end = stop
        return spans

    def judged(self, source: str, target: str) -> list[tuple[str, bool]]:
        """Each of a source, and whether a translation has it, by the same patterns: what comes twice has to come twice."""
        left = Counter(self.spans(target)) if self.patterns else Counter()
        judged = []
        for span in self.spans(source):
            judged.append((span, left[span] > 0))
            left[span] -= 1
        return judged

    def lost(self, source: str, target: str) -> list[str]:
        """What the translation lacks, or has fewer times."""
        return [span for span, kept in self.judged(source, target) if not kept]


USUAL = Protected(("tags", "placeholders"))
"""What programs fill in, and markup."""


def lost(source: str, target: str) -> list[str]:
    """The placeholders and tags of a source that its translation lacks, or has fewer times."""
    return USUAL.lost(source, target)
