from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from mt.serve.sentences import laid_out, put_together, without_surrogates

TEXTS = st.text(st.sampled_from("aB.!?。！ \n\r\t\u00a0\u2028\x00\x1c\x85\u200b\ud800\udc00😀)\"'…1"), max_size=60)


@given(TEXTS, st.sampled_from(["en", "zh", "ja", "de-AT", "xx", None]))
def test_sentences_and_what_stands_between_are_the_text(text: str, lang: str | None) -> None:
    layout = laid_out(text, lang)
    assert "".join(one.before + one.text for one in layout.sentences) + layout.after == without_surrogates(text)
    for one in layout.sentences:
        assert one.text == one.text.strip() != ""
        assert "\n" not in one.text
        assert one.before.strip() == ""


@given(TEXTS)
def test_any_text_is_one_that_utf_8_can_hold(text: str) -> None:
    without_surrogates(text).encode("utf-8")


def test_paragraphs_and_blank_lines_stay_where_they_are() -> None:
    text = "One here. Two here!\r\n\r\n  - Three?\n\n\nFour.  \n"
    layout = laid_out(text, "en")
    assert [one.text for one in layout.sentences] == ["One here.", "Two here!", "- Three?", "Four."]
    assert put_together(layout, ["A", "B", "C", "D"], lang="de") == "A B\r\n\r\n  C\n\n\nD  \n"


def test_an_abbreviation_ends_no_sentence() -> None:
    assert [one.text for one in laid_out("Dr. Smith came. He left.", "en").sentences] == ["Dr. Smith came.", "He left."]
    assert [one.text for one in laid_out("Das ist z.B. gut. Ja.", "de").sentences] == ["Das ist z.B. gut.", "Ja."]


@pytest.mark.parametrize(("source", "target", "joined"), [("en", "zh", "AB"), ("en", "de", "A B"), ("en", None, "A B")])
def test_languages_without_spaces_have_none_between_sentences(source: str, target: str | None, joined: str) -> None:
    assert put_together(laid_out("One here. Two here.", source), ["A", "B"], lang=target) == joined


def test_languages_with_spaces_get_them() -> None:
    layout = laid_out("你好。你在哪里？", "zh")
    assert len(layout.sentences) == 2
    assert put_together(layout, ["A.", "B?"], lang="en") == "A. B?"
    assert put_together(layout, ["A。", "B？"], lang="ja") == "A。B？"


def test_halves_of_a_pair_are_put_together() -> None:
    assert without_surrogates("\ud83d\ude00 \ud83d") == "😀 \ufffd"


def test_a_long_text_of_line_ends_takes_no_time() -> None:
    text = "\n" * 400_000 + "x"
    began = time.process_time()
    assert put_together(laid_out(text, "en"), ["x"], lang="de") == text
    assert time.process_time() - began < 8  # square in the number of lines it was


def test_a_line_of_any_length_is_cut_a_stretch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"This is number {number}, by Mr. Smith." for number in range(60))
    whole = laid_out(text, "en")
    seen: list[str] = []

    def segment(lang: str, stretch: str) -> list[str]:
        seen.append(stretch)
        return sentencex.segment(lang, stretch)

    monkeypatch.setattr("mt.serve.sentences.LONGEST", 100)
    monkeypatch.setattr("mt.serve.sentences.sentencex", SimpleNamespace(segment=segment))
    assert laid_out(text, "en") == whole
    assert max(map(len, seen)) == 100
    for endless in "word " * 60, "“" * 300, "x" * 300:
        layout = laid_out(endless, "en")
        assert "".join(one.before + one.text for one in layout.sentences) + layout.after == endless
    assert max(map(len, seen)) == 100
