from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.serve.html_text import chunks, put_together

PARTS = ["<p>", "</p>", "<b", ">", "<br/>", "<!--", "-->", "a", " ", "&amp;", "&lt;", '"', "'", "=", "<script>", "</script>", "<", "<!x>"]


def texts(document: str) -> list[str]:
    return [chunk.text for chunk in chunks(document) if chunk.text is not None]


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_the_chunks_are_the_document(document: str) -> None:
    assert "".join(chunk.raw for chunk in chunks(document)) == document


def test_text_is_translated_and_all_else_stays() -> None:
    document = "<!doctype html>\n<p class=\"a>b\" title='x'>One &amp; two.<br>\n<!-- Three. --><b>Four</b></p>"
    assert texts(document) == ["One & two.", "Four"]
    expected = document.replace("One &amp; two.", "A &lt;b&gt;").replace("Four", "B")
    assert put_together(chunks(document), ["A <b>", "B"]) == expected


@pytest.mark.parametrize(
    "kept",
    [
        "<script>if (a < b) alert('One.')</script>",
        "<style>p > b {color: red}</style>",
        "<code>One <b>two</b></code>",
        '<p translate="no">One <i>two</i></p>',
        "<p class='x notranslate'>One</p>",
        "<textarea>One</textarea>",
    ],
)
def test_what_is_no_text_stays(kept: str) -> None:
    assert texts(f"{kept}<p>Two</p>") == ["Two"]


def test_markup_in_a_translation_is_text() -> None:
    assert put_together(chunks("<p>One</p>"), ["<script>alert(1)</script>"]) == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"


@pytest.mark.parametrize("piece", ["<", "<a ", '<a "', "<a '\"", "<!--", "</", "<b ='", "&", "<p>"])
def test_no_document_takes_long(piece: str) -> None:
    began = time.process_time()
    chunks(piece * (20_000 // len(piece)))
    assert time.process_time() - began < 2
