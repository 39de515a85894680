"""HTML in pieces: text to be translated, and all else, which stays as it is, byte for byte.

Nothing is repaired, and nothing of it is ever run or fetched: what is no tag is text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

TOKEN = re.compile(
    r"""<!--.*?(?:-->|\Z)  |  <[!?][^<>]*>  |  </?[a-zA-Z](?:[^<>"']|"[^"]*"|'[^']*')*+>""",
    re.DOTALL | re.VERBOSE,
)
NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
KEPT = frozenset(("script", "style", "code", "kbd", "samp", "var", "pre", "textarea", "svg", "math", "template", "noscript", "iframe"))
"""Elements whose content is not translated."""
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
"""Elements without content."""
INLINE = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark", "q", "s", "small")
    + ("span", "strike", "strong", "sub", "sup", "tt", "u")
)
"""Elements that mark words of a text, which goes on around them."""
NOT_TRANSLATED = re.compile(r"""(?i)\stranslate\s*=\s*["']?no\b | \sclass\s*=\s*["'][^"']*\bnotranslate\b""", re.VERBOSE)


MOST_ELEMENTS = 100
"""Of a text that goes on in them; a document with more is translated from tag to tag."""


class Chunk(NamedTuple):
    """A stretch of a document, as it stands there."""

    raw: str
    kind: Literal["text", "inline", "other"]
    """Text, a tag of an element within text, or what ends a text or is none."""

    @property
    def text(self) -> str:
        """With character references resolved; of a tag nothing."""
        return html.unescape(self.raw) if self.kind == "text" else ""


class Element(NamedTuple):
    """Words of a text that have a tag before and one after them."""

    opened: str
    closed: str
    start: int
    end: int
    """Places in the text without tags."""
    path: tuple[int, ...]
    """The numbers of the elements it is within, from the outermost one on, and its own."""


class Flow(NamedTuple):
    """Consecutive chunks: a text that is translated as one, with the elements within, or what stays."""

    chunks: list[Chunk]
    elements: list[Element]

    @property
    def text(self) -> str | None:
        """What is to be translated; None where there is nothing."""
        text = "".join(chunk.text for chunk in self.chunks)
        return text if text.strip() else None

    @property
    def raw(self) -> str:
        """As it stands in the document."""
        return "".join(chunk.raw for chunk in self.chunks)


def flows(document: str, *, together: bool) -> list[Flow]:
    """A document in texts and what stays; put together they are the document.

    `together`: text goes on in and after elements that mark words. Otherwise it ends at each tag, as it does where these are not in pairs,
    or too many.
    """
    found: list[Flow] = []
    run: list[Chunk] = []
    for chunk in (*chunks(document), Chunk("", "other")):
        if chunk.kind == "other" or not together:
            found += _flows_of(run)
            found.append(Flow([chunk], []))
            run = []
        else:
            run.append(chunk)
    return found


def _flows_of(run: list[Chunk]) -> list[Flow]:
    if not any(chunk.kind == "inline" for chunk in run) or (elements := elements_of(run)) is None:
        return [Flow([chunk], []) for chunk in run]
    return [Flow(run, elements)]


def elements_of(run: Sequence[Chunk]) -> list[Element] | None:
    """The elements of a text, outer ones first; None where their tags are not in pairs, or too many."""
    if sum(chunk.kind == "inline" for chunk in run) > 2 * MOST_ELEMENTS:
        return None
    opened: list[tuple[str, str, int, int]] = []
    found: list[Element] = []
    place = number = 0
    for chunk in run:
        place += len(chunk.text)
        if chunk.kind != "inline":
            continue
        name = name_of(chunk.raw)
        if not chunk.raw.startswith("</"):
            opened.append((name, chunk.raw, place, number))
            number += 1
        elif opened and opened[-1][0] == name:
            path = tuple(one[3] for one in opened)
            _, tag, start, _ = opened.pop()
            found.append(Element(tag, chunk.raw, start, place, path))
        else:
            return None
    return None if opened else sorted(found, key=lambda one: one.path)


def chunks(document: str) -> Iterator[Chunk]:
    """The stretches of a document between its tags, and the tags."""
    kept: list[str] = []  # open elements whose content stays, from the outermost one on
    place = 0
    for token in TOKEN.finditer(document):
        if text := document[place : token.start()]:
            yield Chunk(text, "other" if kept else "text")
        place, tag = token.end(), token[0]
        within = bool(kept)
        _follow(tag, kept)
        inline = name_of(tag) in INLINE and not (within or kept or tag.endswith("/>"))
        yield Chunk(tag, "inline" if inline else "other")
    if text := document[place:]:
        yield Chunk(text, "other" if kept else "text")


def name_of(tag: str) -> str:
    """The name of an element; empty for a comment or a declaration."""
    found = NAME.match(tag)
    return found[1].lower() if found else ""


def _follow(tag: str, kept: list[str]) -> None:
    """Note which elements a tag opens or closes."""
    name = name_of(tag)
    if tag.startswith("</"):
        if name in kept:
            while kept.pop() != name:
                pass
    elif name and name not in VOID and not tag.endswith("/>") and (kept or name in KEPT or NOT_TRANSLATED.search(tag)):
        kept.append(name)


def escaped(text: str) -> str:
    """Text as it stands between tags."""
    return html.escape(text, quote=False)
