"""A report as a few kinds of blocks, and those as text for a terminal, as Markdown or as a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mt.page.blocks import Tile, card, figure, folded, halves, section, table, texts, tiles
from mt.page.charts import Bars, bar_chart
from mt.page.document import document
from mt.page.elements import Html, joined, tag


@dataclass(frozen=True)
class Heading:
    """Begins a section."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A sentence or two, or a list of such, one a line."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column says what the row is about. `remarks`: so many last columns are words, too."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: int = 0


@dataclass(frozen=True)
class Quotation:
    """Lines of text that belong together, each with what it is."""

    title: str
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Numbers:
    """What is to be seen at once, on a page: a number or a word, what it is of, what to add, and how to take it (note, warning, error)."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Graph:
    """Bars with whiskers, one group a name, on a page; the table that comes next stands beside it, with the same in figures."""

    title: str
    labels: tuple[str, ...]
    groups: tuple[Bars, ...]


Block = Heading | Paragraph | Table | Quotation | Numbers | Graph
NARROW = 4
"""Columns of a table that has room beside a graph."""
QUOTED = 3
"""Quotations of a section that a page shows unasked."""


def as_text(blocks: Iterable[Block]) -> str:
    """For a terminal."""
    parts = []
    for block in blocks:
        match block:
            case Numbers() | Graph():
                pass
            case Heading(text):
                parts.append(f"── {text}")
            case Paragraph(lines):
                parts.append("\n".join(lines))
            case Table(head, rows, remarks):
                parts.append("\n".join(columns([head, *rows], remarks=remarks)))
            case Quotation(title, lines):
                width = max(len(name) for name, _ in lines)
                parts.append("\n".join([title, *(f"  {name:<{width}}  {_printable(text)}" for name, text in lines)]))
    return "\n\n".join(parts) + "\n"


def _printable(text: str) -> str:
    """Text that does nothing to a terminal but appear on it."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def columns(rows: Sequence[Sequence[str]], *, remarks: int = 0) -> list[str]:
    """Rows with their cells one under the other, numbers to the right, words to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = {0, *range(len(widths) - remarks, len(widths))}
    return [
        "  ".join(f"{cell:{'<' if n in words else '>'}{width}}" for n, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def as_markdown(blocks: Iterable[Block], *, title: str, about: str) -> str:
    """For a repository or an issue; text of corpora comes out as it is, whatever signs it has in it."""
    parts = [f"# {_plain(title)}", _plain(about)]
    for block in blocks:
        match block:
            case Numbers() | Graph():
                pass
            case Heading(text):
                parts.append(f"## {_plain(text)}")
            case Paragraph(lines):
                parts.append("  \n".join(map(_plain, lines)))
            case Table(head, rows, remarks):
                numbers = len(head) - 1 - remarks
                rule = "|".join(["---", *["--:"] * numbers, *["---"] * remarks])
                parts.append("\n".join([_row(head), f"|{rule}|", *map(_row, rows)]))
            case Quotation(title, lines):
                parts.append("\n".join([f"**{_plain(title)}**", "", *(f"- *{_plain(name)}*: {_plain(text)}" for name, text in lines)]))
    return "\n\n".join(parts) + "\n"


def as_page(blocks: Iterable[Block], *, title: str, about: str) -> str:
    """For a browser."""
    content: list[Html] = []
    heading, inside, quoted = "", list[Html](), list[Html]()
    beside: Html | None = None

    def close() -> None:
        more = [folded(f"{len(quoted) - QUOTED} more", *quoted[QUOTED:])] if len(quoted) > QUOTED else []
        whole = [*inside, *quoted[:QUOTED], *more]
        if whole:
            content.append(section(heading, *whole) if heading else joined(whole))
        inside.clear()
        quoted.clear()

    for block in blocks:
        match block:
            case Heading(text):
                close()
                heading = text
            case Paragraph(lines):
                inside += (tag("p", line) for line in lines)
            case Table(head, rows, remarks):
                figures = table(head, rows, text=(0, *range(len(head) - remarks, len(head))))
                inside += [halves(beside, figures)] if beside and len(head) <= NARROW else [*([beside] if beside else []), figures]
                beside = None
            case Quotation(name, lines):
                quoted.append(card(texts(*lines, origin=name)))
            case Numbers(each):
                inside.append(tiles(each))
            case Graph(name, labels, groups):
                beside = figure(bar_chart(labels, groups, title=name))
    close()
    return document(*content, title=title, about=about)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Text in which nothing is Markdown or HTML any more."""
    return re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
