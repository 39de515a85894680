"""In which language is a text? Through the library `py3langid`, which comes with the extra `languages` and has its model inside."""

from __future__ import annotations

from copy import copy
from functools import cache
from importlib.util import find_spec
from typing import Any

from mt.clean.scripts import scripts_of
from mt.clean.traits import letters_by_script
from mt.errors import ConfigError
from mt.extras import install

COMMON = frozenset(("ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt", "ru", "sv", "tr", "zh"))
"""Languages that stray lines of a corpus are most often in; a text is compared with these and with those of the corpus."""

FEWEST = 20
"""Letters below which a text is not judged; one of Han, Kana and Hangul counts for three."""

# The library's codes, where a corpus may name the language by another one.
_CODES = """
af:afr am:amh ar:ara,arb,acm,acq,aeb,ajp,apc,ars as:asm az:aze,azj be:bel bg:bul bn:ben br:bre bs:bos ca:cat cs:ces,cze cy:cym,wel da:dan
de:deu,ger el:ell,gre en:eng eo:epo es:spa et:est,ekk eu:eus,baq fa:fas,per,pes,prs fi:fin fo:fao fr:fra,fre fy:fry ga:gle gd:gla gl:glg
gu:guj ha:hau he:heb,iw hi:hin hr:hrv,sh,cnr ht:hat hu:hun hy:hye,arm id:ind,in ig:ibo is:isl,ice it:ita ja:jpn jv:jav ka:kat,geo kk:kaz
km:khm kn:kan ko:kor ku:kur,kmr ky:kir la:lat lb:ltz lg:lug ln:lin lo:lao lt:lit lv:lav,lvs mg:mlg,plt mk:mkd ml:mal mn:mon,khk mr:mar
ms:msa,may,zsm mt:mlt my:mya,bur ne:nep,npi nl:nld,dut nn:nno no:nor,nb,nob oc:oci om:orm or:ory,ori pa:pan pl:pol ps:pus pt:por qu:que,quy
ro:ron,rum,mo ru:rus rw:kin sa:san si:sin sk:slk,slo sl:slv sn:sna so:som sq:sqi,als st:sot sv:swe sw:swa,swh ta:tam te:tel tg:tgk th:tha
tk:tuk tl:tgl,fil tr:tur tt:tat ug:uig uk:ukr ur:urd uz:uzb,uzn vi:vie wa:wln xh:xho yo:yor zh:zho,chi,cmn,lzh zu:zul
"""
_BY_CODE = {other: code for code, _, others in (entry.partition(":") for entry in _CODES.split()) for other in others.split(",")}
# What may as well be taken for the other is not in another language.
_RELATIVES = ({"ar", "ary", "arz"}, {"hr", "bs", "sr"}, {"id", "ms"}, {"no", "nn"}, {"zh", "yue", "wuu"})


def installed() -> bool:
    """Whether the library is there."""
    return find_spec("py3langid") is not None


class Identifier:
    """Tells texts that are in another language than they should be. Holds no model and can be pickled; each process loads it once."""

    def __init__(self, *languages: str) -> None:
        """`languages` are the codes of the corpus. Raises ConfigError if the library is not installed."""
        known = frozenset(_library().labels)
        codes = {language: short_code(language) for language in languages}
        relatives = {language: next((group for group in _RELATIVES if code in group), {code}) for language, code in codes.items()}
        self._expected = {language: frozenset(relatives[language]) & known for language, code in codes.items() if code in known}
        self._candidates = tuple(sorted(COMMON.union(*self._expected.values())))

    def knows(self, language: str) -> bool:
        """Can texts in this language of the corpus be judged?"""
        return language in self._expected

    def elsewhere(self, text: str, language: str) -> float:
        """The probability of the likeliest other language than this one of the corpus.

        0 for short texts, for languages that the library does not know, and for a script that is not the language's usual one.
        """
        counts = letters_by_script(text)
        if language not in self._expected or counts.total() + 2 * (counts["Han"] + counts["Kana"] + counts["Hangul"]) < FEWEST:
            return 0.0
        if max(counts, key=counts.__getitem__) in (scripts_of(language) or ())[1:]:
            return 0.0
        ranked = _among(self._candidates).rank(text)
        return next(float(probability) for code, probability in ranked if code not in self._expected[language])


def likeliest(text: str) -> tuple[str, float]:
    """The language that a text is likeliest in, of all that the library knows, and how probable that is. Raises ConfigError without it."""
    code, probability = _library().classify(text)
    return code, float(probability)


def short_code(language: str) -> str:
    """The library's code of a language: `de` for deu_Latn and for de-AT."""
    code = language.replace("_", "-").partition("-")[0].lower()
    return _BY_CODE.get(code, code)


@cache
def _library() -> Any:
    """The library's identifier for all languages it knows."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise ConfigError(f"data.filters.languages needs an extra: {install('languages')}, or leave the key out") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _among(candidates: tuple[str, ...]) -> Any:
    """The same for these languages only: more accurate, and faster."""
    identifier = copy(_library())  # the large tables stay shared
    identifier.set_languages(candidates)
    return identifier
