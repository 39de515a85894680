"""Text is text and markup is markup, wherever they go."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import text

from mt.page.blocks import Tile, facts, figure, folded, heat, listing, meter, pair, section, table, texts, tiles
from mt.page.document import POLICY, document
from mt.page.elements import NEWLINE, Html, joined, shown, tag
from tests.page.reading import Tags

EVIL = '<script>alert("x")</script><img src=x onerror=y> & $title'


def test_what_is_no_markup_is_escaped() -> None:
    assert tag("p", "a < b", tag("b", "c & d")) == "<p>a &lt; b<b>c &amp; d</b></p>"
    assert tag("a", "x", href='"/><script>', class_="dim", hidden=False, open=True, title=None) == (
        '<a href="&quot;/&gt;&lt;script&gt;" class="dim" open>x</a>'
    )
    assert joined(["<", Html("<br>")], between=NEWLINE) == "&lt;\n<br>"


def test_what_cannot_be_seen_is_shown_by_its_number() -> None:
    assert shown("a\u2028b\x1b\ud800") == "a<mark>U+2028</mark>b<mark>U+001B</mark><mark>U+D800</mark>"
    assert shown("می\u200cخواهم 👩\u200d🔧") == "می\u200cخواهم 👩\u200d🔧"  # joiners belong to the text
    assert listing("a:\n  - <b>") == "<pre>a:\n  - &lt;b&gt;</pre>"


@given(text())
def test_any_text_can_be_read_again(line: str) -> None:
    if shown(line).count("<mark>") == 0:
        assert Tags(tag("p", line)).text == line.replace("\r", "\n")
    assert set(Tags(tag("p", line, title=line)).seen) <= {"p", "mark"}


def test_no_block_lets_text_become_markup() -> None:
    blocks = (
        tiles([Tile(EVIL, EVIL, EVIL, "error")]),
        section(EVIL, about=EVIL),
        table([EVIL, EVIL], [[EVIL, EVIL]], caption=EVIL),
        facts([(EVIL, EVIL)]),
        folded(EVIL, EVIL),
        texts((EVIL, EVIL), origin=EVIL),
        pair(EVIL, EVIL, origin=EVIL),
        meter(3.0, title=EVIL),
        figure(EVIL, EVIL),
        heat([EVIL], [EVIL], [[0.5]], about=EVIL),
        listing(EVIL),
    )
    tags = Tags(document(*blocks, title=EVIL, about=EVIL))
    assert not {"script", "img"} & set(tags.seen)
    assert tags.text.count(EVIL) > 20


def test_a_page_asks_for_nothing() -> None:
    page = document("x", title="t")
    assert f'content="{POLICY}"' in page
    assert Tags(page).links == ["data:,"]
    assert all(word not in page for word in ("http:", "https:", "@import", "url("))
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_a_cell_of_a_heat_map_is_as_dark_as_its_share() -> None:
    html = heat(["Haus", "漢字"], ["a", "بيت"], [[0.25, 1.5], [float("0"), -1.0]], about="x")
    assert [html.count(f"--share: {share}") for share in ("0.25", "1.00", "0.00")] == [1, 1, 2]
    assert 'title="Haus ← a: 0.25"' in html
    assert 'dir="auto">بيت<' in html
