"""In which language is a text? Through the library `lingua`, which comes with the extra `languages` and has its models inside."""

from __future__ import annotations

from functools import cache
from typing import Any

from mt.data.scripts import scripts_of
from mt.data.traits import letters_by_script
from mt.errors import ConfigError

COMMON = tuple(["ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt", "ru", "sv", "tr", "zh"])
"""Languages that stray lines of a corpus are most often in; a text is compared with these and with those of the corpus."""

FEWEST = 20
"""Letters below which a text is not judged; one of Han, Kana and Hangul counts for three."""

# What one may as well be taken for the other is not another language.
_RELATIVES = [{"nb", "nn"}, {"hr", "bs", "sr"}, {"id", "ms"}]
_SAME = {"no": "nb", "nor": "nb", "iw": "he", "in": "id", "fil": "tl", "sh": "hr", "cnr": "hr"}
_SAME |= dict.fromkeys(["cmn", "yue", "wuu", "lzh"], "zh")
_SAME |= dict.fromkeys(["arb", "acm", "acq", "aeb", "ajp", "apc", "ars", "ary", "arz"], "ar")
_SAME |= {"pes": "fa", "prs": "fa", "zsm": "ms", "swh": "sw", "lvs": "lv", "ekk": "et", "als": "sq", "azj": "az", "khk": "mn"}


class Identifier:
    """Tells texts that are in another language than they should be. Holds no models and can be pickled; each process loads them once."""

    def __init__(self, *languages: str) -> None:
        """`languages` are the codes of the corpus. Raises ConfigError if the library is not installed."""
        known = _known()
        self._expected = {code: frozenset(relatives) & known.keys() for code in languages if (relatives := _relatives(code)) & known.keys()}
        wanted = {*COMMON, *(code for relatives in self._expected.values() for code in relatives)}
        self._candidates = tuple(sorted(wanted))

    def knows(self, language: str) -> bool:
        """Can texts in this language of the corpus be judged?"""
        return language in self._expected

    def elsewhere(self, text: str, language: str) -> float:
        """How likely a text is in another language than this one of the corpus, 0 to 1.

        0 for short texts, for languages that the library does not know, and for a script that is not the language's usual one.
        """
        if language not in self._expected:
            return 0.0
        counts = letters_by_script(text)
        if counts.total() + 2 * (counts["Han"] + counts["Kana"] + counts["Hangul"]) < FEWEST:
            return 0.0
        if counts.most_common(1)[0][0] in (scripts_of(language) or ())[1:]:
            return 0.0
        likely = self._likely(text)
        return 1 - min(1.0, sum(likely.get(code, 0.0) for code in self._expected[language])) if likely else 0.0

    def _likely(self, text: str) -> dict[str, float]:
        """The probability of each candidate; nothing if the text is in none of their alphabets."""
        names, detector = _detector(self._candidates)
        return {names[found.language]: found.value for found in detector.compute_language_confidence_values(text) if found.value > 0}


def _relatives(language: str) -> set[str]:
    """The codes that a text in this language may be taken for."""
    code = language.replace("_", "-").split("-")[0].lower()
    code = _SAME.get(code, code)
    known = _known()
    code = next((short for short, entry in known.items() if entry.iso_code_639_3.name.lower() == code), code)
    return next((group for group in _RELATIVES if code in group), {code})


@cache
def _known() -> dict[str, Any]:
    """The languages of the library, by their codes of two letters."""
    try:
        import lingua
    except ImportError:
        raise ConfigError("data.filters.languages needs an extra: pip install 'mt-trainer[languages]', or leave the key out") from None
    return {language.iso_code_639_1.name.lower(): language for language in lingua.Language.all()}


@cache
def _detector(codes: tuple[str, ...]) -> tuple[dict[Any, str], Any]:
    """A detector for these languages, and their codes."""
    import lingua

    known = _known()
    languages = {known[code]: code for code in codes}
    return languages, lingua.LanguageDetectorBuilder.from_languages(*languages).build()
