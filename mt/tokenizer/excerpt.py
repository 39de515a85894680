"""The lines a tokenizer is trained on: all of a corpus, or of a large one a sample, chosen by a hash of their index, in bounded memory.

A line is one or several texts (both sides of a pair, for a joint vocabulary), which are taken or left out together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from mt.errors import TokenizerError
from mt.tokenizer.spm import plain

SAMPLE_LINES = 500_000
"""Most corpus lines a tokenizer is trained on; of a larger corpus it is a uniform sample."""
SAMPLE_BYTES = 100_000_000
"""Most bytes of text likewise: sentencepiece takes about five times as much memory."""

BLOCK = 4096  # items that are drawn for at once
HOLE = "\0"  # sentencepiece gives NUL no piece and puts none across it: it stands for characters that are left out

Item = TypeVar("Item")
Line = str | Sequence[str]


class Texts:
    """Texts without line feeds, packed: a million pairs of 120 bytes take 200 MB, where a list of strings takes twice that."""

    def __init__(self, lines: Iterable[Sequence[str]] = ()) -> None:
        self.packed: list[bytes] = []
        self.bytes = 0
        for line in lines:
            self.append(line)

    def append(self, line: Sequence[str]) -> None:
        """Add the texts of a line."""
        self.packed.append("\n".join(line).encode("utf-8"))
        self.bytes += len(self.packed[-1])

    def keep(self, places: Sequence[int]) -> None:
        """Leave out the lines at all other places."""
        self.packed = [self.packed[place] for place in places]
        self.bytes = sum(map(len, self.packed))

    def __iter__(self) -> Iterator[str]:
        for line in self.packed:
            yield from line.decode("utf-8").split("\n")

    def __len__(self) -> int:
        """Lines."""
        return len(self.packed)


class Excerpt:
    """What is trained on, and how much it was taken from."""

    def __init__(self) -> None:
        self.texts = Texts()
        """Of the lines taken, in their order."""
        self.lines = 0
        """How many there were to take from; of a large corpus, among those that the hash let come into question."""
        self.too_long = 0
        """How many of them were left out because of their length."""
        self.sampled = False
        """Whether there were more than are taken."""


def excerpt(items: Iterable[Item], line_of: Callable[[Item], Line | None], *, max_bytes: int, seed: int) -> Excerpt:
    """The lines that have text and no text above `max_bytes`, or as many as SAMPLE_LINES and SAMPLE_BYTES allow: those of the least hashes.

    `line_of` makes the line of an item, None if it has none; of a large corpus it is asked about few items more than are taken.
    Raises TokenizerError where nothing is left.
    """
    found, hashes = Excerpt(), np.random.Philox(key=seed)  # whose n-th number is a function of the key and n
    taken: list[int] = []
    limit = 1 << 64  # hashes above it are too large to be among the least
    rest = iter(items)
    while block := list(islice(rest, BLOCK)):
        for item, number in zip(block, hashes.random_raw(len(block)).tolist(), strict=True):
            if number < limit and _take(found, line_of(item), max_bytes=max_bytes):
                taken.append(number)
        if _too_many(found, slack=0.25):
            limit = _shrink(found, taken)
    if _too_many(found):
        _shrink(found, taken)
    if not taken:
        raise TokenizerError(_nothing(found, max_bytes))
    return found


def _take(found: Excerpt, line: Line | None, *, max_bytes: int) -> bool:
    """Take a line if it can be trained on."""
    if line is None:
        return False
    found.lines += 1
    texts = [plain(text) for text in ([line] if isinstance(line, str) else line)]
    if any(len(text.encode("utf-8")) > max_bytes for text in texts):
        found.too_long += 1
        return False
    if not any(text.strip(" " + HOLE) for text in texts):
        return False
    found.texts.append(texts)
    return True


def _too_many(found: Excerpt, *, slack: float = 0.0) -> bool:
    lines, size = len(found.texts), found.texts.bytes
    return lines > SAMPLE_LINES * (1 + slack) or (lines > 1 and size > SAMPLE_BYTES * (1 + slack))


def _shrink(found: Excerpt, taken: list[int]) -> int:
    """Keep as many lines as are allowed, at least one, those of the least hashes, in their order; the least hash that is not among them."""
    hashes = np.array(taken, dtype=np.uint64)
    order = np.argsort(hashes)
    sizes = np.array([len(line) for line in found.texts.packed])
    allowed = int(np.searchsorted(np.cumsum(sizes[order]), SAMPLE_BYTES, side="right"))
    limit = hashes[order[max(1, min(SAMPLE_LINES, allowed))]]
    kept = np.flatnonzero(hashes < limit).tolist()
    taken[:] = hashes[kept].tolist()
    found.texts.keep(kept)
    found.sampled = True
    return int(limit)


def _nothing(found: Excerpt, max_bytes: int) -> str:
    whole = "the only line is" if found.lines == 1 else f"all {found.lines} lines are"
    if found.too_long:
        which = whole if found.too_long == found.lines else f"all lines with text ({found.too_long} of {found.lines}) are"
        left = "nothing is left to train the tokenizer on: raise tokenizer.max_line_bytes"
        return f"{which} longer than {max_bytes} bytes, {left}"
    return f"no text to train the tokenizer on: {f'{whole} blank' if found.lines else 'no line'}"
