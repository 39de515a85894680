"""Text in sentences, each with the white space before it, and text made of them again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sentencex

from mt.decode.parts import spaced

LONGEST = 4000
"""Characters of a line that are cut into sentences at a time: that takes time with the square of them, and holds up all else."""


class Sentence(NamedTuple):
    """What is translated at a time."""

    before: str
    """White space that stands before it: line breaks, the indent of a paragraph, what parts it from the sentence before."""
    text: str
    """Without white space at either end, and without line breaks."""


class Layout(NamedTuple):
    """A text: its sentences, and the white space after the last."""

    sentences: list[Sentence]
    after: str


def without_surrogates(text: str) -> str:
    """The text with halves of surrogate pairs, which no UTF-8 can hold, put together, or where one is alone as U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def laid_out(text: str, lang: str | None) -> Layout:
    """The sentences of a text in a language: none goes beyond a line, and put together with what stands before and after they are the text.

    Where sentences end is told by sentencex for the language; one that it does not know is cut as English is.
    """
    text = without_surrogates(text)
    sentences: list[Sentence] = []
    blank = ""
    for line in _lines(text):
        for part in _parts(line, lang):
            core = part.strip()
            before, _, after = part.partition(core) if core else (part, "", "")
            if core:
                sentences.append(Sentence(blank + before, core))
            blank = after if core else blank + before
    return Layout(sentences, blank)


def _lines(text: str) -> Iterator[str]:
    """Each with its end; a carriage return is white space like any other."""
    return (match[0] for match in re.finditer(r"[^\n]*\n|[^\n]+", text))


def _parts(line: str, lang: str | None) -> Sequence[str]:
    """The sentences of a line, with the space after each; together they are the line."""
    body = line.replace("\r", " ").replace("\n", " ")  # to the splitter these are paragraphs
    if not body.strip():
        return [line]
    code = lang.replace("_", "-").partition("-")[0].lower() if lang else "en"
    parts, start = [], 0
    while start < len(line):
        for part in _begun(body[start : start + LONGEST], code, whole=start + LONGEST >= len(body)):
            parts.append(line[start : start + len(part)])
            start += len(part)
    return parts


def _begun(stretch: str, code: str, *, whole: bool) -> Sequence[str]:
    """The sentences of a stretch of a line; unless it is `whole` the last may go on: it is left out, or cut where it is the only one."""
    found: Sequence[str] = sentencex.segment(code, stretch)
    if "".join(found) != stretch:
        found = [stretch]
    if whole:
        return found
    if any(found[:-1]):
        return found[:-1]
    return [stretch[: stretch.rfind(" ") + 1] or stretch]


def put_together(layout: Layout, translations: Sequence[str], *, lang: str | None) -> str:
    """The text with its sentences translated, to a language that has spaces between them or not; other white space stays."""
    parts = []
    for number, (sentence, translation) in enumerate(zip(layout.sentences, translations, strict=True)):
        parts += [gap(sentence.before, first=number == 0, lang=lang), translation]
    return "".join([*parts, layout.after])


def gap(before: str, *, first: bool, lang: str | None) -> str:
    """What stands before a translation where this stands before its sentence."""
    if first or "\n" in before:
        return before
    if spaced(lang):
        return before or " "
    return "" if before == " " else before
