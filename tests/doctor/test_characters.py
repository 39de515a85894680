"""UTF-8 in disguise is told from text that only looks a little like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean.traits import has_control
from mt.doctor.characters import census
from mt.doctor.kinds import WORDS

TEXTS = [
    "Für Änderungen: größer, süß, Übermaß.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Zażółć gęślą jaźń, a łódź płynie.",
    "“It’s fine”, she said – and left…",
    "Никто не пришёл вчера вечером.",
    "Κανείς δεν ήρθε χθες το βράδυ.",
    "لم يأت أحد مساء أمس",
    "昨夜は誰も来なかった。",
    "어제 저녁에는 아무도 오지 않았다.",
    "So much fun 😀 today",
    "Kosten: 5 € am Tag",
    "Şüphesiz ağaçlar çiçek açtı.",
]
TRUE = [
    "Å… ja, sa han.",
    "«Å»",
    "MAÇÃ»",
    "café…”",
    "Åse og Äpfel",
    "ÄÖÜ",
    "Ö–Ä",
    "São João não é à toa…",
    "«Où ça ?» Voilà…”",
    "naïve ðæt wæs",
]


def disguised(text: str, encoding: str) -> str:
    """What a program shows that reads UTF-8 in another encoding; Windows leaves bytes that Windows-1252 lacks as they are."""
    bytes_ = text.encode()
    return "".join(byte.decode(encoding, "ignore") or byte.decode("latin-1") for byte in (bytes_[i : i + 1] for i in range(len(bytes_))))


def found(line: str) -> set[str]:
    return set(census([line], begins=False).rows)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("text", TEXTS)
def test_utf8_read_as_another_encoding(text: str, encoding: str) -> None:
    assert found(text) & {"mojibake", "c1_controls"} == set()
    assert found(disguised(text, encoding)) & {"mojibake", "c1_controls"} == {"mojibake"}


@pytest.mark.parametrize("text", TRUE)
def test_what_may_be_meant_is_left_alone(text: str) -> None:
    assert "mojibake" not in found(text)


@given(
    text=st.text(
        st.characters(exclude_categories=["Cs"]) | st.sampled_from("\0\x07\x85\ufdd0\U0003fffe\uffff\ue000\U00100000\ufffd"), max_size=4
    )
)
def test_the_filter_drops_all_that_the_doctor_says_it_would(text: str) -> None:
    kinds = {kind for kind, words in WORDS.items() if words.setting == "control: true"}
    assert "control" in kinds
    assert has_control(text) or not found(f"x{text}x") & kinds


def test_windows_1252_read_as_latin_1() -> None:
    assert found("“It’s – fine…”".encode("cp1252").decode("latin-1")) == {"c1_controls"}
