"""Writing systems: which one a character belongs to, and which ones a language is written in."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from mt.config.languages import CODES

_KNOWN = """
Latin Cyrillic Greek Coptic Armenian Georgian Arabic Hebrew Syriac Thaana Nko Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu
Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Khmer Ethiopic Cherokee Canadian Mongolian Tifinagh Ol Meetei Yi Adlam Buginese
Han Kana Hangul Bopomofo
"""
KNOWN = frozenset(_KNOWN.split())
"""Scripts that are told apart, each by the word its characters' Unicode names begin with; Kana is Hiragana and Katakana."""

CASED = frozenset(("Latin", "Cyrillic", "Greek", "Coptic", "Armenian", "Adlam"))
"""Scripts that are written with capital and small letters."""

_NAMED = {"CJK": "Han", "IDEOGRAPHIC": "Han", "HIRAGANA": "Kana", "KATAKANA": "Kana", "KATAKANA-HIRAGANA": "Kana"}


class _Scripts(dict[str, str | None]):
    """The script of each character seen so far; Unicode's tables are asked once a character."""

    def __missing__(self, character: str) -> str | None:
        name = unicodedata.name(character, "") if unicodedata.category(character)[0] in "LM" else ""
        word = name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]
        script = _NAMED.get(word, word.capitalize())
        self[character] = script if script in KNOWN else None
        return self[character]


SCRIPT_OF = _Scripts()
"""Character → script; None for what is no letter, nor a mark of one script."""


# ── languages ───────────────────────────────────────────────────────────────────────────────────────────────────────

# The usual script first. A language of CODES that is not here is written in Latin letters.
_WRITTEN = """
Arabic: acm acq aeb ajp apc ar ara arb ars ary arz azb ckb fa fas per pes prs ps pus ur urd
Arabic Cyrillic Latin: ug uig
Arabic Devanagari: kas ks sd snd
Armenian: hy hye
Bengali: as asm ben bn
Bengali Meetei: mni
Canadian Latin: cr iku iu oj
Cherokee Latin: chr
Coptic Greek: cop
Cyrillic: ab abk av ba bak bg bul bua ce che chm chv cu cv kv mdf mhr mk mkd myv os ru rus sah tyv udm uk ukr xal
Cyrillic Arabic Latin: kir ky
Cyrillic Latin: be bel sr srp tat tt
Cyrillic Latin Arabic: kaz kk tg tgk
Cyrillic Mongolian: khk mn mon
Devanagari: awa bh bho gom hi hin hne kok mag mai mar mr ne nep npi sa san
Ethiopic: am amh ti tir
Georgian: ka kat
Greek: el ell gre grc
Gujarati: gu guj
Gurmukhi Arabic: pa pan
Han Bopomofo: chi cmn lzh wuu yue zh zho
Hangul Han: ko kor
Hebrew: hbo he heb iw yi yid ydd
Kana Han: ja jpn
Kannada: kan kn
Khmer: khm km
Lao: lao lo
Latin Adlam Arabic: ff fuv
Latin Arabic: ace bjn ha hau knc kr min ms msa zsm
Latin Buginese: bug
Latin Cyrillic: bos bs cnr crh sh
Latin Cyrillic Arabic: az aze azj ku kur kmr tk tuk uz uzb uzn
Latin Hebrew: lad
Latin Tifinagh Arabic: kab taq
Malayalam: mal ml
Myanmar: mnw my mya shn
Nko: nqo
Ol Devanagari Bengali: sat
Oriya: or ory
Sinhala: si sin
Tamil: ta tam
Telugu: te tel
Thaana: div dv
Thai: th tha
Tibetan: bo bod dz dzo
Tifinagh Latin Arabic: tzm zgh
Yi: ii
: ae pi
"""
_LINES = [line.partition(":") for line in _WRITTEN.strip().split("\n")]
_SCRIPTS = {code: tuple(scripts.split()) for scripts, _, codes in _LINES for code in codes.split()}

# ISO 15924, as in sr-Latn and zho_Hans.
_SUBTAGS = """
Adlm:Adlam Arab:Arabic Armn:Armenian Beng:Bengali Bopo:Bopomofo Bugi:Buginese Cans:Canadian Cher:Cherokee Copt:Coptic Cyrl:Cyrillic
Deva:Devanagari Ethi:Ethiopic Geor:Georgian Grek:Greek Gujr:Gujarati Guru:Gurmukhi Hang:Hangul Hani:Han Hans:Han Hant:Han Hebr:Hebrew
Hira:Kana Kana:Kana Khmr:Khmer Knda:Kannada Laoo:Lao Latn:Latin Mlym:Malayalam Mong:Mongolian Mtei:Meetei Mymr:Myanmar Nkoo:Nko Olck:Ol
Orya:Oriya Sinh:Sinhala Syrc:Syriac Taml:Tamil Telu:Telugu Tfng:Tifinagh Thaa:Thaana Thai:Thai Tibt:Tibetan Yiii:Yi
"""
_BY_SUBTAG = {tag.lower(): script for tag, _, script in (pair.partition(":") for pair in _SUBTAGS.split())}


@cache
def scripts_of(language: str) -> tuple[str, ...] | None:
    """The scripts a language is written in, the usual one first: `sr` Cyrillic and Latin, `sr-Latn` Latin, `ja` Kana and Han.

    None where that is not known: then nothing is claimed about texts in that language.
    """
    code, *subtags = re.split(r"[-_]", language.lower())
    if named := next((script for tag in subtags if (script := _BY_SUBTAG.get(tag))), None):
        return (named,)
    return _SCRIPTS.get(code, ("Latin",) if code in CODES else None) or None
