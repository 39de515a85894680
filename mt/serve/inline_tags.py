"""Tags around words of a source, put around the words of the translation that look at them.

The idea is that of Bergamot's and of most translation services: the model sees text without tags, and its attention tells where they go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mt.serve.details import Details
from mt.serve.html_text import Element, escaped


class Word(NamedTuple):
    """Part of a translation, and the character of the source it looks at most."""

    start: int
    end: int
    source: int


class Span(NamedTuple):
    """Where an element goes in a translation."""

    start: int
    end: int
    element: Element


def words_of(details: Details, source_start: int, start: int) -> list[Word]:
    """The words of a sentence, told that its source and its translation begin at these places of their texts.

    Pieces without a space between them are a word, but for punctuation, which stands by itself.
    """
    grouped: list[list[int]] = []
    for place, token in enumerate(details.tokens):
        before = details.tokens[place - 1] if place else None
        together = before and before.end == token.start and _is_word(before.text) and _is_word(token.text)
        if not together:
            grouped.append([])
        grouped[-1].append(place)
    of_token = [number for number, own in enumerate(grouped) for _ in own]
    weights: list[dict[int, float]] = [{} for _ in grouped]
    for source, target, weight in details.alignment:
        own = weights[of_token[target]]
        own[source] = own.get(source, 0.0) + weight
    return [
        Word(
            start + details.tokens[own[0]].start,
            start + details.tokens[own[-1]].end,
            source_start + details.source_tokens[max(shares, key=shares.__getitem__)].start,
        )
        for own, shares in zip(grouped, weights, strict=True)
        if shares
    ]


def _is_word(text: str) -> bool:
    return text[:1].isalnum()


def wrapped(text: str, elements: Sequence[Element], words: Sequence[Word], *, source: str) -> str:
    """A translation as HTML, each element around the words that look at what it marks in the source, none across another.

    What marks all of the source marks all of the translation; what no word looks at is put, with nothing in it, after the words before it.
    """
    spans: list[Span] = []
    whole = len(source.rstrip())
    for element in sorted(elements, key=lambda one: -len(one.path)):  # from within
        inner = [span for span in spans if _within(span.element, element)]
        own = [word for word in words if element.start <= word.source < element.end]
        starts = [word.start for word in own] + [span.start for span in inner]
        ends = [word.end for word in own] + [span.end for span in inner]
        if not source[: element.start].strip() and element.end >= whole:
            starts, ends = [*starts, len(text) - len(text.lstrip())], [*ends, len(text.rstrip())]
        if not starts:
            before = [word.end for word in words if word.source < element.start]
            starts = ends = [max(before, default=0)]
        spans.append(Span(min(starts), max(ends), element))
    return _written(text, _apart(spans, low=0, high=len(text)), 0, len(text))


def _within(one: Element, other: Element) -> bool:
    return len(one.path) > len(other.path) and one.path[: len(other.path)] == other.path


class Node(NamedTuple):
    """An element with those within it."""

    span: Span
    within: list[Node]


def _apart(spans: Iterable[Span], *, low: int, high: int) -> list[Node]:
    """Spans as a tree: those side by side follow each other, where two overlap the later begins where the earlier ends."""
    spans = list(spans)
    outermost = min((len(span.element.path) for span in spans), default=0)
    beside = [span for span in spans if len(span.element.path) == outermost]
    nodes = []
    for span in sorted(beside, key=lambda span: (span.start, span.end, span.element.path)):
        start = min(max(span.start, low), high)
        end = min(max(span.end, start), high)
        inner = [one for one in spans if _within(one.element, span.element)]
        nodes.append(Node(Span(start, end, span.element), _apart(inner, low=start, high=end)))
        low = end
    return nodes


def _written(text: str, nodes: Sequence[Node], start: int, end: int) -> str:
    parts = []
    for (first, last, element), within in nodes:
        parts += [escaped(text[start:first]), element.opened, _written(text, within, first, last), element.closed]
        start = last
    return "".join([*parts, escaped(text[start:end])])
