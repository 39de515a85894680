"""Traits of a text against the same said slowly with Unicode's tables, and on real-looking text in many scripts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean import traits
from mt.clean.scripts import SCRIPT_OF

TEXT = (
    st.text(max_size=60) | st.text(st.characters(max_codepoint=0x24F), max_size=60) | st.text(st.characters(max_codepoint=127), max_size=60)
)
WORDY = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=20).map(" ".join)
UNSPACED = st.text("人口火", max_size=60)

SENTENCES = {
    "Latin": ["Two men are outside, near a bush.", "Ein Mädchen klettert; es lacht!", "Tôi không hiểu tiếng Việt lắm."],
    "Cyrillic": ["Мне нравится эта книга, но она длинная."],
    "Greek": ["Δεν καταλαβαίνω, μιλήστε πιο αργά."],
    "Armenian": ["Ես չեմ հասկանում, խնդրում եմ։"],
    "Georgian": ["მე არ მესმის, გთხოვთ."],
    "Arabic": ["أنا لا أفهم، من فضلك.", "من نمی‌خواهم به آنجا بروم."],
    "Hebrew": ["\u200fאני לא מבין, בבקשה.\u200f"],
    "Devanagari": ["मुझे समझ में नहीं आया, कृपया दोबारा कहिए।"],
    "Bengali": ["আমি বুঝতে পারছি না।"],
    "Tamil": ["எனக்குப் புரியவில்லை."],
    "Thai": ["ฉันไม่เข้าใจ กรุณาพูดช้าๆ"],
    "Ethiopic": ["አልገባኝም።"],
    "Hangul": ["저는 잘 모르겠어요, 천천히 말해 주세요."],
    "Han": ["我听不懂，请你慢一点说。"],
    "Kana": ["わかりません、もうすこしゆっくりはなしてください。"],
}
ALL = [text for texts in SENTENCES.values() for text in texts]


def categories(text: str, wanted: str) -> int:
    return sum(bool(re.match(wanted, unicodedata.category(character))) for character in text)


@given(TEXT)
def test_shares_are_counts_by_category(text: str) -> None:
    visible = sum(not character.isspace() for character in text)
    assert traits.visible(text) == visible
    assert traits.digit_share(text) == (categories(text, "Nd") / visible if visible else 0.0)
    assert traits.symbol_share(text) == (categories(text, "P|S") / visible if visible else 0.0)


@given(TEXT)
def test_control_characters_by_category(text: str) -> None:
    odd = "\ufffd\ufffe\uffff" + "".join(map(chr, range(0xFDD0, 0xFDF0)))
    control = [character for character in text if unicodedata.category(character) in ("Cc", "Co") and character not in "\t\n\r"]
    assert traits.has_control(text) == bool(control or any(character in odd or ord(character) >= 0xF0000 for character in text))


@given(WORDY | UNSPACED)
def test_repetition_is_what_a_loop_over_the_n_grams_finds(text: str) -> None:
    words = text.split()
    items, n = (words, 4) if len(words) > 1 and len(text) <= 15 * len(words) else (list(text), 8)
    grams = [tuple(items[i : i + n]) for i in range(len(items) - n + 1)]
    again = sum(gram in grams[:i] for i, gram in enumerate(grams))
    assert traits.repeated_share(text) == pytest.approx(again / len(grams) if grams else 0.0)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("the cat and the dog and the bird", 0.0),
        ("more and more and more and more", 0.5),
        ("我们去我们去我们去我们去我们去", 5 / 8),
        ("New York, New York is a wonderful town", 0.0),
        ("ต้นไม้ต้นไม้ต้นไม้ต้นไม้", 11 / 17),
        ("wide" + " " * 40 + "gap", 0.0),
        ("", 0.0),
    ],
)
def test_repetition_of_words_or_of_characters(text: str, share: float) -> None:
    assert traits.repeated_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ALL)
def test_ordinary_sentences_have_nothing_odd(text: str) -> None:
    assert traits.digit_share(text) == traits.repeated_share(text) == 0
    assert traits.symbol_share(text) < 0.2
    assert not any(odd(text) for odd in (traits.has_markup, traits.has_control, traits.subword_split, traits.tokenised, traits.lower_cased))


@pytest.mark.parametrize(
    "text",
    [
        "Press <b>Save</b>.",
        "line<br/>break",
        "a <IMG SRC='x.png'> b",
        'Open <g id="1">this</g>',
        "<ph/> left",
        "cats &amp; dogs",
        "&#8364; 5",
        "&#x20AC; 5",
        "it &apos;s",
        "Сохранить&nbsp;как",
        "<!-- todo --> yes",
        '<?xml version="1.0"?>',
        "</custom>",
    ],
)
def test_markup(text: str) -> None:
    assert traits.has_markup(text)


@pytest.mark.parametrize(
    "text",
    [
        "I <3 you </3",
        "if a < b && b > c",
        "git clone <url> && cd <folder>",
        "AT&T; R&D; Q&A;",
        "https://example.org/?a=1&lang=en&copy=2;x",
        "John <john@example.org>",
        "x<y and y>z",
        "«цитата» <пример>",
        "5 > 3 < 4",
        "<2de> <-> -->",
    ],
)
def test_no_markup(text: str) -> None:
    assert not traits.has_markup(text)


@pytest.mark.parametrize("text", ["a\x00b", "bell\x07", "\x1b[31mred", "dots\x85", "\uf8ff", "caf\ufffd", "\x7f"])
def test_control_characters(text: str) -> None:
    assert traits.has_control(text)


@pytest.mark.parametrize(
    "text", ["tab\there", "👨‍👩‍👧 👍🏽", "می‌خواهم", "\u200eabc\u200f", "soft\u00adhyphen", "a\u2028b\u00a0c", "क्\u200dष", "\ufeffx"]
)
def test_no_control_characters(text: str) -> None:
    assert not traits.has_control(text)


def test_marks_are_no_symbols_and_emoji_are() -> None:
    assert traits.symbol_share("क्षत्रिय") == traits.symbol_share("ที่นี่") == traits.symbol_share("שָׁלוֹם") == 0
    assert traits.symbol_share("👍👍👍👍") == traits.symbol_share("_*_") == traits.symbol_share("。。！") == 1


@pytest.mark.parametrize(("script", "text"), [(script, text) for script, texts in SENTENCES.items() for text in texts])
def test_script_of_a_sentence(script: str, text: str) -> None:
    assert traits.script(text) == script
    assert traits.letters_by_script(text).total() > 0.6 * traits.visible(text)
    assert traits.foreign_share(text, (script,)) == 0
    assert traits.foreign_share(text, ("Cherokee",)) == 1


@given(TEXT)
def test_the_short_way_for_latin_counts_as_the_long_one(text: str) -> None:
    assert traits.letters_by_script(text) == Counter(script for script in map(SCRIPT_OF.__getitem__, text) if script)


@pytest.mark.parametrize("text", ["", "123, 45.6!", "👍 \u0301 µ"])
def test_no_letters_no_script(text: str) -> None:
    assert traits.script(text) is None
    assert traits.foreign_share(text, ("Latin",)) == 0
    assert traits.lower_cased(text) is None


def test_share_of_foreign_letters() -> None:
    assert traits.foreign_share("abc где", ("Latin",)) == traits.foreign_share("abc где 1 !", ("Cyrillic",)) == 0.5
    assert traits.foreign_share("abc где", ("Latin", "Cyrillic")) == 0


@pytest.mark.parametrize("script", ["Latin", "Cyrillic", "Greek", "Armenian"])
def test_lower_case(script: str) -> None:
    for text in SENTENCES[script]:
        assert traits.lower_cased(text) is False
        assert traits.lower_cased(text.lower()) is True


@pytest.mark.parametrize("script", ["Georgian", "Han", "Hebrew", "Thai", "Devanagari"])
def test_no_case_no_evidence(script: str) -> None:
    assert traits.lower_cased(SENTENCES[script][0]) is None


@pytest.mark.parametrize(
    "text",
    [
        "Two men are outside , near a bush .",
        "i can 't tell who will arrive first",
        "he said &quot; no &quot;",
        "it &apos;s mine",
        "a well @-@ known man",
        "Mr. Smith went home .",
        "誰 が 一番 に 着 く か 私 に は 分か り ま せ ん 。",
        "我们 在 北京 大学 学习 中文 。",
        "ฉัน ไม่ เข้าใจ กรุณา พูด ช้าๆ",
        "저는 잘 모르겠어요 , 천천히 말해 주세요 .",
    ],
)
def test_tokenised(text: str) -> None:
    assert traits.tokenised(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "Two men are outside, near a bush.",
        "C'est vrai ? Oui ! « Bien sûr » : je t'assure, mon ami.",
        "It's 3.5 km, isn't it?",
        "我听不懂，请你 慢一点说，好不好？谢谢。",
        "東京 タワーへ行きましたか。とても高いです。",
        "ฉันไม่เข้าใจสิ่งที่คุณพูด กรุณาพูดช้าๆ",
    ],
)
def test_not_tokenised(text: str) -> None:
    assert traits.tokenised(text) is False


@pytest.mark.parametrize("text", ["", "Hello", "100 %", "你好", "Well ...", "version .5 of .NET"])
def test_too_little_to_tell(text: str) -> None:
    assert traits.tokenised(text) is None


@pytest.mark.parametrize("text", ["the gi@@ ant pul@@ ley", "end@@", "▁Two ▁men ▁are", "Two ▁m en", "out ##side", "hel ￭lo"])
def test_subword_split(text: str) -> None:
    assert traits.subword_split(text)


@pytest.mark.parametrize("text", ["a@b.org @@ x", "progress ▁▁▁▂▃", "## Title", "C## and #tag ##", "x_y __init__"])
def test_not_subword_split(text: str) -> None:
    assert not traits.subword_split(text)
