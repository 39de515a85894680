"""How phrases are spelled in the pieces of a real tokenizer."""

from __future__ import annotations

import pytest

from mt.config.schema import TokenizerConfig
from mt.constraints.control import Control, Wish
from mt.constraints.spelling import Speller, cases, ways, within
from mt.tokenizer.fit import fit
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests import toy

WORDS = sorted({word for line in toy.sentences(20, seed=2) for word in line.split() if word.isalpha()})


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "model"
    fit(toy.sentences(200, seed=1), path, TokenizerConfig(vocab_size=60, byte_fallback=False), seed=1)
    return Tokenizer.load(path)


def test_a_phrase_is_spelled_after_a_space_and_within(tokenizer: Tokenizer) -> None:
    for phrase in (*WORDS, f"{WORDS[0]} {WORDS[1]}"):
        spaced, joined = ways(phrase, tokenizer)
        assert list(spaced) == tokenizer.encode(phrase)
        assert tokenizer.pieces(spaced)[0].startswith("\u2581")
        assert "".join(tokenizer.pieces(joined)).replace("\u2581", " ") == phrase


@pytest.mark.parametrize("phrase", ["", " ", "漢字", f"Ä{WORDS[0]}", f"{WORDS[0]} 漢"])
def test_what_has_no_pieces_has_no_spelling(tokenizer: Tokenizer, phrase: str) -> None:
    assert ways(phrase, tokenizer) == []


def test_a_phrase_that_contains_a_banned_one_is_not_asked_for(tokenizer: Tokenizer) -> None:
    speller = Speller(Control(banned=[WORDS[0]]), Tokenizers(tokenizer, tokenizer), spaced=True)
    phrases = (f"{WORDS[1]} {WORDS[0]}", WORDS[2], WORDS[2], "漢字")
    orders = speller.orders([Wish("", phrases)])
    assert orders.required == [[tuple(ways(WORDS[2], tokenizer))]]
    assert not speller.obeyed(WORDS[2], Wish("", phrases))
    assert speller.obeyed(f"x {WORDS[2]} y", Wish("", (WORDS[2],)))


def test_where_words_do_not_stand_apart_phrases_are_written_without_a_space(tokenizer: Tokenizer) -> None:
    speller = Speller(Control(), Tokenizers(tokenizer, tokenizer), spaced=False)
    ((phrase,),) = speller.orders([Wish("", (WORDS[0],))]).required
    assert phrase == tuple(ways(WORDS[0], tokenizer)[::-1])


def test_a_prefix_goes_as_far_as_there_are_pieces(tokenizer: Tokenizer) -> None:
    speller = Speller(Control(), Tokenizers(tokenizer, tokenizer), spaced=True)
    ids = speller.prefix(f"{WORDS[0]} 漢 {WORDS[1]}")
    assert tokenizer.decode(ids).strip() == WORDS[0]
    assert not speller.obeyed(WORDS[0], Wish(f"{WORDS[0]} 漢", ()))


def test_cases_and_parts() -> None:
    assert cases("haus") == {"haus", "Haus"}
    assert cases("") == {""}
    assert within((2, 3), (1, 2, 3))
    assert not within((1, 3), (1, 2, 3))
    assert not within((1, 2), (1,))
