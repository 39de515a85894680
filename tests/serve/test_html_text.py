from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.serve.html_text import flows

PARTS = ["<p>", "</p>", "<b", ">", "<br/>", "<!--", "-->", "a", " ", "&amp;", "&lt;", '"', "'", "=", "<script>", "</script>", "<", "<!x>"]


def texts(document: str) -> list[str]:
    return [text for flow in flows(document, together=False) if (text := flow.text) is not None]


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_the_flows_are_the_document(document: str) -> None:
    for together in False, True:
        assert "".join(flow.raw for flow in flows(document, together=together)) == document


def test_text_goes_on_in_elements_that_mark_words() -> None:
    document = "<p>One &amp; <b>two</b> <i>three</i>.<br>Four <code>x</code> five.</p>"
    found = flows(document, together=True)
    assert [flow.text for flow in found if flow.text] == ["One & two three.", "Four ", " five."]
    (flow,) = [flow for flow in found if flow.elements]
    text = flow.text or ""
    assert [(text[one.start : one.end], one.opened) for one in flow.elements] == [("two", "<b>"), ("three", "<i>")]
    assert texts(document) == ["One & ", "two", "three", ".", "Four ", " five."]


@pytest.mark.parametrize("document", ["One</b> two", "<b>One", "<b>One <i>two</b></i>", "<b>One</i>", "<b>" * 2000 + "x" + "</b>" * 2000])
def test_tags_that_are_no_pairs_end_a_text(document: str) -> None:
    assert not any(flow.elements for flow in flows(document, together=True))


@pytest.mark.parametrize(
    "kept",
    [
        "<script>if (a < b) alert('One.')</script>",
        "<style>p > b {color: red}</style>",
        "<code>One <b>two</b></code>",
        '<p translate="no">One <i>two</i></p>',
        "<span class='notranslate'>One</span>",
        "<p class='x notranslate'>One</p>",
        "<textarea>One</textarea>",
    ],
)
def test_what_is_no_text_stays(kept: str) -> None:
    assert texts(f"{kept}<p>Two</p>") == ["Two"]


@pytest.mark.parametrize("piece", ["<", "<a ", '<a "', "<a '\"", "<!--", "</", "<b ='", "&", "<p>", "<b>", "<b>x</b>"])
def test_no_document_takes_long(piece: str) -> None:
    began = time.process_time()
    flows(piece * (20_000 // len(piece)), together=True)
    assert time.process_time() - began < 2
