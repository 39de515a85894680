"""Every kind of finding: from which share on it is told, and how bad it is then; what it says, and what helps.

Shares are of the pairs of a corpus or of the lines of a side, unless the reason says otherwise. `docs/doctor.md` shows this table.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from mt.extras import install


class Severity(IntEnum):
    """How bad a finding is: with an error the exit code is 2, with a warning it is 1 if --strict asks for that."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


ANY = 0.0
"""A single one is enough."""
NEVER = 2.0
"""More than any share."""


class Bounds(NamedTuple):
    """Least shares of a kind."""

    note: float
    """Of what is told at all."""
    warning: float
    error: float
    because: str
    """Why these."""

    def severity(self, share: float) -> Severity | None:
        """Of a finding with this share; None for one that is not told."""
        bounds = (self.error, Severity.ERROR), (self.warning, Severity.WARNING), (self.note, Severity.NOTE)
        return next((severity for bound, severity in bounds if share > 0 and share >= bound), None)


_STOPS = "training would stop there"
_FEW = "a few slip into any corpus from the web"

BOUNDS = {
    # ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────
    "unreadable": Bounds(ANY, ANY, ANY, _STOPS),
    "no_pairs": Bounds(ANY, ANY, ANY, _STOPS),
    "line_counts": Bounds(ANY, ANY, ANY, _STOPS),
    "columns": Bounds(ANY, ANY, ANY, _STOPS),
    "undecodable": Bounds(ANY, ANY, ANY, _STOPS),
    "alignment": Bounds(ANY, ANY, ANY, "each pair from there on is a wrong one"),
    "strangers": Bounds(ANY, ANY, NEVER, "a thousand lines or more that are no translations, but single words and names may look so"),
    # ── characters ──────────────────────────────────────────────────────────────────────────────────────────────────
    "carriage_returns": Bounds(ANY, ANY, NEVER, "it sticks to a word"),
    "crlf": Bounds(ANY, NEVER, NEVER, "mt drops it on reading"),
    "bom": Bounds(ANY, ANY, NEVER, "it sticks to a word; files were put together"),
    "file_bom": Bounds(ANY, NEVER, NEVER, "mt drops it on reading"),
    "nul": Bounds(ANY, ANY, NEVER, "no text has any: the file may be damaged"),
    "control": Bounds(ANY, ANY, NEVER, "no text has any"),
    "c1_controls": Bounds(ANY, ANY, NEVER, "quotes, dashes and the euro sign of Windows-1252, read as Latin-1, become these"),
    "line_separators": Bounds(ANY, 1e-3, NEVER, "mt reads on, but other programs will count other lines"),
    "private_use": Bounds(ANY, 1e-4, NEVER, f"it means nothing without its font; {_FEW}"),
    "replacement": Bounds(ANY, 1e-4, NEVER, f"letters are lost; {_FEW}"),
    "mojibake": Bounds(ANY, 1e-4, NEVER, f"the model learns wrong spellings; {_FEW}"),
    "unnormalised": Bounds(ANY, 1e-4, NEVER, f"one word in two spellings is two words; {_FEW}"),
    "invisible": Bounds(ANY, 1e-3, NEVER, "they cut words in two, but some scripts need some of them"),
    # ── pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────
    "empty": Bounds(ANY, 1e-3, NEVER, "training drops them; many mean that a side was not translated"),
    "flawed": Bounds(ANY, NEVER, NEVER, "training drops them"),
    "duplicates": Bounds(ANY, 0.05, NEVER, "they weigh more in training, and some are natural"),
    "duplicates_normalised": Bounds(ANY, 0.2, NEVER, "they teach little, and some are natural"),
    "same_source": Bounds(ANY, NEVER, NEVER, "there is more than one way to say it"),
    "same_target": Bounds(ANY, NEVER, NEVER, "there is more than one way to say it"),
    "copies": Bounds(ANY, 5e-3, 0.5, "the most harmful noise of all (Khayrallah and Koehn 2018), but names are natural copies"),
    "ratio": Bounds(ANY, 5e-3, NEVER, "a side has lost or gained something; free translation gives a few"),
    "long_lines": Bounds(ANY, 1e-3, NEVER, "these are paragraphs, and few of them fit a batch"),
    "numbers": Bounds(ANY, 0.05, NEVER, "good translations, too, convert some dates and units"),
    # ── text ────────────────────────────────────────────────────────────────────────────────────────────────────────
    "script": Bounds(ANY, 5e-3, 0.5, "names are natural; at half a side the language is wrong, or the sides are swapped"),
    "language": Bounds(ANY, 0.02, NEVER, "to tell languages is guesswork, and short lines are easily taken for another"),
    "unidentified": Bounds(ANY, NEVER, NEVER, "the library that tells languages is an extra"),
    "turned": Bounds(ANY, ANY, NEVER, "the commonest words of each side tell which language it is in"),
    "tokenised": Bounds(0.05, 0.2, NEVER, "of the lines that show it or its contrary; quoted fragments look so"),
    "lower_cased": Bounds(0.5, 0.9, NEVER, "of the lines in scripts with capitals; chats have many without"),
    "subwords": Bounds(ANY, 1e-3, NEVER, "no plain text has these marks"),
    "markup": Bounds(ANY, 0.01, NEVER, "manuals and web pages have some"),
    # ── model ───────────────────────────────────────────────────────────────────────────────────────────────────────
    "no_tokenizer": Bounds(ANY, ANY, ANY, _STOPS),
    "lost_characters": Bounds(ANY, 1e-6, NEVER, "of all characters; the model can neither read nor write them"),
    "byte_characters": Bounds(ANY, 0.01, NEVER, "of all characters; three pieces a letter are slow and hard to learn"),
    "length_limit": Bounds(ANY, 0.01, NEVER, "training drops them; a few are no loss"),
    # ── held-out sets ───────────────────────────────────────────────────────────────────────────────────────────────
    "leakage": Bounds(ANY, ANY, 0.01, "of a held-out set, not counting those nearly the same: more than a hundredth moves its score"),
    "overlap": Bounds(ANY, NEVER, NEVER, "it harms no score"),
}


class Words(NamedTuple):
    """What is said of a kind."""

    says: str
    """Of pairs, lines or characters, beginning with a plural verb where these are counted."""
    cure: str
    """What helps."""
    setting: str = ""
    """The setting under data.filters that keeps all of them out of training."""


_RAW = "get the raw text"

WORDS = {
    "unreadable": Words("reading ends early", "reading ended there"),
    "no_pairs": Words("there are no pairs", "are these the right files?"),
    "line_counts": Words("the two sides have different numbers of lines", "line n of one file must translate line n of the other"),
    "columns": Words("have too few or too many columns", "mend them; --fix leaves them out"),
    "undecodable": Words("hold bytes that are not UTF-8", "save the file as UTF-8; --fix leaves them out"),
    "alignment": Words("one side is shifted against the other", "find the line that is missing there, or one too many"),
    "strangers": Words("lengths of lines do not agree with those of their partners", "are both sides in one order, of one edition?"),
    "carriage_returns": Words("hold a carriage return inside", "--fix makes it a space"),
    "crlf": Words("end with a carriage return, as on Windows", "none needed; --fix removes it"),
    "bom": Words("hold a byte order mark inside", "--fix removes it"),
    "file_bom": Words("begin with a byte order mark", "none needed; --fix removes it"),
    "nul": Words("hold NUL", "--fix removes it", "control: true"),
    "control": Words("hold a control character", "--fix removes it", "control: true"),
    "c1_controls": Words(
        "hold a character of U+0080 to U+009F, as Windows-1252 read as Latin-1 does",
        "convert the source again, from Windows-1252, or mend it with ftfy; --fix leaves them as they are",
        "control: true",
    ),
    "line_separators": Words("hold U+2028, VT, FF or another mark that programs may take for a line end", "--fix makes it a space"),
    "private_use": Words("hold a private-use character", "leave them out", "control: true"),
    "replacement": Words("hold U+FFFD, which a wrong decoding leaves", "convert the source again, or leave them out", "control: true"),
    "mojibake": Words("hold UTF-8 read as Windows-1252, such as `Ã¤` or `â€™`", "convert the source again, or mend it with ftfy"),
    "unnormalised": Words("are not in Unicode's composed form, NFC", "--fix composes them"),
    "invisible": Words("hold a soft hyphen, a zero-width space or a direction mark", "--fix removes soft hyphens"),
    "empty": Words("have an empty side", "none needed if they are few; else look whether the files belong together"),
    "flawed": Words("are marked as unfit by their file", "none needed"),
    "duplicates": Words("repeat an earlier pair", "leave them out", "duplicates: exact"),
    "duplicates_normalised": Words(
        "repeat an earlier pair, letter case, digits, punctuation and spacing not counted", "leave them out", "duplicates: normalised"
    ),
    "same_source": Words("repeat an earlier source with another target", "none needed"),
    "same_target": Words("repeat an earlier target with another source", "none needed"),
    "copies": Words("have two equal sides", "leave them out", "copies: true"),
    "ratio": Words("are far from the usual ratio of lengths", "look at them, then leave them out", "max_ratio: 3"),
    "long_lines": Words("have a side of more than 1000 characters", "split them into sentences, or leave them out", "max_chars: 1000"),
    "numbers": Words("have digits on both sides, but not the same", "look at the examples"),
    "script": Words("are mostly in letters of another script", "leave them out", "scripts: true"),
    "language": Words("seem to be in another language", "look at them, then leave them out", "languages: 0.9"),
    "unidentified": Words("languages were not looked at", f"to have them looked at: {install('languages')}"),
    "turned": Words(
        "the sides are the other way round than in a dev or test set, by their words",
        "are the sides swapped? turn columns, or src and tgt, round",
    ),
    "tokenised": Words(
        "are tokenised (spaces before punctuation, or between words of a script without spaces)",
        f"{_RAW}, or detokenise it: translations come out as the training text is",
    ),
    "lower_cased": Words("have small letters only", f"{_RAW}: the model would never write a capital"),
    "subwords": Words("are cut into sub-words, as in `wo@@ rd`", f"{_RAW}: mt cuts words itself"),
    "markup": Words("hold HTML or XML", "strip it, or leave them out", "markup: true"),
    "no_tokenizer": Words("no tokenizer can be trained", "it needs pairs that can be used"),
    "lost_characters": Words("become unknown", "set tokenizer.byte_fallback: true, or raise tokenizer.vocab_size"),
    "byte_characters": Words("are spelled as bytes", "raise tokenizer.vocab_size if they matter"),
    "length_limit": Words("are longer than data.max_pieces", "split them into sentences, or raise data.max_pieces"),
    "leakage": Words("are met in the training data", "--fix leaves such pairs out of the training data"),
    "overlap": Words("are met in other held-out sets", "none needed"),
}
