from __future__ import annotations

import pytest

from mt.clean.scripts import KNOWN, SCRIPT_OF, scripts_of
from mt.config.languages import CODES


@pytest.mark.parametrize(
    ("codes", "scripts"),
    [
        (["en", "eng", "pt_BR", "es-419", "eng_Latn", "sr-Latn", "uzn_Latn", "vi"], {"Latin"}),
        (["ru", "rus", "uk", "bg", "sr-Cyrl", "uz_Cyrl"], {"Cyrillic"}),
        (["sr", "srp", "sr_RS"], {"Cyrillic", "Latin"}),
        (["zh", "zho", "cmn", "zh-CN", "zh_TW"], {"Han", "Bopomofo"}),
        (["zho_Hans", "zh-Hant-HK"], {"Han"}),
        (["ja", "jpn"], {"Kana", "Han"}),
        (["ko", "kor"], {"Hangul", "Han"}),
        (["ar", "arb", "fa", "pes", "ur"], {"Arabic"}),
        (["hi", "hin", "mr", "npi"], {"Devanagari"}),
        (["he", "heb", "yi"], {"Hebrew"}),
    ],
)
def test_scripts_of_languages(codes: list[str], scripts: set[str]) -> None:
    assert [set(scripts_of(code) or ()) for code in codes] == [scripts] * len(codes)


@pytest.mark.parametrize("code", ["xx", "tok", "", "x-klingon", "ae"])
def test_nothing_is_claimed_about_an_unknown_language(code: str) -> None:
    assert scripts_of(code) is None


def test_the_usual_script_comes_first() -> None:
    usual = {"ja": "Kana", "sr": "Cyrillic", "az": "Latin", "pa": "Gurmukhi", "ko": "Hangul"}
    assert {code: scripts[0] for code in usual if (scripts := scripts_of(code))} == usual


def test_every_script_of_a_language_is_one_that_characters_have() -> None:
    assert {script for code in CODES for script in scripts_of(code) or ()} <= KNOWN


@pytest.mark.parametrize(
    ("characters", "script"),
    [
        ("aßéĀẽＡ", "Latin"),
        ("жІ", "Cyrillic"),
        ("漢々㐀", "Han"),
        ("あアーｱ", "Kana"),
        ("क्ि", "Devanagari"),
        ("กี", "Thai"),
        ("한ㄱ", "Hangul"),
    ],
)
def test_script_of_a_character(characters: str, script: str) -> None:
    assert {SCRIPT_OF[character] for character in characters} == {script}


@pytest.mark.parametrize("character", "1٣.,。 \u0301👍²µ\u200d\ue000\n")
def test_no_letter_no_script(character: str) -> None:
    assert SCRIPT_OF[character] is None
