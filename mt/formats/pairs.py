"""What a pair is, and how one is taken from a record with named fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mt.config.schema import Fields, Langs
from mt.errors import DataError

EMPTY = "empty side"
UNTRANSLATED, FUZZY, OBSOLETE, UNREVIEWED = "untranslated", "fuzzy", "obsolete", "not reviewed"
"""Flaws that files tell of: no translation, a guessed one, one that is no longer used, one that nobody has looked at."""

BREAKS = str.maketrans("\t\n\r", "   ")


class Pair(NamedTuple):
    """A source segment, the target segment that translates it, and where they come from, such as `train.en.gz:17`."""

    src: str
    tgt: str
    origin: str
    flaw: str | None = None
    """Why its file says that it should not be used, such as `fuzzy`."""

    @property
    def sides(self) -> tuple[str, str]:
        """Source and target."""
        return self.src, self.tgt


def drop_reason(pair: Pair) -> str | None:
    """What its file says against it, `empty side` if one side holds nothing but white space, else None."""
    return pair.flaw or (None if pair.src.strip() and pair.tgt.strip() else EMPTY)


def one_line(text: str) -> str:
    """The text with each TAB, line feed and carriage return turned into a space, so that a segment is always one line of one column."""
    return text.translate(BREAKS)


def flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The record without nesting: `{"translation": {"en": "a"}}` becomes `{"translation.en": "a"}`."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat.update(flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value})
    return flat


def choose_fields(names: Iterable[str], *, fields: Fields | None, langs: Langs | None, where: str) -> Fields:
    """The fields of the two sides: those asked for, else `src` and `tgt`, the two language codes, or these under `translation`.

    `names` are the flat names there are. Raises DataError, beginning with `where`, if none of these is there.
    """
    names = list(names)
    wanted = [fields] if fields else [Fields(src="src", tgt="tgt")]
    if langs and not fields:
        wanted += [Fields(src=f"{prefix}{langs.src}", tgt=f"{prefix}{langs.tgt}") for prefix in ("", "translation.")]
    for choice in wanted:
        if choice.src in names and choice.tgt in names:
            return choice
    tried = ", nor ".join(f"`{choice.src}` and `{choice.tgt}`" for choice in wanted)
    raise DataError(f"{where}: no fields {tried}; {listed(names)} (choose with fields: {{src: …, tgt: …}})")


def text_of(record: Mapping[str, Any], field: str, *, where: str) -> str:
    """The text in a field of a flat record, as one line. Raises DataError, beginning with `where`, if there is none."""
    if field not in record:
        raise DataError(f"{where}: no field `{field}`; {listed(record)}")
    value = record[field]
    if not isinstance(value, str):
        raise DataError(f"{where}: field `{field}` is {json.dumps(value, ensure_ascii=True)[:40]}, expected a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(value[error.start]):04x}"
        raise DataError(f"{where}: field `{field}` holds half a character, {half} (a surrogate without its partner)") from None
    return one_line(value)


def counted(number: float, noun: str) -> str:
    """`1 line`, `2 lines`, `0.5 minutes`."""
    return f"{number:.10g} {noun}" if number == 1 else f"{number:.10g} {noun}s"


def listed(names: Iterable[str], most: int = 12) -> str:
    """`there are: …` for a message, cut after `most` names."""
    names = list(names)
    return f"there are: {', '.join(names[:most]) or 'none'}{', …' if len(names) > most else ''}"
