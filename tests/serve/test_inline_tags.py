from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.serve.details import Details, SourceToken, Token
from mt.serve.html_text import elements_of, escaped, flows
from mt.serve.inline_tags import Word, words_of, wrapped


def tagged(document: str, text: str, links: dict[str, str]) -> str:
    """A document that is one text, translated so; each word of the translation looks at the word of the source that it is told to."""
    (flow,) = [flow for flow in flows(document, together=True) if flow.text]
    source = flow.text or ""
    words = [Word(found.start(), found.end(), source.index(links.get(found[0], found[0]))) for found in re.finditer(r"\w+|\S", text)]
    return wrapped(text, flow.elements, words, source=source)


HELLO = {"Hallo": "Hello", "Welt": "world", "rote": "red", "Haus": "house", "das": "the", "Klein": "small"}


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("Hello <b>world</b>!", "Hallo Welt!", "Hallo <b>Welt</b>!"),
        ("<b>Hello</b> world!", "Welt Hallo!", "Welt <b>Hallo</b>!"),
        ("<b>Hello world!</b>", "Hallo!", "<b>Hallo!</b>"),
        ("the <i>red <b>house</b></i>", "das Haus rote", "das <i><b>Haus</b> rote</i>"),
        ("<i>the</i> <b>red</b> house", "rote das Haus", "<b>rote</b> <i>das</i> Haus"),
        ("Hello <b>big</b> world", "Hallo Welt", "Hallo<b></b> Welt"),
        ('the <a href="x">house</a> & more', "das Haus & more", 'das <a href="x">Haus</a> &amp; more'),
    ],
)
def test_tags_go_where_the_words_go(document: str, text: str, expected: str) -> None:
    assert tagged(document, text, HELLO) == expected


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> str:
    inner = st.just("a") | st.just(" ") | (st.nothing() if depth == 0 else nested(depth - 1))
    name = draw(st.sampled_from("biu"))
    return f"<{name}>{''.join(draw(st.lists(inner, max_size=3)))}</{name}>"


WORDS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 12)), max_size=6)


@given(st.lists(nested() | st.just("a "), min_size=1, max_size=4).map("".join), WORDS)
def test_all_tags_are_there_in_pairs_and_the_text_is_as_it_was(document: str, places: list[tuple[int, int, int]]) -> None:
    run = [chunk for flow in flows(document, together=True) for chunk in flow.chunks if chunk.raw]
    elements = elements_of(run)
    assert elements is not None
    text = "x <y z&q w"
    words = [Word(start, min(start + length, len(text)), source) for start, length, source in places]
    found = wrapped(text, elements, words, source="".join(chunk.text for chunk in run))
    assert re.sub(r"</?[biu]>", "", found) == escaped(text)
    assert sorted(re.findall(r"</?[biu]>", found)) == sorted(re.findall(r"</?[biu]>", document))
    opened: list[str] = []
    for slash, name in re.findall(r"<(/?)([biu])>", found):
        if slash:
            assert opened.pop() == name
        else:
            opened.append(name)


def test_words_are_pieces_without_a_space_between() -> None:
    tokens = [Token("Wel", 0, 3, 1.0), Token("t", 3, 4, 1.0), Token("!", 4, 5, 1.0), Token("Ja", 6, 8, 1.0)]
    sources = [SourceToken("world", 0, 5), SourceToken("!", 5, 6), SourceToken("yes", 7, 10)]
    details = Details(tokens, sources, [(1, 0, 0.6), (0, 0, 0.4), (0, 1, 0.9), (1, 2, 1.0), (2, 3, 1.0)])
    assert words_of(details, 100, 10) == [Word(10, 14, 100), Word(14, 15, 105), Word(16, 18, 107)]
