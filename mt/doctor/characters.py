"""Characters that do not belong in a corpus: found for a whole block of lines at once, by looking each of them up in a table.

Legend: N lines, C characters of a block.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mt.page.elements import INVISIBLE

CODES = 0x110000
"""Number of code points there are."""

SUSPECTS = (
    "undecodable",
    "carriage_returns",
    "bom",
    "nul",
    "line_separators",
    "control",
    "c1_controls",
    "private_use",
    "replacement",
    "invisible",
)
"""Kinds of findings on single characters; the table holds their number here, from 1 on."""

NO_CHARACTERS = [*range(0xFDD0, 0xFDF0), *(plane + last for plane in range(0, CODES, 0x10000) for last in (0xFFFE, 0xFFFF))]
"""Code points that Unicode never gives to one: like control characters, they have no place in a text."""
# Those at which str.splitlines and others cut: VT, FF, FS, GS, RS, U+2028, U+2029. NEL, U+0085, is more often a misread ellipsis.
SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\u2028\u2029"

# UTF-8 read as Windows-1252 (or Latin-1): a letter for the first byte, then others for those from 0x80 to 0xBF. Only what can hardly be
# meant: `MAÇÃ»`, `Å…` and `café…”` are text.
_REST = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
MOJIBAKE = re.compile(
    rf"""(?<![A-ZÀ-Þ])[ÂÃ]{_REST} | (?<=[a-z])[ÄÅ]{_REST} | (?<![A-ZÀ-Þ])[ÄÅ]{_REST}(?=[a-z]) | (?:[ÎÏÐÑØÙ×]{_REST}){{2}}
    | â[\x80\x82\x84\x86€‚„†]{_REST} | ã[\x81-\x83‚ƒ]{_REST} | (?:[ä-í]{_REST}{{2}}){{2}} | ð[\x9fŸ]{_REST}{{2}}""",
    re.VERBOSE,
)


def codes_of(text: str) -> NDArray[np.uint32]:
    """The code points of a text, (C,)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


@cache
def _suspects() -> NDArray[np.uint8]:
    """For each code point the number of its kind in SUSPECTS, 0 for an ordinary one."""
    table = np.zeros(CODES, dtype=np.uint8)

    def put(kind: str, codes: slice | list[int]) -> None:
        table[codes] = SUSPECTS.index(kind) + 1

    put("control", slice(0x00, 0x20))
    put("control", [0x7F])
    put("c1_controls", slice(0x80, 0xA0))
    table[[0x09, 0x0A]] = 0
    put("control", slice(0xD800, 0xE000))  # lone surrogates
    put("control", NO_CHARACTERS)
    put("undecodable", slice(0xDC80, 0xDD00))  # Python's stand-ins for bytes
    put("private_use", slice(0xE000, 0xF900))
    put("private_use", slice(0xF0000, 0xFFFFE))
    put("private_use", slice(0x100000, 0x10FFFE))
    put("carriage_returns", [0x0D])
    put("bom", [0xFEFF])
    put("nul", [0x00])
    put("replacement", [0xFFFD])
    put("line_separators", list(map(ord, SEPARATORS)))
    put("invisible", [code for code in range(0xAD, 0x2070) if re.match(f"[{INVISIBLE}]", chr(code))])
    return table


@cache
def _mojibake_parts() -> NDArray[np.uint8]:
    """1 for letters that a garbled character may begin with, 2 for those it may go on with, 0 for others."""
    table = np.zeros(CODES, dtype=np.uint8)
    table[[ord(c) for c in "ÂÃÄÅÎÏÐÑØÙ×âãð" + "".join(map(chr, range(0xE4, 0xEE)))]] = 1
    table[[code for code in range(0x80, 0x2200) if re.match(_REST, chr(code))]] = 2
    return table


class Census(NamedTuple):
    """What a block of lines holds."""

    rows: dict[str, NDArray[np.intp]]
    """Lines with each kind of suspect, ascending; kinds that do not occur are left out."""
    characters: NDArray[np.int64]
    """How often each code point occurs, (CODES,); line feeds between the lines included."""


def census(lines: Sequence[str], *, begins: bool) -> Census:
    """Count and find characters in some lines of one side; `begins` says that the first line is the first of its file."""
    text = "\n".join(lines)
    codes = codes_of(text)
    lengths = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
    starts_N = np.cumsum(lengths + 1) - lengths - 1
    kinds = _suspects()[codes]
    places = np.flatnonzero(kinds)
    rows: dict[str, NDArray[np.intp]] = {}
    if len(places):
        row_of = np.searchsorted(starts_N, places, side="right") - 1
        kind_of = kinds[places]
        last = places == starts_N[row_of] + lengths[row_of] - 1
        line_end = last & (codes[places] == 0x0D)
        file_start = (places == 0) & (codes[places] == 0xFEFF) & begins
        rows["crlf"], rows["file_bom"] = row_of[line_end], row_of[file_start]
        for number, kind in enumerate(SUSPECTS, 1):
            rows[kind] = np.unique(row_of[(kind_of == number) & ~line_end & ~file_start])
    rows["mojibake"] = _mojibake(lines, codes, starts_N)
    if "c1_controls" in rows:
        rows["c1_controls"] = np.setdiff1d(rows["c1_controls"], rows["mojibake"])  # UTF-8 read as Latin-1 has them too
    if not unicodedata.is_normalized("NFC", text):
        rows["unnormalised"] = np.flatnonzero([not unicodedata.is_normalized("NFC", line) for line in lines])
    found = {kind: which for kind, which in rows.items() if len(which)}
    return Census(found, np.bincount(codes, minlength=CODES))


def _mojibake(lines: Sequence[str], codes: NDArray[np.uint32], starts_N: NDArray[np.int64]) -> NDArray[np.intp]:
    """Lines with UTF-8 in disguise."""
    parts = _mojibake_parts()[codes]
    places = np.flatnonzero((parts[:-1] == 1) & (parts[1:] == 2))
    suspects = np.unique(np.searchsorted(starts_N, places, side="right") - 1)
    return np.array([row for row in suspects if MOJIBAKE.search(lines[row])], dtype=np.intp)
