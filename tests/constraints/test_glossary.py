"""Which terms of a glossary a source text has."""

from __future__ import annotations

import pytest

from mt.constraints.glossary import Glossary, Term
from mt.errors import DecodeError

ENTRIES = {"machine": "Maschine", "machine translation": "MÜ", "US": "USA", "c++": "C++", "翻译": "translation", "the end": "Ende"}
GLOSSARY = Glossary(Term(*entry) for entry in ENTRIES.items())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a machine.", ["machine"]),
        ("Machine translation by MACHINE", ["machine translation", "machine"]),
        ("machines, submachine", []),
        ("between us", []),
        ("US-based", ["US"]),
        ("in c++, or C++17", ["c++"]),
        ("机器翻译很好", ["翻译"]),
        ("The  END", ["the end"]),
        ("machine and machine", ["machine"]),
        ("", []),
    ],
)
def test_whole_words_the_longest_first_with_capitals_as_written(text: str, found: list[str]) -> None:
    assert [term.source for term in GLOSSARY.terms(text)] == found
    assert all(term.target == ENTRIES[term.source] for term in GLOSSARY.terms(text))


def test_an_empty_glossary_has_nothing() -> None:
    assert Glossary([]).terms("anything") == []


def test_a_blank_term_is_refused() -> None:
    with pytest.raises(DecodeError, match="give a term and its translation"):
        Glossary([Term(" ", "x")])
