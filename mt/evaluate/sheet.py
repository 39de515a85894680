"""What scores say, as the blocks of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mt.evaluate.layout import Block, Heading, Numbers, Paragraph, Quotation, Table
from mt.evaluate.metrics import MetricScore, Scores, closeness_by
from mt.formats.pairs import counted
from mt.page.blocks import Tile

GROUPS = 20
"""Groups that a terminal shows; a report and JSON have all."""
WORST = 20
"""Lines of the lowest score that a report shows."""


class Scored(NamedTuple):
    """A test set with its scores; `name` is empty where there is only one."""

    name: str
    scores: Scores
    hypotheses: Sequence[str]
    references: Sequence[Sequence[str]]
    sources: Sequence[str] | None
    lang: str | None


def sheet(sets: Sequence[Scored]) -> Iterator[Block]:
    """All sets, one after the other."""
    for one in sets:
        if one.name:
            yield Heading(f"{one.name} ({counted(one.scores.lines, 'line')})")
        yield Numbers(tuple(_tile(score) for score in one.scores.metrics))
        rows = tuple((score.name, f"{score.score:.2f}", span(score), score.signature) for score in one.scores.metrics)
        yield Table(("", "score", "95 % interval", "signature"), rows, remarks=1)
        if one.scores.warnings:
            yield Paragraph(tuple(f"Warning: {text}" for text in one.scores.warnings))
        if one.scores.groups:
            yield Heading("By group" if not one.name else f"{one.name}, by group")
            yield groups(one.scores)
        yield Heading("Lines of the lowest chrF2" if not one.name else f"{one.name}, lines of the lowest chrF2")
        yield from _worst(one)


def groups(scores: Scores, *, most: int | None = None) -> Table:
    """A row for each label, the largest first where not all are shown, and one for the mean of all of them."""
    names = [score.name for score in scores.metrics if score.metric in scores.groups[0].scores]
    shown = scores.groups if most is None or len(scores.groups) <= most else sorted(scores.groups, key=lambda one: -one.lines)[:most]
    rows = [(one.label, str(one.lines), *(f"{value:.2f}" for value in one.scores.values())) for one in shown]
    columns = zip(*(one.scores.values() for one in scores.groups), strict=True)
    mean = (f"mean of {len(scores.groups)}", "", *(f"{sum(column) / len(column):.2f}" for column in columns))
    return Table(("group", "lines", *names), (*rows, mean))


def span(score: MetricScore) -> str:
    """The interval in brackets."""
    low, high = score.interval or (score.score, score.score)
    return f"[{low:.2f}, {high:.2f}]"


def _tile(score: MetricScore) -> Tile:
    return Tile(f"{score.score:.2f}", score.name, span(score))


def _worst(one: Scored) -> Iterator[Quotation]:
    """The lines whose best sentence score with any reference is lowest."""
    closeness = closeness_by("chrf", lang=one.lang)
    found = [max(closeness(line, right) for right in rights) for line, *rights in zip(one.hypotheses, *one.references, strict=True)]
    for line in sorted(range(len(found)), key=found.__getitem__)[:WORST]:
        source = [("source", one.sources[line])] if one.sources else []
        references = [("reference", lines[line]) for lines in one.references]
        yield Quotation(f"line {line + 1}, chrF2 {found[line]:.0f}", (*source, *references, ("translation", one.hypotheses[line])))
