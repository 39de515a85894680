"""Lines in parts: where one that is too long is cut, and how parts come into batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mt.constraints.control import Wish
from mt.data.plan import longest_first
from mt.tokenizer.spm import Tokenizer

UNSPACED = {"zh", "ja", "th", "lo", "km", "my"}
"""Languages whose sentences are joined without a space."""

SENTENCE_END = re.compile(r"""[.!?…]["'”’»)]*\s+|[。！？][”’」』）]*""")
SPACE = re.compile(r"\s+")


class Part(NamedTuple):
    """As much of a line as the model takes at once."""

    line: int
    """Place of the line in its window."""
    place: int
    """Place of the part in the line."""
    ids: list[int]
    """Pieces, without tag and EOS."""
    wish: Wish = Wish()
    """What its translation is to obey."""


def spaced(lang: str | None) -> bool:
    """Whether a language has spaces between sentences, and words."""
    return not lang or re.split("[-_]", lang)[0] not in UNSPACED


def batches_of(parts: Sequence[Part], *, budget: int, extra: int) -> list[list[Part]]:
    """Parts, from long to short, in batches of rows × (longest + extra: EOS and tag) ≤ budget; a longer one is a batch by itself."""
    lengths = [len(part.ids) + extra for part in parts]
    return [[parts[place] for place in places] for places in longest_first(lengths, budget=budget)]


def split(line: str, tokenizer: Tokenizer, *, most: int) -> list[str]:
    """Consecutive parts of a line, none with more than `most` pieces unless it is a single character; a line short enough is its only part.

    What is too long is halved, and its halves again: equal parts suit a model better than a full one and a rest.
    """
    if len(line) < 2 or len(tokenizer.encode(line)) <= most:
        return [line]
    cut = best_cut(line)
    return split(line[:cut], tokenizer, most=most) + split(line[cut:], tokenizer, most=most)


def best_cut(line: str) -> int:
    """Where to cut a line in two: after the sentence end nearest the middle; if it has none, after the space; else in the middle."""
    middle = len(line) // 2
    for break_ in SENTENCE_END, SPACE:
        if cuts := [found.end() for found in break_.finditer(line) if found.end() < len(line)]:
            return min(cuts, key=lambda cut: abs(cut - middle))
    return middle
