"""What one text looks like: pure functions, a few microseconds a sentence, for the filters and for the doctor.

Shares are of the characters that are no white space, unless said otherwise; an empty text has share 0 of everything. Functions that answer
True, False or None give evidence for a whole corpus: None is a text that tells nothing, and it is for the caller to judge their shares.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from html.entities import html5

from mt.clean.scripts import CASED, SCRIPT_OF

WORDS, CHARACTERS = 4, 8  # lengths of the n-grams that are looked at for repetition
PER_WORD = 15  # a text of one word, or with more characters a word than this, is taken as written without spaces


# ── characters ──────────────────────────────────────────────────────────────────────────────────────────────────────

_DIGIT = re.compile(r"\d")
_DIGITS = bytes(range(ord("0"), ord("9") + 1))
_SYMBOLS = bytes(byte for byte in range(128) if unicodedata.category(chr(byte))[0] in "PS")
_NO_WORD = re.compile(r"[^\w\s]|_")
# Not TAB, LF, CR. U+FFFD stands for undecodable bytes; the last two of each plane and U+FDD0 to U+FDEF are no characters at all.
_LAST = "".join(chr(plane + last) for plane in range(0x10000, 0xF0000, 0x10000) for last in (0xFFFE, 0xFFFF))
_CONTROL = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufdd0-\ufdef\ufffd-\uffff\U000f0000-\U0010ffff{_LAST}]")


class _Symbols(dict[str, bool]):
    """Is a character punctuation or a symbol? Unicode's tables are asked once a character."""

    def __missing__(self, character: str) -> bool:
        self[character] = unicodedata.category(character)[0] in "PS"
        return self[character]


_IS_SYMBOL = _Symbols()


def visible(text: str) -> int:
    """The number of characters that are no white space."""
    return len("".join(text.split()))


def digit_share(text: str) -> float:
    """The share of decimal digits, those of every script."""
    digits = _count(text, _DIGITS) if text.isascii() else len(_DIGIT.findall(text))
    return digits / visible(text) if digits else 0.0


def symbol_share(text: str) -> float:
    """The share of punctuation and symbols, emoji among them; vowel signs and other marks are no symbols."""
    symbols = _count(text, _SYMBOLS) if text.isascii() else sum(map(_IS_SYMBOL.__getitem__, _NO_WORD.findall(text)))
    return symbols / visible(text) if symbols else 0.0


def _count(text: str, characters: bytes) -> int:
    """How many of these ASCII characters an ASCII text has."""
    return len(text) - len(text.encode().translate(None, characters))


def has_control(text: str) -> bool:
    """Is there a control character (TAB, LF and CR apart), a private-use character, or U+FFFD, which stands for undecodable bytes?

    Direction marks, joiners, soft hyphens and U+2028 are none of these.
    """
    return not (text.isprintable() and "\ufffd" not in text) and _CONTROL.search(text) is not None


# ── repetition ──────────────────────────────────────────────────────────────────────────────────────────────────────


def repeated_share(text: str) -> float:
    """The share of the text's word 4-grams that occurred in it before, from the left; of its character 8-grams if it has no spaces.

    Words are what stands between white space, with letter case and punctuation. A text of fewer than 4 words (8 characters) has none.
    """
    words = text.split()
    joined = " ".join(words)
    unspaced = len(words) == 1 or len(joined) > PER_WORD * len(words)
    items, n = (joined, CHARACTERS) if unspaced else (words, WORDS)
    # An n-gram that comes again, overlapping or not, has n items that came before.
    if len(items) - len(set(items)) < n:
        return 0.0
    grams = len(items) - n + 1
    distinct = len(set(zip(*(items[start:] for start in range(n)), strict=False)))
    return (grams - distinct) / grams


# ── markup ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_HTML = """
a abbr address article aside audio b base big blockquote body br button canvas caption center cite code col dd del dfn div dl dt em embed
fieldset figcaption figure font footer form frame h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li link main
map mark meta nav noscript object ol optgroup option p param picture pre q s samp script section select small source span strike strong
style sub summary sup svg table tbody td textarea tfoot th thead title tr tt u ul var video
"""
# A bare <word> is markup only where HTML has it: `git clone <url>` is text. `<3` and `a < b > c` are text too.
_NAME = r"[a-z][\w:.-]*"
_TAG = re.compile(
    rf"""< (?: (?:{"|".join(_HTML.split())})\s*/? | /{_NAME}\s* | {_NAME}\s*/ | {_NAME}(?:\s+[\w:.-]+\s*=\s*["'][^<>]*) ) >
    | <!-- | <!\[CDATA\[ | <!doctype\s | <\?xml\s""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|([A-Za-z]\w{1,31}));", re.ASCII)


def has_markup(text: str) -> bool:
    """Is there an HTML or XML tag, comment, or entity? `<url>`, `a < b` and `AT&T;` are none."""
    if "<" in text and _TAG.search(text):
        return True
    return "&" in text and any(not (name := entity[1]) or f"{name};" in html5 for entity in _ENTITY.finditer(text))


# ── scripts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Most Latin letters, and the characters beside them that are no letter of any script.
_BEYOND_LATIN = re.compile("[^\x00-\u024f\u1e00-\u1eff\u2000-\u206f]")
_LATIN_LETTERS = re.compile("[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")


def letters_by_script(text: str) -> Counter[str]:
    """The number of letters and marks of each script; those of no script and of rare ones are left out."""
    if not _BEYOND_LATIN.search(text):
        latin = sum(map(len, _LATIN_LETTERS.findall(text)))
        return Counter(Latin=latin) if latin else Counter()
    counts: Counter[str | None] = Counter(map(SCRIPT_OF.__getitem__, text))
    return Counter({script: count for script, count in counts.items() if script is not None})


def script(text: str) -> str | None:
    """The script of most letters, such as Latin; None without letters. Japanese may be Kana or Han."""
    return max(counts, key=counts.__getitem__) if (counts := letters_by_script(text)) else None


def foreign_share(text: str, scripts: Collection[str]) -> float:
    """The share of letters (not of all characters) that belong to none of these scripts."""
    if "Latin" in scripts and not _BEYOND_LATIN.search(text):
        return 0.0
    counts = letters_by_script(text)
    return sum(count for script, count in counts.items() if script not in scripts) / counts.total() if counts else 0.0


# ── evidence on a corpus ────────────────────────────────────────────────────────────────────────────────────────────


def lower_cased(text: str) -> bool | None:
    """Are all letters small? None where most are of a script without capitals, and where there are none."""
    return text == text.lower() if script(text) in CASED else None


_FREE = re.compile(r" (?:[,.]|'(?:s|t|m|d|re|ve|ll)|n't|&(?:apos|quot|#91|#93|#124);\w*|@-@)(?= |$)", re.IGNORECASE)
_GLUED = re.compile(r"\w(?:[,.](?= |$)|'(?:s|t|m|d|re|ve|ll)\b)", re.IGNORECASE)
# Of scripts without spaces: runs of letters, spaces between letters, and the mean word below which the spaces are an analyser's.
_UNSPACED = [
    (re.compile(f"[{letters}]+"), re.compile(f"[{letters}] (?=[{letters}])"), limit)
    for letters, limit in [
        ("\u3005\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", 3.5),  # Han, Kana
        ("\u0e01-\u0e4e\u0e81-\u0edf\u1000-\u104f\u1780-\u17d3", 7.0),  # Thai, Lao, Myanmar, Khmer
    ]
]
_SPLIT = re.compile(r"\w@@(?= |$)|(?:^| )\u2581\w|\w ##\w|\uffed")
_SPLIT_MARKS = ("@@", "\u2581", "##", "\uffed")


def tokenised(text: str) -> bool | None:
    """Has a tokenizer put spaces before punctuation, or between the words of Chinese, Japanese, Thai and the like?

    True: `a word , another .`, `it 's`, `誰 が 一番 に`; False: `a word, another.`; None: the text shows neither.
    """
    if not text.isascii():
        for run, gap, limit in _UNSPACED:
            if (letters := sum(map(len, run.findall(text)))) > len(text) / 4:
                gaps = len(gap.findall(text))
                return letters < limit * (gaps + 1) if gaps or letters > 2 * limit else None
    free, glued = len(_FREE.findall(text)), len(_GLUED.findall(text))
    return free >= glued if free or glued else None


def subword_split(text: str) -> bool:
    """Are words cut into pieces, as `wo@@ rd`, `▁wor d`, `wo ##rd` or `wo ￭rd`?"""
    return any(mark in text for mark in _SPLIT_MARKS) and _SPLIT.search(text) is not None
