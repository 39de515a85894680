"""Translation memories, TMX 1.4: units with variants of one text in several languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from lxml import etree

from mt.config.languages import closeness, same_language
from mt.config.schema import Langs
from mt.errors import DataError
from mt.files import open_binary
from mt.formats.exchange import Unit
from mt.formats.markup import Element, Tree, child, core, elements, empty, local, plain, put
from mt.formats.pairs import UNTRANSLATED, Pair, listed, one_line

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
ANY = "*all*"
"""What a header has for srclang when any language may be the source."""
UNKNOWN = "?"
"""Stands for the target language of a memory that has none yet."""


def read_tmx(path: Path, *, langs: Langs | None = None) -> Iterator[Pair]:
    """The two variants of each unit, without inline codes; the origin is the line of the unit, with its tuid if it has one.

    The languages are those given, `en` standing for en-US as well; without `langs` the source language of unit or header, and the only
    other one there is. A unit without one of the two gives a pair with an empty side and the flaw `untranslated`. Raises DataError for
    broken XML, for a file in which no unit has both languages, and for more than two of them where nothing says which.
    """
    header_lang: str | None = None
    seen: Counter[str] = Counter()
    met = False
    with open_binary(path) as stream:
        for event, tag, element in elements(stream, str(path), root="tmx", tags=("header", "tu")):
            if tag == "header":
                header_lang = element.get("srclang")
            elif event == "end":
                variants = segments(element)
                seen.update(variants.keys())
                place = f"{path}:{element.sourceline}"
                chosen = langs or languages(element.get("srclang") or header_lang, seen, place=place)
                src, tgt = variant(variants, chosen.src), variant(variants, chosen.tgt)
                met = met or not (src is None or tgt is None)
                texts = ["" if one is None else one_line(plain(one)) for one in (src, tgt)]
                flaw = UNTRANSLATED if src is None or tgt is None else None
                yield Pair(texts[0], texts[1], origin(element, path.name), flaw)
    if seen and not met:
        wanted = f"both {langs.src} and {langs.tgt}" if langs else "two languages"
        counts = listed(f"{lang} ({count})" for lang, count in seen.most_common())
        raise DataError(f"{path}: no unit has {wanted}; {counts}; choose with langs: {{src: …, tgt: …}}")


def origin(unit: Element, name: str) -> str:
    """`memory.tmx:120`, or `memory.tmx:120 (tuid 17)` of a unit with a name."""
    tuid = unit.get("tuid")
    return f"{name}:{unit.sourceline}" + (f" (tuid {one_line(tuid)})" if tuid else "")


def segments(unit: Element) -> dict[str, Element]:
    """The segment of the first variant of each language, in the unit's order, by language code as written there."""
    found: dict[str, Any] = {}
    for one in unit:
        if local(one) == "tuv" and (lang := one.get(XML_LANG) or one.get("lang")):
            segment = child(one, "seg")
            if segment is not None:
                found.setdefault(lang, segment)
    return found


def variant(variants: Mapping[str, Element], wanted: str) -> Element | None:
    """The one in a language, see `mt.config.languages.closeness`; the closest, and the first of equally close ones."""
    close = {code: rank for code in variants if (rank := closeness(code, wanted)) is not None}
    return variants[min(close, key=lambda code: close[code])] if close else None


def languages(src: str | None, seen: Counter[str], *, tgt: str | None = None, place: str) -> Langs:
    """The source language, and the target if it is known, else the only other language seen so far.

    Raises DataError, beginning with `place`, if that is not clear.
    """
    cure = f"choose two with langs: {{src: …, tgt: …}}; {listed(seen)}"
    if not src or src.lower() == ANY:
        raise DataError(f"{place}: the header names no source language; {cure}")
    others = [tgt] if tgt else [code for code in seen if closeness(code, src) is None]
    if any(closeness(code, others[0]) is None for code in others):
        raise DataError(f"{place}: {len(seen)} languages, and nothing says which is the target; {cure}")
    return Langs(src=src, tgt=others[0] if others else UNKNOWN)


def source_language(told: str | None, known: Sequence[str], seen: Counter[str], *, place: str) -> str:
    """Which language is the source: the only one the model knows, else the one that unit or header tell, else the only one that is there.

    Raises DataError, beginning with `place`, if that is not clear.
    """
    if len(known) == 1:
        return known[0]
    if told and told.lower() != ANY and (not known or any(same_language(told, one) for one in known)):
        return told
    there = [one for one in known if any(closeness(code, one) is not None for code in seen)]
    if len(there) == 1:
        return there[0]
    what = f"srclang is {told or 'missing'}" + (f", and the model translates from {', '.join(known)}" if known else "")
    raise DataError(f"{place}: {what}; set srclang in the header to the language to translate from ({listed(seen)})")


class TmxDocument:
    """A memory to be filled in: each unit gets a variant in the target language."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._tree, self._name = Tree(stream, name, root="tmx", tags=["tu"]), name
        self._target = ""

    def units(self, sources: Sequence[str], tgt: str | None, *, retranslate: bool) -> Iterator[Unit]:
        """One a unit; languages that are not known are told as in `read_tmx`. Raises DataError where it is not clear which they are."""
        units = self._tree.elements("tu")
        seen = Counter(code for one in units for code in segments(one))
        header = child(self._tree.root, "header")
        header_lang = None if header is None else header.get("srclang")
        for one in units:
            variants = segments(one)
            place = f"{self._name}:{one.sourceline}"
            src = source_language(one.get("srclang") or header_lang, sources, seen, place=place)
            chosen = languages(src, seen, tgt=tgt, place=place)
            if chosen.tgt == UNKNOWN:
                cure = "add a variant in it to the first unit"
                raise DataError(f"{self._name}: neither the file nor the model says which language to translate into; {cure}")
            source, target = variant(variants, chosen.src), variant(variants, chosen.tgt)
            existing = "" if target is None else core(target)
            wanted = source is not None and (retranslate or not existing)
            self._target = self._target or next((code for code in seen if variant({code: code}, chosen.tgt)), chosen.tgt)
            yield Unit(origin(one, self._name), "" if source is None else core(source), existing, wanted, (one, source, target))

    def written(self, units: Iterator[Unit]) -> Iterator[bytes]:
        """The whole file."""
        for unit in units:
            one, source, target = unit.place
            if source is not None and (unit.filled or (unit.wanted and not unit.source)):
                if target is None:
                    target = self._variant(one, source)
                empty(target)
                put(unit.target, source, target)
                self._tree.replace(one)
        yield self._tree.data()

    def _variant(self, unit: Element, source: Element) -> Element:
        """The empty segment of a new variant, the last of its unit and laid out as that of the source."""
        like = source.getparent()
        last = [one for one in unit if local(one) == "tuv"][-1]
        new = etree.Element(like.tag, {lang_key(like): self._target, "creationtool": "mt"}, nsmap=like.nsmap)
        tail = last.tail
        last.addnext(new)
        new.text, new.tail, last.tail = like.text, tail, unit.text
        segment = etree.SubElement(new, source.tag)
        segment.tail = like[-1].tail
        return segment


def lang_key(variant: Element) -> str:
    """The attribute that names the language, `lang` in old files."""
    return XML_LANG if variant.get(XML_LANG) else "lang"
