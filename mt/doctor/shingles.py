"""Lines as bags of hashed shingles, made for a whole block at once, for finding lines that are nearly the same.

A *unit* is a word in small letters; in scripts written without spaces (Han, Kana, Thai, Lao, Myanmar, Khmer, Tibetan) each character is
one. Punctuation, symbols and spaces are no units and only separate them. A *shingle* is a unit, or two in a row. Hashes have 64 bits.

Legend: N lines, C characters, U units, G shingles of a block.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mt.doctor.characters import CODES, codes_of

Hashes = NDArray[np.uint64]
Rows = NDArray[np.intp]

LONGEST = 20_000
"""Characters of a line that are looked at: beyond them nothing is a sentence."""

_UNSPACED = re.compile(
    "[\u0e01-\u0e5b\u0e81-\u0fff\u1000-\u109f\u1780-\u17d3\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_LAST = 0x32400  # no letters beyond, nor marks that belong to letters

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse modulo 2^64
_UNBASE = np.uint64(pow(int(_BASE), -1, 2**64))


class Shingles(NamedTuple):
    """The shingles of some lines."""

    text_N: Hashes
    """Hash of each line's units in order: equal for lines that differ in case, punctuation and spacing only; 0 where there are no units."""
    sizes_N: Rows
    """How many shingles each line has."""
    rows_G: Rows
    """The line of each shingle: ascending for the units, then ascending again for the pairs of units."""
    hashes_G: Hashes
    """The shingles."""

    def only(self, wanted_N: NDArray[np.bool_]) -> Shingles:
        """Those of some lines, counted anew."""
        wanted_G = wanted_N[self.rows_G]
        rows_G = (np.cumsum(wanted_N) - 1)[self.rows_G[wanted_G]]
        return Shingles(self.text_N[wanted_N], self.sizes_N[wanted_N], rows_G, self.hashes_G[wanted_G])

    def as_sets(self) -> Shingles:
        """The same line by line, and with another hash for each repetition of a shingle: a bag is then a set, and so are shared parts."""
        order = np.lexsort((self.hashes_G, self.rows_G))
        rows, hashes = self.rows_G[order], self.hashes_G[order]
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (rows[1:] != rows[:-1]) | (hashes[1:] != hashes[:-1])
        places = np.arange(len(rows))
        repetition = places - np.maximum.accumulate(np.where(new, places, 0))
        hashes = np.where(new, hashes, mixed(hashes + repetition.astype(np.uint64) * _BASE))
        return Shingles(self.text_N, self.sizes_N, rows, hashes)

    def by_row(self) -> list[list[int]]:
        """The shingles of each line, of what `as_sets` has put in order."""
        hashes = self.hashes_G.tolist()
        ends = np.cumsum(self.sizes_N).tolist()
        return [hashes[end - size : end] for end, size in zip(ends, self.sizes_N.tolist(), strict=True)]


def shingles(lines: Sequence[str]) -> Shingles:
    """The shingles of lines without line feeds."""
    codes = codes_of("\n".join([line[:LONGEST] for line in lines]) + "\n")
    folded, kinds = _tables()
    kinds_C = kinds[codes]
    in_word = kinds_C == 1
    alone = kinds_C == 2
    joined = in_word[1:] & in_word[:-1]  # with the character before
    begins = in_word | alone
    ends = begins.copy()
    begins[1:] &= ~joined
    ends[:-1] &= ~joined
    starts_U, ends_U = np.flatnonzero(begins), np.flatnonzero(ends) + 1
    rows_U = np.cumsum(codes == 0x0A)[starts_U]
    units_U = mixed(_hashed(folded[codes], starts_U, ends_U))

    count = len(lines)
    units_N = np.bincount(rows_U, minlength=count)
    ends_N = np.cumsum(units_N)
    text_N = mixed(_hashed(units_U, ends_N - units_N, ends_N))
    text_N[units_N == 0] = 0
    pairs = rows_U[1:] == rows_U[:-1]
    two_U = mixed(units_U[:-1] * _BASE + units_U[1:])[pairs]
    rows_G = np.concatenate([rows_U, rows_U[1:][pairs]])
    sizes_N = np.maximum(2 * units_N - 1, 0)
    return Shingles(text_N, sizes_N, rows_G, np.concatenate([units_U, two_U]))


def _hashed(values: NDArray[np.unsignedinteger], starts: Rows, ends: Rows) -> Hashes:
    """A polynomial in _BASE over values[start:end] of each, modulo 2^64: differences of a running sum, shifted back to exponent 0."""
    powers, inverses = _powers(len(values) + 1)
    sums = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum((values.astype(np.uint64) + np.uint64(1)) * powers[: len(values)], out=sums[1:])
    return (sums[ends] - sums[starts]) * inverses[starts]


_POWERS = [np.ones(1, dtype=np.uint64), np.ones(1, dtype=np.uint64)]


def _powers(count: int) -> list[Hashes]:
    """At least the first `count` powers of _BASE and of its inverse; kept, as every block needs them."""
    if len(_POWERS[0]) < count:
        exponents = 1 << (count - 1).bit_length()
        for which, base in enumerate((_BASE, _UNBASE)):
            factors = np.full(exponents, base, dtype=np.uint64)
            factors[0] = 1
            _POWERS[which] = np.cumprod(factors)
    return _POWERS


def mixed(hashes: Hashes) -> Hashes:
    """Hashes whose every bit depends on all bits (the finaliser of SplitMix64)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


@cache
def _tables() -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """For each code point the one it counts as, and its kind: 1 in a word, 2 a unit by itself, 0 neither."""
    folded = np.arange(CODES, dtype=np.uint32)
    kinds = np.zeros(CODES, dtype=np.uint8)
    for code in range(_LAST):
        character = chr(code)
        if unicodedata.category(character)[0] not in "LMN":
            continue
        kinds[code] = 2 if _UNSPACED.match(character) else 1
        plain = unicodedata.normalize("NFKC", character).lower()
        if len(plain) == 1:
            folded[code] = ord(plain)
    return folded, kinds
