"""A glossary: terms of the source language and how they are to be translated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from mt.errors import DecodeError

UNBROKEN = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts that put no spaces between words: a term begins and ends anywhere there."""


class Term(NamedTuple):
    """An entry."""

    source: str
    target: str


class Glossary:
    """Finds its terms in source text: whole words, the longest first, none within another. Raises DecodeError for a blank one.

    A term without a capital letter is found in any case, one with a capital only as it is written.
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        terms = list(terms)
        if blank := [term for term in terms if not term.source.strip() or not term.target.strip()]:
            raise DecodeError(f"glossary: {blank[0].source!r} → {blank[0].target!r}: give a term and its translation")
        self.entries = sorted(terms, key=lambda term: -len(term.source))
        self._pattern = re.compile("|".join(f"({pattern(term.source)})" for term in self.entries)) if self.entries else None

    def terms(self, text: str) -> list[Term]:
        """Those in a text, in their order, each once."""
        places = (found.lastindex for found in self._pattern.finditer(text)) if self._pattern else ()
        return list(dict.fromkeys(self.entries[place - 1] for place in places if place))


def pattern(term: str) -> str:
    """A regular expression for a term."""
    words = r"\s+".join(map(re.escape, term.split()))
    cased = words if term != term.lower() else f"(?i:{words})"
    first, last = term.split()[0][0], term.split()[-1][-1]
    return boundary(first, r"(?<!\w)") + cased + boundary(last, r"(?!\w)")


def boundary(letter: str, edge: str) -> str:
    """What has to be at an edge of a term: no further letter, if the term has one there and its script parts words."""
    return edge if re.match(r"\w", letter) and not UNBROKEN.match(letter) else ""
