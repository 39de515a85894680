"""gettext catalogues, PO and POT: message and translation, with plural forms, fuzzy, obsolete and untranslated entries told apart."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polib

from mt.errors import DataError
from mt.files import MAX_DOCUMENT_BYTES, decode_lines, open_binary, read_whole
from mt.formats.pairs import FUZZY, OBSOLETE, UNTRANSLATED, Pair, counted, one_line
from mt.formats.plurals import Plurals, from_header

FIELD = re.compile(r'(?:#~\s*)?(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?)\s*)?"(?:[^"\\]|\\.)*"')
"""A line that is no comment: a keyword with a string, or a string that goes on with one; obsolete or not."""
CHARSET = re.compile(rb'"Content-Type:[^"\n]*charset=([\w.:-]+)', re.IGNORECASE)
TEMPLATE_CHARSET = "charset"
LAST = 'msgid "end"', 'msgstr ""'


class _Lines(str):
    """Text whose lines end at a line feed only, for polib, which asks for `splitlines`."""

    def splitlines(self, keepends: bool = False) -> list[str]:  # noqa: ARG002 (polib's call has none)
        return self.split("\n")


class _Catalogue(polib.POFile):
    """Keeps the header among its entries: polib takes it out where it finds it."""

    def find(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class Message:
    """An entry with its place in the file."""

    entry: polib.POEntry
    lines: range
    """Its lines, from 0, with the comments above it."""
    number: int
    """The line of its msgid, from 1."""

    @property
    def is_header(self) -> bool:
        """The entry without msgid and context, which holds the catalogue's own data."""
        return not self.entry.msgid and not self.entry.msgctxt and not self.entry.obsolete


@dataclass(frozen=True)
class Catalogue:
    """What a file holds."""

    lines: list[str]
    charset: str
    messages: list[Message]
    """All of them; together they have all lines, if there are any messages."""

    @property
    def header(self) -> str:
        """What the header says, a value a line; empty where there is no header."""
        return next((one.entry.msgstr for one in self.messages if one.is_header), "")

    @property
    def plurals(self) -> Plurals:
        """The plural forms of the header, else as many as the first plural entry has, one for one thing and the others for more."""
        first = next((one.entry.msgstr_plural for one in self.messages if one.entry.msgid_plural), {0: "", 1: ""})
        count = len(first)
        return from_header(header_value(self.header, "Plural-Forms")) or Plurals(count, 0 if count > 1 else None, "")


def header_value(header: str, name: str) -> str:
    """A value of a header; empty if it is not there."""
    found = re.search(rf"^{name}:(.*)", header, re.MULTILINE | re.IGNORECASE)
    return found[1].strip() if found else ""


def read_po(path: Path) -> Iterator[Pair]:
    """Each message with its translation, of plural ones each form with the source text it is for; the origin is the line of the msgid.

    A form for one thing translates msgid, all others msgid_plural. Flaws: `obsolete`, `untranslated`, `fuzzy`, in this order. Raises
    DataError naming the line for what is no PO, and for text that is not in the encoding of the header (UTF-8 if it names none).
    """
    with open_binary(path) as stream:
        catalogue = catalogue_of(read_whole(stream, str(path), max_bytes=MAX_DOCUMENT_BYTES), str(path))
    plurals = catalogue.plurals
    for message in catalogue.messages:
        if message.is_header:
            continue
        entry = message.entry
        origin = f"{path.name}:{message.number}"
        for source, target in forms(entry, plurals):
            flaw = OBSOLETE if entry.obsolete else UNTRANSLATED if not target.strip() else FUZZY if entry.fuzzy else None
            yield Pair(one_line(source), one_line(target), origin, flaw)


def forms(entry: polib.POEntry, plurals: Plurals) -> list[tuple[str, str]]:
    """Source and translation of an entry, or of each of its plural forms."""
    if not entry.msgid_plural:
        return [(entry.msgid, entry.msgstr)]
    count = max([plurals.number, *(form + 1 for form, text in entry.msgstr_plural.items() if text)])
    return [(plurals.source(form, entry.msgid, entry.msgid_plural), entry.msgstr_plural.get(form, "")) for form in range(count)]


def catalogue_of(data: bytes, name: str) -> Catalogue:
    """What the bytes of a file hold; `name` is the file in messages. Raises DataError as `read_po` does."""
    lines, charset = _decoded(data, name)
    for number, line in enumerate(lines, 1):
        text = re.sub(r"^#~\s+", "", line.strip())
        if text and not text.startswith("#") and not FIELD.fullmatch(text):
            raise DataError(f"{name}:{number}: no PO: {_fault(text)}")
    read = ["" if line.strip() == "#~" else line for line in lines]  # which polib calls an error
    try:
        # With an entry more polib takes the one before it for ended, whatever stands below it.
        entries = list(polib.pofile(_Lines("\n".join([*read, *LAST])), encoding="utf-8", klass=_Catalogue))[:-1]
    except OSError as error:
        found = re.search(r"\(line (\d+)\)(?:: (.*))?", str(error))
        number, what = (int(found[1]), found[2]) if found else (1, str(error))
        if number > len(lines):
            raise DataError(f"{name}:{len(lines)}: no PO: it ends within an entry; is the file whole?") from None
        raise DataError(f"{name}:{number}: no PO: {what or 'this line cannot follow the ones before it'}") from None
    return Catalogue(lines, charset, list(_placed(entries, lines, name)))


def _placed(entries: list[polib.POEntry], lines: list[str], name: str) -> Iterator[Message]:
    """The entries with their lines. Raises DataError for one without translation field: there the file was cut, or badly edited."""
    starts = [max((entry.linenum or 0) - 1, 0) for entry in entries]
    for entry, (start, end) in zip(entries, pairwise([*starts, len(lines)]), strict=True):
        found = [(number, FIELD.match(lines[number].strip())) for number in range(start, end)]
        keywords = [(number + 1, field[1]) for number, field in found if field and field[1]]
        msgids = [number for number, keyword in keywords if keyword == "msgid"]
        if len(msgids) != 1:
            raise DataError(f"{name}:{(msgids[1:] or [start + 1])[0]}: no PO: an entry with {counted(len(msgids), 'msgid')}")
        if not keywords[-1][1].startswith("msgstr"):
            raise DataError(f"{name}:{keywords[-1][0]}: no PO: an entry without msgstr")
        yield Message(entry, range(start, end), msgids[0])


def _fault(line: str) -> str:
    """What is wrong with a line that no rule fits."""
    if '"' in line and (line.count('"') % 2 or not line.endswith('"')):
        return "a string that is not closed"
    return 'expected a comment, a keyword such as msgid with a string, or a string in "quotes"'


def _decoded(data: bytes, name: str) -> tuple[list[str], str]:
    """The lines, without their ends, and the encoding they were in."""
    found = CHARSET.search(data[: 2**16])
    charset = found[1].decode("ascii").lower() if found else "utf-8"
    try:
        charset = "utf-8" if charset == TEMPLATE_CHARSET else codecs.lookup(charset).name
    except LookupError:
        raise DataError(f"{name}: the header names the encoding {charset}, which nobody knows; write charset=UTF-8") from None
    if charset in ("utf-8", "ascii"):
        return list(decode_lines(io.BytesIO(data), name)), charset
    try:
        text = data.decode(charset)
    except (UnicodeError, LookupError) as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        cure = "save the file as UTF-8, and write charset=UTF-8"
        raise DataError(f"{name}:{line}: is not in {charset}, the encoding that its header names; {cure}") from None
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n"), charset
