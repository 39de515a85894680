"""What pages are put together from. Text is escaped unless it is `Html`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mt.page.elements import NEWLINE, Html, joined, tag


class Tile(NamedTuple):
    """A number to be seen at once, what it counts, and perhaps a line below; `kind` colours it: error, warning, note."""

    number: str
    name: str
    below: str = ""
    kind: str = ""


def tiles(each: Iterable[Tile]) -> Html:
    """Numbers in a row."""
    return tag("div", *map(_tile, each), class_="tiles")


def _tile(tile: Tile) -> Html:
    below = tag("small", tile.below) if tile.below else ""
    return tag("div", tag("b", tile.number, class_=tile.kind or None), tag("span", tile.name), below, class_="tile")


def section(heading: str, *content: str, about: str = "", name: str | None = None) -> Html:
    """A heading, perhaps a line about what follows, and what follows. `name` is what a link calls it."""
    return tag("section", tag("h2", heading), tag("p", about, class_="dim") if about else "", *content, id=name)


def card(*content: str) -> Html:
    """Something in a box."""
    return tag("div", *content, class_="card")


def grid(*content: str) -> Html:
    """Charts or cards side by side, as many as there is room for."""
    return tag("div", *content, class_="grid")


def halves(one: str, other: str) -> Html:
    """Two things side by side, one above the other on a phone."""
    return tag("div", one, other, class_="halves")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text: Iterable[int] = (0,), caption: str | None = None) -> Html:
    """A table that scrolls sideways where it is too wide. Numbers stand to the right, but for the columns of `text`."""
    left = frozenset(text)

    def cells(name: str, row: Sequence[str]) -> Html:
        more = {"scope": "col"} if name == "th" else {}
        return tag("tr", *(tag(name, cell, class_="text" if place in left else None, **more) for place, cell in enumerate(row)))

    top = tag("caption", caption) if caption else ""
    body = joined((cells("td", row) for row in rows), between=NEWLINE)
    inside = tag("table", top, tag("thead", cells("th", head)), tag("tbody", body))
    return tag("div", inside, class_="wide", tabindex="0", role="region", aria_label=caption or head[0])


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names with their values, in two columns."""
    return tag("dl", *(joined((tag("dt", name), tag("dd", value))) for name, value in pairs), class_="facts card")


def folded(summary: str, *content: str, kind: str = "card", opened: bool = False) -> Html:
    """Something that opens on a click."""
    return tag("details", tag("summary", summary), tag("div", *content, class_="inside"), class_=kind, open=opened)


def listing(text: str) -> Html:
    """Lines of a file, as they stand."""
    return tag("pre", joined(text.split("\n"), between=NEWLINE))


def texts(*lines: tuple[str, str], origin: str = "") -> Html:
    """Texts that belong together, in any language and direction, each with what it is: source, reference …"""
    top = tag("span", origin, class_="origin") if origin else ""
    each = (tag("p", tag("i", what) if what else "", tag("span", text, dir="auto")) for what, text in lines)
    return tag("div", top, *each, class_="texts")


def pair(source: str, target: str, *, origin: str = "") -> Html:
    """Two texts side by side, one above the other on a phone."""
    sides = (tag("span", side, dir="auto") for side in (source, target))
    return tag("div", tag("span", origin, class_="origin") if origin else "", *sides, class_="pair")


def meter(share: float, *, title: str) -> Html:
    """A thin bar for a part of a whole."""
    return tag("div", tag("i", style=f"width: {100 * min(max(share, 0.0), 1.0):.2f}%"), class_="meter", title=title)


def figure(content: str, caption: str = "") -> Html:
    """A chart or a heat map in a box, with what it shows."""
    return tag("figure", content, tag("figcaption", caption) if caption else "", class_="card")


def heat(rows: Sequence[str], columns: Sequence[str], shares: Sequence[Sequence[float]], *, about: str) -> Html:
    """A heat map of numbers from 0 to 1, one row for each text in `rows`: a table, so that a browser sets text of any script."""
    head = tag("tr", tag("td"), *(tag("th", tag("span", text, dir="auto"), scope="col") for text in columns))
    body = [
        tag(
            "tr",
            tag("th", text, scope="row", dir="auto"),
            *(_heated(share, text, column) for share, column in zip(row, columns, strict=True)),
        )
        for text, row in zip(rows, shares, strict=True)
    ]
    inside = tag("table", tag("thead", head), tag("tbody", joined(body, between=NEWLINE)))
    return tag("div", inside, class_="heat", tabindex="0", role="region", aria_label=about)


def _heated(share: float, row: str, column: str) -> Html:
    return tag("td", style=f"--share: {min(max(share, 0.0), 1.0):.2f}", title=f"{row} ← {column}: {share:.2f}")
