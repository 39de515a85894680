"""Each filter on text it is there for and on text it must leave alone; lengths in pieces."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean.filters import TextFilters, drop_reason, length_reason
from mt.config.cleaning import FilterConfig
from mt.config.schema import Langs
from mt.errors import ConfigError
from mt.formats.pairs import Pair

BLANK = st.text(" \t\u00a0\u3000\u2028\x85", max_size=4)
TEXT = st.text(max_size=30)
IDS = st.lists(st.just(7), max_size=9)
SENSIBLE = FilterConfig(
    max_ratio=6, copies=True, scripts=True, max_repeats=0.3, max_digits=0.5, max_symbols=0.5, markup=True, control=True
)  # all that can be on without the extra


def reason(src: str, tgt: str, langs: str | None = None, **settings: Any) -> str | None:
    """Why `TextFilters` drops a pair; languages as in `en de`."""
    src_lang, _, tgt_lang = (langs or "").partition(" ")
    filters = TextFilters(FilterConfig(**settings), Langs(src=src_lang, tgt=tgt_lang) if langs else None)
    return filters(Pair(src, tgt, "x:1"))


@given(blank=BLANK, text=st.text().filter(str.strip))
def test_a_blank_side_is_empty_whichever_it_is(blank: str, text: str) -> None:
    assert drop_reason(Pair(blank, text, "")) == drop_reason(Pair(text, blank, "")) == drop_reason(Pair(blank, blank, "")) == "empty side"
    assert drop_reason(Pair(text, text, "")) is None


@given(src=IDS, tgt=IDS, limit=st.integers(1, 9))
def test_length_depends_on_the_longer_side_only(src: list[int], tgt: list[int], limit: int) -> None:
    reason = length_reason(src, tgt, max_pieces=limit)
    assert reason == length_reason(tgt, src, max_pieces=limit)
    if min(len(src), len(tgt)) == 0:
        assert reason == "empty side"
    elif max(len(src), len(tgt)) <= limit:
        assert reason is None
    else:
        assert reason == ("longer than 1 piece" if limit == 1 else f"longer than {limit} pieces")


# ── all of them ─────────────────────────────────────────────────────────────────────────────────────────────────────


@given(src=TEXT, tgt=TEXT)
def test_all_off_only_what_cannot_be_trained_on_goes(src: str, tgt: str) -> None:
    assert TextFilters(FilterConfig(), None)(Pair(src, tgt, "x:1")) == drop_reason(Pair(src, tgt, "x:1"))
    assert TextFilters(FilterConfig(), None)(Pair(src, tgt, "x:1", "fuzzy")) == "fuzzy"


@given(src=TEXT, tgt=TEXT)
def test_what_one_filter_drops_all_together_drop_too(src: str, tgt: str) -> None:
    langs, pair = Langs(src="en", tgt="ru"), Pair(src, tgt, "x:1")
    settings = SENSIBLE.model_dump()
    alone = [TextFilters(FilterConfig(**{key: value}), langs)(pair) for key, value in settings.items()]
    together = TextFilters(SENSIBLE, langs)
    assert (together(pair) is None) == (not any(alone))
    assert together(pair) in [None, *alone]
    assert pickle.loads(pickle.dumps(together))(pair) == together(pair)


@given(src=TEXT, tgt=TEXT)
def test_the_two_sides_are_judged_alike(src: str, tgt: str) -> None:
    here, there = (TextFilters(SENSIBLE, Langs(src=src, tgt=tgt)) for src, tgt in (("en", "ru"), ("ru", "en")))
    found, mirrored = here(Pair(src, tgt, "x:1")), there(Pair(tgt, src, "x:1"))
    assert (found is None) == (mirrored is None)
    if found and "script" not in found:
        assert found == mirrored


HARMLESS = [
    (
        "en de",
        "Order no. 4711-2023: 3 × 250 g, total €17.99 (incl. 19% VAT)",
        "Bestellung Nr. 4711-2023: 3 × 250 g, gesamt 17,99 € (inkl. 19 % MwSt.)",
    ),
    ("en de", "Version 10.4.2 (build 20231105), 64-bit", "Version 10.4.2 (Build 20231105), 64 Bit"),
    ("en fr", "See https://www.example.org/docs?page=2&lang=en#top.", "Voir https://www.example.org/docs?page=2&lang=fr#top !"),
    ("en de", "Copied %1$d of %2$d files to {folder} <not found>", "%1$d von %2$d Dateien nach {folder} kopiert <nicht gefunden>"),
    ("en es", "Great job! 👍🏽 👨‍👩‍👧 See you soon 😊", "¡Buen trabajo! 👍🏽 👨‍👩‍👧 Hasta pronto 😊"),
    ("en de", "R&D at AT&T; x < y && y > z; I <3 it", "F&E bei AT&T; x < y && y > z; ich <3 es"),
    ("en zh", "Open https://example.com/a_b/c and then click OK.", "打开 https://example.com/a_b/c，然后点击“OK”。"),
    ("en zh-CN", "Install Microsoft Visual Studio Code", "安装Microsoft Visual Studio Code"),
    ("en ru", "Restart Google Chrome Enterprise", "Перезапустите Google Chrome Enterprise"),
    ("en ru", "OK", "ОК"),
    ("en ru", "PDF:", "PDF"),
    ("en ja", "Welcome to Tokyo, 2024!", "「東京」へようこそ、2024年！"),
    ("en ja", "Tokyo Station", "東京駅"),
    ("en ko", "I don't understand, please speak slowly.", "잘 모르겠어요, 천천히 말해 주세요."),
    ("en th", "I don't understand. Please speak slowly.", "ฉันไม่เข้าใจ กรุณาพูดช้าๆ"),
    ("en hi", "The Kshatriya's book, please.", "कृपया क्षत्रिय की किताब दीजिए।"),
    ("en he", "Hello, world! (2024)", "\u200fשלום, עולם! (2024)\u200f"),
    ("en fa", "I do not want to go there.", "من نمی‌خواهم به آنجا بروم."),
    ("en ar", "Chapter 3: Introduction", "الفصل ٣: مقدمة"),
    ("en vi", "I do not understand Vietnamese.", "Tôi không hiểu tiếng Việt."),
    ("en sr", "Good evening, my friend.", "Dobro veče, prijatelju moj."),
    ("en sr", "Good evening, my friend.", "Добро вече, пријатељу мој."),
    ("en el", "The angle α is 30°.", "Η γωνία α είναι 30°."),
    ("en ka", "I don't understand.", "მე არ მესმის."),
    ("en am", "I didn't understand it.", "አልገባኝም።"),
    ("en fr", "Row, row, row your boat", "Rame, rame, rame donc"),
    ("en tlh", "Success!", "Qapla'!"),
    ("zh ja", "我们在北京大学学习中文。", "私たちは北京大学で中国語を学んでいます。"),
]


@pytest.mark.parametrize(("langs", "src", "tgt"), HARMLESS)
def test_harmless_text_stays(langs: str, src: str, tgt: str) -> None:
    assert reason(src, tgt, langs, **SENSIBLE.model_dump()) is None
    assert reason(tgt, src, " ".join(reversed(langs.split())), **SENSIBLE.model_dump()) is None


# ── one by one ──────────────────────────────────────────────────────────────────────────────────────────────────────


@given(src=st.integers(1, 50), tgt=st.integers(1, 50), limit=st.integers(1, 50))
def test_longest_side_in_characters(src: int, tgt: int, limit: int) -> None:
    said = f"longer than {limit} character{'' if limit == 1 else 's'}"
    assert reason("é" * src, "漢" * tgt, max_chars=limit) == (said if max(src, tgt) > limit else None)


@given(src=st.integers(1, 50), tgt=st.integers(1, 50), ratio=st.sampled_from([1.5, 2, 3, 10]))
def test_ratio_of_the_lengths(src: int, tgt: int, ratio: float) -> None:
    said = f"one side more than {ratio:g} times the other"
    assert reason("a" * src, "b" * tgt, max_ratio=ratio) == (said if max(src, tgt) / min(src, tgt) > ratio else None)


@given(src=TEXT.filter(str.strip), tgt=TEXT.filter(str.strip))
def test_copies(src: str, tgt: str) -> None:
    assert reason(src, f" {src} ", copies=True) == "source = target"
    assert reason(src, tgt, copies=True) == ("source = target" if src.strip() == tgt.strip() else None)


ONE_SIDE = [
    ({"markup": True}, "Click <b>here</b>", "markup"),
    ({"markup": True}, "猫 &amp; 犬", "markup"),
    ({"control": True}, "a\x00b", "control characters"),
    ({"control": True}, "caf\ufffd", "control characters"),
    ({"max_digits": 0.5}, "12.04.2023 1999 ок", "more than 50% digits"),
    ({"max_digits": 0.125}, "٢٠٢٤ عام", "more than 12.5% digits"),
    ({"max_symbols": 0.5}, "*** !!! *** yes", "more than 50% symbols"),
    ({"max_symbols": 0.5}, "👍👍👍👍 хорошо"[:7], "more than 50% symbols"),
    ({"max_repeats": 0.2}, "more and more and more and more and more", "more than 20% repeated n-grams"),
    ({"max_repeats": 0.2}, "好的好的好的好的好的好的好的好的", "more than 20% repeated n-grams"),
]


@pytest.mark.parametrize(("settings", "text", "said"), ONE_SIDE)
def test_text_on_either_side(settings: dict[str, Any], text: str, said: str) -> None:
    other = "A sentence like any other, nothing is wrong with it."
    assert reason(text, other, **settings) == reason(other, text, **settings) == said
    assert reason(other, other, **settings) is None


@pytest.mark.parametrize("key", ["max_digits", "max_symbols", "max_repeats"])
def test_a_share_at_the_limit_stays(key: str) -> None:
    text = {"max_digits": "12 ab", "max_symbols": "!? ab", "max_repeats": "a b c d e f a b c d a b c d"}[key]
    share = {"max_digits": 0.5, "max_symbols": 0.5, "max_repeats": 2 / 11}[key]
    assert reason(text, "x", **{key: share + 1e-9}) is None
    assert reason(text, "x", **{key: share - 1e-3}) is not None
    three_of_ten = {"max_digits": "123 abcdefg", "max_symbols": "!?! abcdefg", "max_repeats": "a b c d e f g a b c d e f"}[key]
    assert reason(three_of_ten, "x", **{key: 0.3}) is None  # 1 - 0.7 is more than 0.3


@pytest.mark.parametrize(
    ("langs", "src", "tgt", "said"),
    [
        ("ru en", "This is English.", "Another line.", "source not in the script of ru"),
        ("en ru", "This is English.", "This is English, too.", "target not in the script of ru"),
        ("en ru", "Это не английский.", "Это русский.", "source not in the script of en"),
        ("en zh-CN", "Good morning.", "おはようございます。", "target not in the script of zh-CN"),
        ("ja en", "안녕하세요, 여러분.", "Hello, everybody.", "source not in the script of ja"),
        ("en sr-Latn", "Good evening.", "Добро вече.", "target not in the script of sr-Latn"),
        ("en hi", "Good evening.", "শুভ সন্ধ্যা।", "target not in the script of hi"),
        ("en ar", "Good evening, Peter.", "Good evening, بيتر", "target not in the script of ar"),
        ("el en", "Καλησπέρα.", "Καλησπέρα.", "target not in the script of en"),
    ],
)
def test_wrong_script(langs: str, src: str, tgt: str, said: str) -> None:
    assert reason(src, tgt, langs, scripts=True) == said


@pytest.mark.parametrize("key", [{"scripts": True}, {"languages": 0.9}])
def test_a_filter_that_needs_languages_says_so(key: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"^data\.filters\.{next(iter(key))} needs to know the languages; .*langs: "):
        reason("a", "b", **key)
