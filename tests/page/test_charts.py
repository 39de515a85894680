"""Charts are inline SVG that belongs to its page: same colours, text as text, names of its own, the same each time."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest

from mt.page.charts import Bars, Line, bar_chart, line_chart
from mt.page.document import document
from tests.page.reading import Tags


def losses(title: str = "Loss") -> str:
    return line_chart(
        [
            Line("training", [1, 2, 3], [3.0, 2.0, 1.5], band=([2.0, 1.5, 1.0], [4.0, 3.0, 2.0])),
            Line("dev", [1, 3], [2.5, 1.75], marked=True),
        ],
        title=title,
        x="updates",
        y="nats",
    )


def test_it_is_one_element_whose_words_can_be_read() -> None:
    svg = losses("<b>Loss</b> of $x$")
    root = ET.fromstring(svg)
    assert root.tag == "svg"
    words = {"".join(text.itertext()).strip() for text in root.iter("text")}
    assert {"<b>Loss</b> of $x$", "updates", "nats", "training", "dev"} <= words
    assert root.findtext("title") == "<b>Loss</b> of $x$"
    assert root.findtext("desc") == "training from 3 to 1.5, updates 1 to 3; dev from 2.5 to 1.75, updates 1 to 3"


def test_all_its_colours_are_those_of_the_page() -> None:
    svg = losses() + bar_chart(["1–5", "> 5"], [Bars("BLEU", [3.0, 2.0], [(2.0, 4.0), (1.0, 3.0)])], title="By length")
    assert re.findall(r"#[0-9a-f]{6}\b|rgb", re.sub(r"(?:url\(|href=\")#\w+", "", svg)) == []
    assert {"var(--ink)", "var(--dim)", "var(--line)", "var(--hue-1)", "var(--hue-2)"} <= set(re.findall(r"var\(--[\w-]+\)", svg))


def test_the_same_chart_is_the_same_text_and_no_name_is_used_twice() -> None:
    assert losses() == losses()
    tags = Tags(document(losses(), losses("Other"), title="x"))
    assert len(tags.ids) == len(set(tags.ids)) > 0
    assert all(link.removeprefix("#") in tags.ids for link in tags.links if link.startswith("#"))


@pytest.mark.parametrize("values", [[], [math.nan], [1.0], [math.nan, math.inf, 1.0], [0.0, 0.0], [-1.0, 1e30]])
@pytest.mark.parametrize("log", [False, True])
def test_whatever_the_values_there_is_a_chart(values: list[float], log: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = line_chart([Line("漢字 العربية", range(len(values)), values)], title="漢字", log=log)
    assert "漢字" in Tags(svg).text


def test_the_settings_of_the_user_are_left_alone() -> None:
    with mpl.rc_context({"svg.fonttype": "path", "lines.linewidth": 9.0, "svg.hashsalt": "mine"}):
        before = dict(mpl.rcParams)
        assert losses() == losses()
        assert dict(mpl.rcParams) == before
        mine = losses()
    assert mine == losses()


def test_no_screen_is_looked_for() -> None:
    drawn = "from mt.page.charts import *; line_chart([Line('x', [1], [1.0])], title='x')"
    subprocess.run([sys.executable, "-c", f"import sys; {drawn}; assert 'matplotlib.pyplot' not in sys.modules"], check=True)
