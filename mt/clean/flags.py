"""What is doubtful about a translation: flags on lines for whoever translates, reasons to leave a pair out for whoever trains on them."""

from __future__ import annotations

from enum import StrEnum

MAX_RATIO = 6.0
"""Longest side / shortest side, in characters."""
MAX_REPEATS = 0.5
"""Share of a text's n-grams that occurred in it before; in a loop it is near 1."""
LEAST_CONFIDENCE = 0.2
"""Probability of a token, in the geometric mean over a translation and its end."""


class Flag(StrEnum):
    """What can be told about the translation of a line."""

    SPLIT = "split"
    """The line was too long, and translated in parts."""
    TRUNCATED = "truncated"
    """The length limit ended it."""
    UNMET = "unmet"
    """It lacks something that was required."""
    LOST = "lost"
    """It lacks something that is protected in the source."""
    EMPTY = "empty"
    """There is nothing, of a line that is not blank."""
    COPIED = "copied"
    """It is the source."""
    LOOP = "loop"
    """More than `MAX_REPEATS` of its n-grams occurred in it before."""
    LENGTH = "length"
    """One side has more than `MAX_RATIO` times the characters of the other."""
    UNKNOWN = "unknown"
    """The source has characters without a piece."""
    LOW_CONFIDENCE = "low_confidence"
    """The model gave its tokens less than `LEAST_CONFIDENCE`."""


def flags_of(
    source: str, text: str, *, confidence: float, split: bool, truncated: bool, unmet: bool, lost: bool, unknown: bool
) -> list[Flag]:
    """What holds of a translation of a line that is not blank, in the order of `Flag`; of an empty one nothing is said of its text."""
    from mt.clean.traits import repeated_share  # not for those who need a name or a threshold, as `mt --help` does

    there = bool(text.strip())
    holds = {
        Flag.SPLIT: split,
        Flag.TRUNCATED: truncated,
        Flag.UNMET: unmet,
        Flag.LOST: lost,
        Flag.EMPTY: not there,
        Flag.COPIED: there and is_copied(source, text),
        Flag.LOOP: repeated_share(text) > MAX_REPEATS,
        Flag.LENGTH: there and is_uneven(source, text, MAX_RATIO),
        Flag.UNKNOWN: unknown,
        Flag.LOW_CONFIDENCE: confidence < LEAST_CONFIDENCE,
    }
    return [flag for flag, true in holds.items() if true]


def is_copied(src: str, tgt: str) -> bool:
    """Are both the same, but for white space around them?"""
    return src.strip() == tgt.strip()


def is_uneven(src: str, tgt: str, most: float) -> bool:
    """Has one side more than so many times the characters of the other?"""
    return len(src) > most * len(tgt) or len(tgt) > most * len(src)
