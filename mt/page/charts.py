"""Charts as inline SVG, drawn by matplotlib; their colours are those of the page, light or dark, and their text is text."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from mt.page.elements import Html, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (340.0, 220.0)
"""Width and height in CSS pixels, on a phone; a wide screen shows it larger."""

# matplotlib wants numbers for colours; these stand for variables of the page, and are found again in what it writes.
INK, DIM, LINE, CARD = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04"
HUES = tuple(f"#0a0b1{number}" for number in range(1, 7))
"""The colours of what is drawn, in this order."""
_VARIABLES = {INK: "ink", DIM: "dim", LINE: "line", CARD: "card"} | {hue: f"hue-{number}" for number, hue in enumerate(HUES, start=1)}

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "axes.titlesize": 10.5,
    "axes.labelsize": 11,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "legend.fontsize": 10.5,
    "text.color": INK,
    "axes.labelcolor": DIM,
    "axes.edgecolor": LINE,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": DIM,
    "ytick.labelcolor": DIM,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "ytick.major.size": 0,
    "axes.formatter.useoffset": False,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.handlelength": 1.2,
    "legend.borderaxespad": 0.2,
}


@dataclass(frozen=True)
class Line:
    """A line of a chart; `band`, lower and upper values, is shaded behind it. Values that are no number are gaps."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None
    marked: bool = False
    """With a dot at each point: for few of them."""


@dataclass(frozen=True)
class Bars:
    """A group of bars, one for each label of the chart; `intervals` are drawn as whiskers."""

    name: str
    heights: Sequence[float]
    intervals: Sequence[tuple[float, float]] | None = None


def line_chart(lines: Sequence[Line], *, title: str, x: str = "", y: str = "", log: bool = False, zero: bool = False) -> Html:
    """Lines over a common axis; `zero` has the other axis begin there."""

    from matplotlib.ticker import LogLocator

    def draw(axes: Axes) -> None:
        for hue, line in zip(_hues(len(lines)), lines, strict=True):
            values = [value if math.isfinite(value) else math.nan for value in line.y]
            few = line.marked or sum(map(math.isfinite, values)) == 1
            axes.plot(line.x, values, color=hue, label=line.name, marker="o" if few else None, markersize=4)
            if line.band:
                axes.fill_between(line.x, *line.band, color=hue, alpha=0.18, linewidth=0)
        if log and any(value > 0 for line in lines for value in line.y if math.isfinite(value)):
            axes.set_yscale("log", subs=[])
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
        elif zero:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(x)
        axes.margins(x=0.02)
        _legend(axes, len(lines))

    return chart(draw, title=title, about=_told(lines, x=x), unit=y)


def bar_chart(labels: Sequence[str], groups: Sequence[Bars], *, title: str, x: str = "", y: str = "") -> Html:
    """Bars side by side for each label."""

    def draw(axes: Axes) -> None:
        width = 0.8 / len(groups)
        for number, (hue, bars) in enumerate(zip(_hues(len(groups)), groups, strict=True)):
            places = [place + (number - (len(groups) - 1) / 2) * width for place in range(len(labels))]
            axes.bar(places, bars.heights, width * 0.92, color=hue, label=bars.name)
            for place, (low, high) in zip(places, bars.intervals or (), strict=False):
                axes.plot((place, place), (low, high), color=INK, linewidth=1)
        axes.set_xticks(range(len(labels)), labels)
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel(x)
        if len(groups) > 1:
            axes.margins(y=0.2)  # room for the names
        _legend(axes, len(groups))

    return chart(draw, title=title, about="; ".join(f"{label}: {_values(groups, place)}" for place, label in enumerate(labels)), unit=y)


def chart(draw: Callable[[Axes], None], *, title: str, about: str, unit: str = "", size: tuple[float, float] = SIZE) -> Html:
    """Whatever `draw` puts on the axes, as an element of a page; a screen reader reads `title` and `about`, the chart's own title too."""
    with styled(salt=f"{title} {about}"):
        figure = _figure(size)
        axes = figure.add_subplot()
        figure.suptitle(title, x=0.01, horizontalalignment="left", color=INK)
        axes.set_title(unit, loc="left", color=DIM)
        draw(axes)
        written = StringIO()
        figure.savefig(written, format="svg", transparent=True)
    return _inline(written.getvalue(), title=title, about=about)


@contextmanager
def styled(*, salt: str) -> Iterator[None]:
    """Within, matplotlib draws in the style of the page, whatever settings the user has; afterwards these hold again."""
    from matplotlib import style

    with style.context(["default", {**_STYLE, "svg.hashsalt": salt}]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that its font lacks a glyph, which the browser's will have
        yield


def _figure(size: tuple[float, float]) -> Figure:
    from matplotlib.figure import Figure  # not pyplot: that keeps figures, and looks for a screen

    return Figure(figsize=(size[0] / 72, size[1] / 72), layout="constrained")


def _hues(count: int) -> list[str]:
    return [HUES[number % len(HUES)] for number in range(count)]


def _legend(axes: Axes, count: int) -> None:
    if count > 1:
        axes.legend(loc="best", ncols=2 if count > 3 else 1)


def _told(lines: Sequence[Line], *, x: str) -> str:
    """What the lines come to, in words."""
    ends = []
    for line in lines:
        if found := [(at, value) for at, value in zip(line.x, line.y, strict=True) if math.isfinite(value)]:
            ends.append(f"{line.name} from {found[0][1]:.4g} to {found[-1][1]:.4g}, {x} {found[0][0]:g} to {found[-1][0]:g}")
    return "; ".join(ends) or "no values"


def _values(groups: Sequence[Bars], place: int) -> str:
    return ", ".join(f"{bars.name} {bars.heights[place]:.4g}" for bars in groups)


def _inline(written: str, *, title: str, about: str) -> Html:
    """What matplotlib wrote, as an element within a page: without names that two charts would share, its colours those of the page."""
    svg = written[written.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->|<defs>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(?<=<g) id="[^"]*"', "", svg)
    svg = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]).replace(" \n", " "), svg)
    svg = re.sub("|".join(_VARIABLES), lambda found: f"var(--{_VARIABLES[found[0]]})", svg)
    svg = re.sub(r"<g>\s*<path [^>]*style=\"fill: none\"/>\s*</g>\n|\n(?=<)", "", svg)
    box = re.search(r'viewBox="[^"]+"', svg)
    assert box is not None
    head = f'<svg class="chart" {box[0]} role="img" xmlns:xlink="http://www.w3.org/1999/xlink" aria-label="{shown(title)}">'
    return Html(f"{head}<title>{shown(title)}</title><desc>{shown(about)}</desc>{svg[svg.index('>') + 1 :].rstrip()}")
