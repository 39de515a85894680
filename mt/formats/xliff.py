"""XLIFF 1.2: translation units with source and target, as tools for translators exchange them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from lxml import etree

from mt.config.languages import same_language
from mt.config.schema import Langs
from mt.errors import DataError
from mt.files import open_binary
from mt.formats.exchange import Unit
from mt.formats.markup import Element, Tree, child, core, elements, empty, plain, put
from mt.formats.pairs import UNREVIEWED, UNTRANSLATED, Pair, one_line

NEW = frozenset(("new", "needs-translation"))
"""States of a target that is no translation yet."""


def read_xliff(path: Path, *, langs: Langs | None = None) -> Iterator[Pair]:
    """Source and target of each unit, without inline codes; the origin is `file:original:unit`.

    A file from the target to the source language of `langs` is read the other way round. A unit without target has the flaw
    `untranslated`, one whose target's state begins with needs- the flaw `not reviewed`. Raises DataError for broken XML, another version,
    and other languages.
    """
    swapped, original = False, ""
    with open_binary(path) as stream:
        for event, tag, element in elements(stream, str(path), root="xliff", tags=("xliff", "file", "trans-unit")):
            place = f"{path}:{element.sourceline}"
            if event == "start" and tag == "xliff":
                check_version(element, place)
            elif event == "start" and tag == "file":
                original = element.get("original") or ""
                swapped = is_swapped(element, langs, place)
            elif event == "end" and tag == "trans-unit":
                source, target = texts(element)
                sides = (target, source) if swapped else (source, target)
                yield Pair(*sides, origin(element, path.name, original), flaw(element))


def check_version(root: Element, place: str) -> None:
    """Raise DataError, beginning with `place`, unless it is version 1."""
    version = root.get("version") or ""
    if version.startswith("2"):
        raise DataError(f"{place}: is XLIFF {version}, but 1.2 is read; save or convert it as 1.2")


def is_swapped(file: Element, langs: Langs | None, place: str) -> bool:
    """Whether a <file> goes from target to source language. Raises DataError, beginning with `place`, if it has other languages."""
    there = file.get("source-language"), file.get("target-language")

    def fits(*wanted: str) -> bool:
        return all(code is None or same_language(code, other) for code, other in zip(there, wanted, strict=True))

    if langs is None or fits(langs.src, langs.tgt):
        return False
    if fits(langs.tgt, langs.src):
        return True
    found = " to ".join(code or "?" for code in there)
    raise DataError(f"{place}: goes from {found}, not from {langs.src} to {langs.tgt}; is this the right file? else give its langs")


def origin(unit: Element, name: str, original: str) -> str:
    """`app.xlf:main.ui:greeting`; the line where a unit has no id."""
    unit_id = unit.get("id") or f"line {unit.sourceline}"
    return ":".join(one_line(part) for part in (name, original, unit_id) if part)


def texts(unit: Element) -> tuple[str, str]:
    """Source and target of a unit, without inline codes, as one line each; empty where there is none."""
    source, target = ("" if one is None else one_line(plain(one)) for one in (child(unit, "source"), child(unit, "target")))
    return source, target


def flaw(unit: Element) -> str | None:
    """Why the file says that a unit should not be learnt from."""
    target = child(unit, "target")
    if target is None or not plain(target).strip():
        return UNTRANSLATED
    state = target.get("state") or ""
    if state in NEW:
        return UNTRANSLATED
    return UNREVIEWED if state.startswith("needs-") else None


class XliffDocument:
    """A catalogue to be filled in: each unit gets a target."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._tree, self._name = Tree(stream, name, root="xliff", tags=["file", "trans-unit"]), name
        check_version(self._tree.root, f"{name}:{self._tree.root.sourceline}")

    def units(self, sources: Sequence[str], tgt: str | None, *, retranslate: bool) -> Iterator[Unit]:
        """One a unit, or one for each of its segments. Those that are not to be translated, says the file, are left out.

        Raises DataError for a <file> whose source or target language is another one.
        """
        for file in self._tree.elements("file"):
            source, there = file.get("source-language"), file.get("target-language")
            what = None
            if tgt and there and not same_language(there, tgt):
                what = f"target-language is {there}, but the translation would be in {tgt}"
            elif sources and source and not any(same_language(source, one) for one in sources):
                what = f"source-language is {source}, but the model translates from {', '.join(sources)}"
            if what:
                raise DataError(f"{self._name}:{file.sourceline}: {what}; is this the right file, or the right model?")
            if tgt and not there:
                self._tree.set(file, "target-language", tgt)
            for unit in list(file.iter("{*}trans-unit")):
                if not is_fixed(unit) and child(unit, "source") is not None:
                    yield from self._of(unit, origin(unit, self._name, file.get("original") or ""), retranslate)

    def _of(self, unit: Element, place: str, retranslate: bool) -> Iterator[Unit]:
        source, target = child(unit, "source"), child(unit, "target")
        there = "" if target is None else core(target)
        if retranslate or not there or (flaw(unit) == UNTRANSLATED and there == core(source)):
            parts = segments(source_of(unit))
            for segment in parts:
                yield Unit(place, core(segment), there if parts == [source] else "", True, unit)
        else:
            yield Unit(place, core(source), there, False, unit)

    def written(self, units: Iterator[Unit]) -> Iterator[bytes]:
        """The whole file; new targets have the state needs-review-translation."""
        for _, group in groupby(units, key=lambda unit: unit.place):
            texts = list(group)
            if any(one.filled or (one.wanted and not one.source) for one in texts):
                fill(texts[0].place, [one.target for one in texts])
                self._tree.replace(texts[0].place)
        yield self._tree.data()


def is_fixed(unit: Element) -> bool:
    """Whether the file says that a unit is not to be translated."""
    return any(one.get("translate") == "no" for one in (unit, *unit.iterancestors()))


def source_of(unit: Element) -> Element:
    """The source of a unit, cut into segments if the file has it so."""
    segmented = child(unit, "seg-source")
    return segmented if segmented is not None and segments(segmented)[0] is not segmented else child(unit, "source")


def segments(source: Element) -> list[Element]:
    """The parts of a source that are translated one by one: those marked as segments, else all of it."""
    return [one for one in source.iter("{*}mrk") if one.get("mtype") == "seg"] or [source]


def fill(unit: Element, texts: list[str]) -> None:
    """Put the translations of a unit's segments into its target, which is made if there is none."""
    source, target = source_of(unit), child(unit, "target")
    if target is None:
        before = child(unit, "seg-source")
        before = child(unit, "source") if before is None else before
        assert before is not None
        target = etree.Element(etree.QName(etree.QName(before).namespace, "target"), nsmap=unit.nsmap)
        tail = before.tail
        before.addnext(target)
        target.tail, before.tail = tail, unit.text
    empty(target)
    places = [target]
    if segments(source) != [source]:
        copied = deepcopy(source)
        places = segments(copied)
        target.text = copied.text
        target.extend(copied)
    for text, segment, place in zip(texts, segments(source), places, strict=True):
        if place is not target:
            empty(place)
        put(text, segment, place)
    if unit.get("approved") == "yes":
        unit.set("approved", "no")
    target.set("state", "needs-review-translation")
    target.set("state-qualifier", "mt-suggestion")
