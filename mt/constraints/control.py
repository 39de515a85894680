"""What is asked of translations beside being probable, in text; `spelling` turns it into ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple, TypeVar

from mt.constraints.glossary import Glossary
from mt.errors import DecodeError
from mt.formats.placeholders import Protected

T = TypeVar("T")

MOST = 10_000
"""The largest least length."""
BLOCKED = 3
"""Pieces in a row that come only once in a second try."""
MAX_PENALTY = 10.0
"""Far beyond what helps."""


@dataclass(frozen=True)
class Control:
    """What every translation is to obey; nothing by default. Raises DecodeError for settings that cannot be met."""

    min_length: int = 0
    """Pieces of a translation at least; the length limit makes room for them."""
    no_repeat_ngram: int = 0
    """So many pieces in a row come only once; 0: no such rule."""
    repetition_penalty: float = 1.0
    """Pieces that are there already: their log-probability is multiplied by it, in what is reported too."""
    banned: Sequence[str] = ()
    """Phrases that are not written, with either case of the first letter."""
    glossary: Glossary | None = None
    """Where a source has one of its terms, the translation has to have the term's translation."""
    protect: Protected | None = None
    """What of a source the translation has to have as it is; None: as the run says."""
    retry_loops: bool | None = None
    """Whether what loops is tried again, with n-grams that come only once; None: as the run says."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_length <= MOST:
            raise DecodeError(f"min-length {self.min_length}: give a number of pieces from 0 to {MOST}")
        if self.no_repeat_ngram < 0:
            raise DecodeError(f"no-repeat-ngram {self.no_repeat_ngram}: give a number of pieces, or 0 for no such rule")
        if not 1 <= self.repetition_penalty <= MAX_PENALTY:
            raise DecodeError(f"repetition-penalty {self.repetition_penalty:g}: give a number from 1 (none) to {MAX_PENALTY:g}")
        if isinstance(self.banned, str):
            raise TypeError("banned is one string; give a list of them")

    def of_run(self, *, protect: Sequence[str], retry_loops: bool) -> Control:
        """What is left open as a run has it."""
        return replace(
            self,
            protect=Protected(tuple(protect)) if self.protect is None else self.protect,
            retry_loops=retry_loops if self.retry_loops is None else self.retry_loops,
        )

    def second(self) -> Control:
        """For the second try of what looped."""
        return replace(self, no_repeat_ngram=min(self.no_repeat_ngram or BLOCKED, BLOCKED))


NO_CONTROL = Control()


class Wish(NamedTuple):
    """What one line's translation is to obey."""

    prefix: str = ""
    """How it begins."""
    phrases: tuple[str, ...] = ()
    """What it says."""
    kept: tuple[str, ...] = ()
    """What it says of the source as it is, as often as it is here."""


class Wishes:
    """The wishes of lines, read as the lines are. Raises DecodeError where there are fewer of them, or more, than lines."""

    def __init__(self, prefixes: Iterable[str] | None, required: Iterable[Sequence[str]] | None) -> None:
        if isinstance(prefixes, str) or isinstance(required, str):
            raise TypeError("one string; give a list with an entry for each line")
        self._prefixes = None if prefixes is None else iter(prefixes)
        self._required = None if required is None else iter(required)
        self._lines = 0

    def of(self, lines: Sequence[str]) -> list[Wish]:
        """Those of the next lines."""
        count = len(lines)
        self._lines += count
        prefixes = [""] * count if self._prefixes is None else self._next(self._prefixes, count, "prefixes (--prefix-file)")
        required = [()] * count if self._required is None else self._next(self._required, count, "required phrases (--require)")
        return [Wish(prefix, tuple(filter(str.strip, own))) for prefix, own in zip(prefixes, required, strict=True)]

    def _next(self, values: Iterator[T], count: int, what: str) -> list[T]:
        found = list(islice(values, count))
        if len(found) < count:
            line = self._lines - count + len(found) + 1
            raise DecodeError(f"{what}: none for line {line}; give one for each line, empty where nothing is asked for")
        return found

    def end(self) -> None:
        """After the last line there is nothing left."""
        for values, what in (self._prefixes, "prefixes (--prefix-file)"), (self._required, "required phrases (--require)"):
            if values is not None and next(values, None) is not None:
                raise DecodeError(f"{what}: more than the {self._lines} lines; give one for each line")
