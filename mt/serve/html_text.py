"""HTML in pieces: text to be translated, and all else, which stays as it is, byte for byte.

Nothing is repaired, and nothing of it is ever run or fetched: what is no tag is text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

TOKEN = re.compile(
    r"""<!--.*?(?:-->|\Z)  |  <[!?][^<>]*>  |  </?[a-zA-Z](?:[^<>"']|"[^"]*"|'[^']*')*+>""",
    re.DOTALL | re.VERBOSE,
)
NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
KEPT = frozenset(("script", "style", "code", "kbd", "samp", "var", "pre", "textarea", "svg", "math", "template", "noscript", "iframe"))
"""Elements whose content is not translated."""
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
"""Elements without content."""
NOT_TRANSLATED = re.compile(r"""(?i)\stranslate\s*=\s*["']?no\b | \sclass\s*=\s*["'][^"']*\bnotranslate\b""", re.VERBOSE)


class Chunk(NamedTuple):
    """A stretch of a document, as it stands there."""

    raw: str
    text: str | None
    """What is to be translated, with character references resolved; None for what stays."""


def chunks(document: str) -> list[Chunk]:
    """The stretches of a document; put together they are the document."""
    found: list[Chunk] = []
    kept: list[str] = []  # open elements whose content stays, from the outermost one on
    place = 0
    for token in TOKEN.finditer(document):
        found += _text(document[place : token.start()], kept)
        found.append(Chunk(token[0], None))
        place = token.end()
        _follow(token[0], kept)
    return found + _text(document[place:], kept)


def _text(raw: str, kept: Sequence[str]) -> list[Chunk]:
    if not raw:
        return []
    return [Chunk(raw, None if kept or not raw.strip() else html.unescape(raw))]


def _follow(tag: str, kept: list[str]) -> None:
    """Note which elements a tag opens or closes."""
    named = NAME.match(tag)
    if named is None:
        return
    name = named[1].lower()
    if tag.startswith("</"):
        if name in kept:
            while kept.pop() != name:
                pass
    elif name not in VOID and not tag.endswith("/>") and (kept or name in KEPT or NOT_TRANSLATED.search(tag)):
        kept.append(name)


def put_together(found: Iterable[Chunk], translations: Iterable[str]) -> str:
    """The document with its texts translated, in order."""
    rest = iter(translations)
    return "".join(chunk.raw if chunk.text is None else html.escape(next(rest), quote=False) for chunk in found)
