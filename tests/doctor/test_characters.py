"""UTF-8 in disguise is told from text that only looks a little like it."""

from __future__ import annotations

import pytest

from mt.doctor.characters import census

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


def test_windows_1252_read_as_latin_1() -> None:
    assert found("“It’s – fine…”".encode("cp1252").decode("latin-1")) == {"c1_controls"}
