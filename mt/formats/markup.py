"""XML of translation memories and catalogues, read without its dangers, and the text between the codes of a segment.

Nothing but the file itself is ever read: no DTD, no external entity, no network. A file that declares entities of its own is refused before
anything of it is expanded.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from lxml import etree

from mt.errors import DataError
from mt.files import MAX_DOCUMENT_BYTES, read_whole
from mt.unpack import CHUNK_BYTES

Element = Any
"""An element of lxml, which has no types."""

CODES = frozenset(("bpt", "ept", "it", "ph", "ut", "sub", "x", "bx", "ex"))
"""Inline elements that stand for codes of the original format; what they hold is no text. All others mark text."""

PROLOG_BYTES = 2**20
"""The root element begins within these."""

UNIT_BYTES = 16 * 2**20
"""No unit of a memory or catalogue is longer, and no comment between two; what is begun has to be held until it ends."""

# "internal": with False, external parameter entities are loaded. With collect_ids=False the DTD is loaded, whatever load_dtd says.
SAFE = {"resolve_entities": "internal", "load_dtd": False, "no_network": True, "attribute_defaults": False, "huge_tree": False}


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def elements(stream: BinaryIO, name: str, *, root: str, tags: Sequence[str]) -> Iterator[tuple[str, str, Element]]:
    """("start" or "end", tag, element) for each element with one of these tags, which are without namespace, in any namespace.

    After its end an element is emptied and what stands before it in the same parent removed: memory does not grow with the file. `name` is
    the file in messages. Raises DataError, with its line, for XML that is broken or declares entities, and for another root element.
    """
    wanted = [f"{{*}}{tag}" for tag in tags]
    parser = etree.XMLPullParser(events=("start", "end"), tag=wanted, remove_comments=True, remove_pis=True, **SAFE)
    line, held = 1, 0
    try:
        for chunk in _checked(stream, name, root=root):
            parser.feed(chunk)
            held += len(chunk)
            for event, element in parser.read_events():
                line, held = element.sourceline, 0
                yield event, local(element), element
                if event == "end":
                    _forget(element)
            if held > UNIT_BYTES:
                raise DataError(f"{name}:{line}: no <{tags[-1]}> ends in the {UNIT_BYTES >> 20} MiB after this line; is the file whole?")
        parser.close()
    except etree.XMLSyntaxError as error:
        raise _broken(error.msg, error.lineno, name) from None


class Tree:
    """An XML document as a whole, some of whose elements are changed: only these are written anew, all else stays byte for byte."""

    def __init__(self, stream: BinaryIO, name: str, *, root: str, tags: Sequence[str]) -> None:
        """Elements with one of these tags, of which none is within another with the same tag, can be changed; raises as `elements` does."""
        self._data = read_whole(stream, name, max_bytes=MAX_DOCUMENT_BYTES)
        parser = etree.XMLParser(**SAFE, strip_cdata=False)
        try:
            for chunk in _checked(io.BytesIO(self._data), name, root=root):
                parser.feed(chunk)
            self.root: Element = parser.close()
        except etree.XMLSyntaxError as error:
            raise _broken(error.msg, error.lineno, name) from None
        self._codec = _codec(self._data, self.root.getroottree().docinfo.encoding)
        self._windows = "\r\n".encode(self._codec) in self._data
        try:
            spans = _spans(self._data, tags, closing=">".encode(self._codec))
        except expat.ExpatError as error:
            raise _broken(expat.ErrorString(error.code), error.lineno, name) from None
        self._spans = {one: span for tag in tags for one, span in zip(self.root.iter(f"{{*}}{tag}"), spans[tag], strict=True)}
        self._edits: dict[tuple[int, int], bytes] = {}

    def elements(self, tag: str) -> list[Element]:
        """All that can be changed with this tag, in order."""
        return [one for one in self._spans if local(one) == tag]

    def replace(self, element: Element) -> None:
        """Have an element written as it is now."""
        text = etree.tostring(element, encoding="unicode", with_tail=False)
        for prefix, uri in element.getparent().nsmap.items():  # declared further up in the file
            text = text.replace(f' xmlns{f":{prefix}" if prefix else ""}="{uri}"', "", 1)
        self._edits[self._spans[element]] = self._encoded(text)

    def set(self, element: Element, name: str, value: str) -> None:
        """Add an attribute to an element which otherwise stays."""
        start = self._spans[element][0]
        tag = f"<{element.prefix}:{local(element)}" if element.prefix else f"<{local(element)}"
        after = start + len(tag.encode(self._codec))
        self._edits[after, after] = self._encoded(f" {name}={quoteattr(value)}")

    def _encoded(self, text: str) -> bytes:
        return (text.replace("\n", "\r\n") if self._windows else text).encode(self._codec, errors="xmlcharrefreplace")

    def data(self) -> bytes:
        """The bytes of the file with what was changed."""
        parts, done = [], 0
        for (start, end), new in sorted(self._edits.items()):
            parts += [self._data[done:start], new]
            done = end
        return b"".join([*parts, self._data[done:]])


def _codec(data: bytes, declared: str | None) -> str:
    """How Python calls the encoding of an XML file, without byte order mark."""
    if data.startswith((b"\xff\xfe", b"<\0")):
        return "utf-16-le"
    if data.startswith((b"\xfe\xff", b"\0<")):
        return "utf-16-be"
    return declared or "utf-8"


def _spans(data: bytes, tags: Sequence[str], *, closing: bytes) -> dict[str, list[tuple[int, int]]]:
    """For each tag the bytes at which its elements begin and end, in order."""
    open_at: dict[str, int] = {}
    spans: dict[str, list[tuple[int, int]]] = {tag: [] for tag in tags}
    parser = expat.ParserCreate()

    def start(name: str, _: dict[str, str]) -> None:
        open_at[name] = parser.CurrentByteIndex

    def end(name: str) -> None:
        tag = name.rpartition(":")[2]
        if tag in spans:
            spans[tag].append((open_at[name], data.index(closing, parser.CurrentByteIndex) + len(closing)))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    return spans


def _checked(stream: BinaryIO, name: str, *, root: str) -> Iterator[bytes]:
    """The bytes of a stream, given on once it is clear that the prolog declares no entity and the root element is the right one.

    That is asked of expat, which reads nothing else and stops at the first declaration, where libxml2 goes on.
    """
    began: list[str] = []
    held: list[bytes] = []
    parser = expat.ParserCreate()

    def start(tag: str, _: dict[str, str]) -> None:
        if not began and tag.rpartition(":")[2] != root:
            raise DataError(f"{name}:{parser.CurrentLineNumber}: begins with <{tag}>, expected <{root}>; is this the right kind of file?")
        began.append(tag)

    def declared(*_: object) -> None:
        what = "declares an XML entity, which could read other files or fill the memory"
        raise DataError(f"{name}:{parser.CurrentLineNumber}: {what}; remove the declaration, and write the text itself")

    parser.StartElementHandler, parser.EntityDeclHandler = start, declared
    try:
        while not began and sum(map(len, held)) < PROLOG_BYTES:
            held.append(stream.read(CHUNK_BYTES))
            parser.Parse(held[-1], not held[-1])  # an error at the end of the file, if nothing has begun
    except (ValueError, LookupError) as error:
        raise DataError(f"{name}:1: its encoding is not read ({error}); save the file as UTF-8") from None
    except expat.ExpatError as error:
        if not began:
            raise _broken(expat.ErrorString(error.code), error.lineno, name) from None
    if not began:
        raise DataError(f"{name}: no element <{root}> within the first {PROLOG_BYTES} bytes")
    yield from held
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _forget(element: Element) -> None:
    """Free an element and all before it, also before the groups that it is in."""
    element.clear()
    while (parent := element.getparent()) is not None:
        while parent[0] is not element:
            del parent[0]
        element = parent


def _broken(reason: str, line: int, name: str) -> DataError:
    reason = re.sub(r"\s*(, line \d+, column \d+)?\s*$", "", reason).replace("\n", " ")
    return DataError(f"{name}:{line or 1}: broken XML: {reason}; is the file whole?")


# ── text and codes ──────────────────────────────────────────────────────────────────────────────────────────────────


def local(element: Element) -> str:
    """The tag without its namespace; empty for a comment."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def child(element: Element, tag: str) -> Element | None:
    """The first child with this tag, in any namespace."""
    return next((one for one in element if local(one) == tag), None)


def plain(element: Element) -> str:
    """The text of a segment without its codes; one that stands for a line break becomes a space."""
    return (element.text or "") + "".join(plain_of(one) + (one.tail or "") for one in element)


def marks_text(element: Element) -> bool:
    """Whether the text within an inline element is text of the segment; not so for codes and comments."""
    tag = local(element)
    return bool(tag) and tag not in CODES


# ── translated segments ─────────────────────────────────────────────────────────────────────────────────────────────


def core(segment: Element) -> str:
    """The text to be translated: that of `plain` without what stands before the first and after the last of it."""
    _, inside, _ = _split(segment)
    if isinstance(inside, list):
        return "".join(one if isinstance(one, str) else plain_of(one) for one in inside)
    return core(inside)


def put(text: str, source: Element, target: Element) -> None:
    """Add to an element what a source segment becomes when its `core` has been translated to `text`.

    Codes before all text stay in front of it, those after all text behind it, and an element around all text stays around it. Of what is
    between words nobody knows where it belongs in the translation: codes follow the text, in their order, and a <g> with them, empty;
    <hi> and <mrk>, which say something about the words within, are left out. A source without text is copied.
    """
    before, inside, after = _split(source)
    for one in before:
        _add(target, one)
    if isinstance(inside, list):
        _add(target, text)
        for one in inside:
            for code in [] if isinstance(one, str) else codes_of(one):
                _add(target, code)
    else:
        shell = _shell(inside)
        target.append(shell)
        put(text, inside, shell)
    for one in after:
        _add(target, one)


def empty(element: Element) -> None:
    """Take away what is in an element."""
    element.text = None
    for one in list(element):
        element.remove(one)


def _split(segment: Element) -> tuple[list[Any], Any, list[Any]]:
    """The content (texts and elements) before all text; from the first text to the last, or the one element with all of it; after it."""
    parts = [segment.text or ""]
    for one in segment:
        parts += [one, one.tail or ""]
    texts = [number for number, part in enumerate(parts) if (part if isinstance(part, str) else plain_of(part)).strip()]
    if not texts:
        return parts, [], []
    first, last = texts[0], texts[-1]
    inside = parts[first : last + 1]
    return parts[:first], inside if first < last or isinstance(inside[0], str) else inside[0], parts[last + 1 :]


def plain_of(element: Element) -> str:
    """What an inline element adds to the text."""
    return plain(element) if marks_text(element) else " " if is_break(element) else ""


def is_break(element: Element) -> bool:
    """Whether a code stands for a line break."""
    return "lb" in (element.get("type"), element.get("ctype"))


def codes_of(element: Element) -> list[Element]:
    """An inline element without its text: itself if it is a code or a <g>, else the codes within."""
    if not marks_text(element):
        return [element]
    within = [code for one in element for code in codes_of(one)]
    if local(element) != "g":
        return within
    shell = _shell(element)
    for code in within:
        _add(shell, code)
    return [shell]


def _shell(element: Element) -> Element:
    """The element without its content."""
    return etree.Element(element.tag, dict(element.attrib), nsmap=element.nsmap)


def _add(target: Element, part: Any) -> None:
    """Append a text, or a copy of an element without what follows it."""
    if not isinstance(part, str):
        copied = deepcopy(part)
        copied.tail = None
        target.append(copied)
    elif len(target):
        target[-1].tail = (target[-1].tail or "") + part
    else:
        target.text = (target.text or "") + part
