"""gettext catalogues to be filled in. Only what changes is written anew; every other line stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import BinaryIO

import polib

from mt.config.languages import closeness, language, same_language
from mt.errors import DataError
from mt.files import MAX_DOCUMENT_BYTES, read_whole
from mt.formats.exchange import Unit
from mt.formats.plurals import Plurals, from_header, of_language
from mt.formats.po import FIELD, TEMPLATE_CHARSET, Message, catalogue_of, forms, header_value

WIDTH = 79
"""Columns at which gettext's own tools fold strings."""


class PoDocument:
    """A catalogue or template."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._name = name
        data = read_whole(stream, name, max_bytes=MAX_DOCUMENT_BYTES)
        self._catalogue = catalogue_of(data, name)
        self._header = self._catalogue.header
        self._line_end = "\r\n" if b"\r\n" in data else "\n"
        longest = max((len(line) for line in self._catalogue.lines if not line.startswith("#")), default=0)
        self._width = WIDTH if longest <= WIDTH + 1 else 2**30  # where strings are not folded, new ones are not either

    def units(self, sources: Sequence[str], tgt: str | None, *, retranslate: bool) -> Iterator[Unit]:  # noqa: ARG002 (a file names no source)
        """One a message, or one for each of its plural forms; obsolete messages are left out.

        Raises DataError for a catalogue in another language than the target, unless all of it is to be translated anew.
        """
        plurals = self._plurals(tgt, retranslate)
        for message in self._catalogue.messages:
            if message.is_header or message.entry.obsolete:
                continue
            texts = forms(message.entry, plurals)
            if retranslate and message.entry.msgid_plural:
                del texts[plurals.number :]
            for form, (source, target) in enumerate(texts):
                wanted = retranslate or not target.strip()
                yield Unit(f"{self._name}:{message.number}", source, target, wanted, (message, form))

    def _plurals(self, tgt: str | None, retranslate: bool) -> Plurals:
        """The plural forms to fill in; what the header does not know yet is put into it."""
        plurals = from_header(header_value(self._header, "Plural-Forms"))
        there = header_value(self._header, "Language").partition("@")[0]  # sr@latin
        if not self._header or not tgt:
            return plurals or self._catalogue.plurals
        if closeness(there, tgt) is None:
            if language(f"x.{there}") and not same_language(there, tgt) and not retranslate:
                cure = "empty the Language of its header, or give --retranslate, if all of it is to be replaced"
                raise DataError(f"{self._name}: is in {there}, but the translation would be in {tgt}; {cure}")
            if there and of_language(tgt):
                plurals = None  # those of the other language
            self._header = with_value(self._header, "Language", tgt.replace("-", "_"))
        if not plurals and (of_target := of_language(tgt)):
            self._header = with_value(self._header, "Plural-Forms", of_target.header)
            return of_target
        return plurals or self._catalogue.plurals

    def written(self, units: Iterator[Unit]) -> Iterator[bytes]:
        """The whole file; a message with new text is flagged fuzzy. What its encoding cannot hold makes it UTF-8."""
        changed: dict[int, list[str]] = {}
        for number, group in groupby(units, key=lambda unit: unit.place[0].number):
            texts = list(group)
            if any(unit.filled for unit in texts):
                changed[number] = self._filled(texts[0].place[0], [unit.target for unit in texts])
        utf8 = with_value(self._header, "Content-Type", "text/plain; charset=UTF-8")
        if changed and header_value(self._header, "Content-Type").lower().endswith(f"={TEMPLATE_CHARSET}"):
            self._header = utf8
        try:
            data = self._text(changed).encode(self._catalogue.charset)
        except UnicodeEncodeError:
            self._header = utf8
            data = self._text(changed).encode()
        yield data

    def _text(self, changed: dict[int, list[str]]) -> str:
        lines: list[str] = []
        for message in self._catalogue.messages:
            old = self._lines(message)
            if message.is_header and self._header != self._catalogue.header:
                old = replaced(old, folded("msgstr", self._header, 2**30))
            lines += changed.get(message.number, old)
        return "".join(f"{line}{self._line_end}" for line in lines or self._catalogue.lines)

    def _lines(self, message: Message) -> list[str]:
        return self._catalogue.lines[message.lines.start : message.lines.stop]

    def _filled(self, message: Message, texts: list[str]) -> list[str]:
        """The lines of a message with these translations, and the flag."""
        keywords = [f"msgstr[{form}]" for form in range(len(texts))] if message.entry.msgid_plural else ["msgstr"]
        strings = [line for keyword, text in zip(keywords, texts, strict=True) for line in folded(keyword, text, self._width)]
        lines = replaced(self._lines(message), strings)
        return lines if message.entry.fuzzy else flagged(lines)


def with_value(header: str, name: str, value: str) -> str:
    """The header with a value changed, or added at its end."""
    line = f"{name}: {value}"
    changed, count = re.subn(rf"^{name}:.*", lambda _: line, header, count=1, flags=re.MULTILINE | re.IGNORECASE)
    return changed if count else "\n".join([*header.removesuffix("\n").split("\n"), line, ""])


def replaced(lines: list[str], strings: list[str]) -> list[str]:
    """The lines of a message with other lines in place of its translation."""
    fields = [(number, found[1]) for number, line in enumerate(lines) if (found := FIELD.match(line.strip()))]
    first = next(number for number, keyword in fields if keyword and keyword.startswith("msgstr"))
    last = fields[-1][0]
    return lines[:first] + strings + lines[last + 1 :]


def flagged(lines: list[str]) -> list[str]:
    """The lines of a message with the flag fuzzy, first of its flags."""
    for number, line in enumerate(lines):
        if line.startswith("#,"):
            return [*lines[:number], f"#, fuzzy,{line[2:]}", *lines[number + 1 :]]
        if line.startswith("#|") or FIELD.match(line.strip()):
            return [*lines[:number], "#, fuzzy", *lines[number:]]
    raise AssertionError(lines)


def folded(keyword: str, text: str, width: int) -> list[str]:
    """A field as gettext writes it: on one line if it fits, else a line for each line of text, folded after spaces."""
    whole = f'{keyword} "{polib.escape(text)}"'
    if "\n" not in text[:-1] and len(whole) <= width:
        return [whole]
    rows = []
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        row = ""
        for word in re.findall(r"\S*\s+|\S+", polib.escape(line)):
            if row and len(row) + len(word) > width - 2:
                rows.append(row)
                row = ""
            row += word
        rows.append(row)
    return [f'{keyword} ""', *(f'"{row}"' for row in rows)]
