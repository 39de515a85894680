"""Translation memories and XLIFF filled in: what is new is in its place, all else as it was, and no code is lost."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mt.config.schema import Langs, TmxFile, XliffFile
from mt.errors import DataError
from mt.formats.exchange import Kind, lines_of, with_lines
from mt.formats.markup import core, local, plain, put
from mt.formats.readers import read_pairs
from tests.data.filling import EN_DE, filled, saved, shout, units_of
from tests.formats.test_tmx import MEMORY
from tests.formats.test_xliff import CATALOGUE

TMX = MEMORY.format(encoding="UTF-8")


def difference(before: str, after: str | bytes) -> list[str]:
    """Lines that went (-) and came (+), without indentation."""
    after = after if isinstance(after, str) else after.decode()
    lines = difflib.ndiff(before.split("\n"), after.split("\n"))
    return [f"{line[0]} {line[1:].strip()}" for line in lines if line[:2] in ("- ", "+ ")]


# ── codes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def translated(source: str) -> str:
    """What becomes of the content of a segment."""
    segment, target = etree.fromstring(f"<seg>{source}</seg>"), etree.Element("seg")
    put(with_lines(core(segment), map(shout, lines_of(core(segment)))), segment, target)
    return etree.tostring(target, encoding="unicode").removeprefix("<seg>").removesuffix("</seg>").replace("<seg/>", "")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a b", "A B!"),
        ('<x id="1"/>a<x id="2"/>', '<x id="1"/>A!<x id="2"/>'),
        ('<g id="1">a b</g>', '<g id="1">A B!</g>'),
        (' <g id="1"> <x id="2"/><g id="3">a</g> </g><x id="4"/> ', ' <g id="1"> <x id="2"/><g id="3">A!</g> </g><x id="4"/> '),
        ('a <x id="1"/>b', 'A B!<x id="1"/>'),
        ('a <g id="1">b</g>', 'A B!<g id="1"/>'),
        ('a<ph ctype="lb">\\n</ph>b', 'A B!<ph ctype="lb">\\n</ph>'),
        ('<bpt i="1">{\\b </bpt>a<ept i="1">}</ept> b', '<bpt i="1">{\\b </bpt>A B!<ept i="1">}</ept>'),
        ('a <g id="1"><x id="2"/>b <g id="3">c</g></g> d<x id="4"/>', 'A B C D!<g id="1"><x id="2"/><g id="3"/></g><x id="4"/>'),
        ('a <hi type="b">b<ph/></hi> c', "A B C!<ph/>"),
        ('<mrk mtype="protected">a</mrk>', '<mrk mtype="protected">A!</mrk>'),
        ('<x id="1"/> <ph>%s</ph>', '<x id="1"/> <ph>%s</ph>'),
        ("a<!-- c -->", "A!<!-- c -->"),
        ("&lt;b&gt; &amp; c", "&lt;B&gt; &amp; C!"),
        ("", ""),
        (" \n ", " \n "),
    ],
)
def test_where_codes_go(source: str, target: str) -> None:
    assert translated(source) == target


CODES = st.sampled_from(['<x id="1"/>', "<ph>%s</ph>", '<bpt id="2">b</bpt>', '<ept id="2">/b</ept>', "a", "b c", " ", ". "])
CONTENTS = st.recursive(
    st.lists(CODES, max_size=4).map("".join), lambda inner: st.lists(inner | inner.map('<g id="9">{}</g>'.format), max_size=3).map("".join)
)


@given(source=CONTENTS)
def test_no_code_is_lost_or_doubled_and_the_text_is_there(source: str) -> None:
    def codes(content: str) -> Counter[str]:
        elements = list(etree.fromstring(f"<s>{content}</s>").iter())[1:]
        return Counter(f"{local(one)} {plain(one) if local(one) != 'g' else ''}" for one in elements)

    target = translated(source)
    assert codes(source) == codes(target)
    before, after = (plain(etree.fromstring(f"<s>{content}</s>")) for content in (source, target))
    assert after.strip() == (shout(before.strip()) if before.strip() else "")


# ── TMX ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_gets_the_variants_it_lacks() -> None:
    after = filled(TMX, Kind.tmx)
    assert difference(TMX, after) == [
        '- <tu tuid="no translation"><tuv xml:lang="en-US"><seg>Spare parts</seg></tuv></tu>',
        '+ <tu tuid="no translation"><tuv xml:lang="en-US"><seg>Spare parts</seg></tuv>'
        '<tuv xml:lang="de-DE" creationtool="mt"><seg>SPARE PARTS!</seg></tuv></tu>',
    ]


def test_a_new_variant_is_laid_out_like_the_others() -> None:
    before = """\
<tmx version="1.4">
  <header srclang="en"/>
  <body>
    <tu>
      <tuv xml:lang="en">
        <prop type="x">1</prop>
        <seg>a</seg>
      </tuv>
    </tu>
  </body>
</tmx>
"""
    variant = """
      <tuv xml:lang="de" creationtool="mt">
        <seg>A!</seg>
      </tuv>"""
    assert filled(before, Kind.tmx).decode() == before.replace("      </tuv>", f"      </tuv>{variant}")


def test_all_variants_again(tmp_path: Path) -> None:
    after = saved(tmp_path, "m.tmx", filled(TMX, Kind.tmx, retranslate=True))
    pairs = [pair[:2] for pair in read_pairs(TmxFile(tmx=after), langs=EN_DE)]
    assert pairs == [
        ("Open the door & wait 5\u00a0minutes.", "OPEN THE DOOR & WAIT 5\u00a0MINUTES.!"),
        ("Press Start, then wait.", "PRESS START,! THEN WAIT.!"),
        ("Spare parts", "SPARE PARTS!"),
    ]
    assert "Ein zweiter Vorschlag." in after.read_text(encoding="utf-8")


def test_a_third_language_is_added() -> None:
    after = filled(TMX, Kind.tmx, langs=Langs(src="de", tgt="fr-CA")).decode()
    assert re.findall(r'xml:lang="fr-CA"[^>]*>\s*<seg>(.*)</seg>', after) == [
        'ÖFFNEN SIE DIE TÜR &amp; WARTEN SIE 5\u00a0MINUTEN.!<bpt i="1">{\\b </bpt><ept i="1">}</ept>',
        'DRÜCKEN SIE START, DANN WARTEN.!<it pos="begin">&lt;b&gt;</it><ph type="lb"/><ut>x</ut>',
    ]
    assert [unit.source for unit in units_of(TMX, Kind.tmx, langs=Langs(src="de", tgt="fr"))][2] == ""


def test_languages_by_the_header() -> None:
    assert filled(TMX, Kind.tmx, langs=None) == filled(TMX, Kind.tmx)
    only = '<tmx><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu></body></tmx>'
    with pytest.raises(DataError, match="neither the file nor the model says"):
        filled(only, Kind.tmx, langs=None)
    assert b'<tuv xml:lang="de" creationtool="mt"><seg>A!</seg></tuv></tu>' in filled(only, Kind.tmx)


def memory(header: str, *units: str) -> str:
    """Units of the languages named, each text being the name of its language."""
    variants = ["".join(f'<tuv xml:lang="{lang}"><seg>text in {lang}</seg></tuv>' for lang in unit.split()) for unit in units]
    return f"<tmx><header{header}/><body>\n" + "\n".join(f"<tu>{unit}</tu>" for unit in variants) + "\n</body></tmx>"


@pytest.mark.parametrize(
    ("header", "units", "source"),
    [
        ('srclang="en"', ["en fr es"], "en"),
        ('srclang="fr"', ["en fr es"], "fr"),
        ('srclang="fr-CA"', ["en fr-FR fr-CA"], "fr-CA"),
        ('srclang="es"', ["es fr"], "fr"),  # the only one that the model knows of those that are there
        ('srclang="*all*"', ["en-GB es", "es en-GB"], "en-GB"),
        ("", ["fr"], "fr"),
        ('srclang="en"', ["fr en"], "en"),
    ],
)
def test_of_several_source_languages_the_file_tells_which(header: str, units: list[str], source: str) -> None:
    after = filled(memory(f" {header}", *units), Kind.tmx, sources=["en", "fr"]).decode()
    assert re.findall(r'<tuv xml:lang="de" creationtool="mt"><seg>(.*?)</seg>', after) == [shout(f"text in {source}")] * len(units)


def test_one_unit_can_have_another_source_than_the_header_says() -> None:
    text = memory(' srclang="en"', "en fr", "en fr").replace("<tu>", '<tu srclang="fr">', 1)
    rows = filled(text, Kind.tmx, sources=["en", "fr"], as_table=True).decode()
    assert rows == "text in fr\tTEXT IN FR!\ntext in en\tTEXT IN EN!\n"


@pytest.mark.parametrize(
    ("header", "units", "sources", "what"),
    [
        ('srclang="es"', "en es fr", ["en", "fr"], "srclang is es, and the model translates from en, fr"),
        ('srclang="*all*"', "en es fr", ["en", "fr"], "srclang is *all*, and the model translates from en, fr"),
        ('srclang="es"', "es it", ["en", "fr"], "srclang is es, and the model translates from en, fr"),
        ("", "en fr", ["en", "fr"], "srclang is missing, and the model translates from en, fr"),
        ("", "en fr", [], "srclang is missing"),
    ],
)
def test_if_it_does_not_tell_the_cure_is_named(header: str, units: str, sources: list[str], what: str) -> None:
    langs = EN_DE if sources else None
    with pytest.raises(DataError) as error:
        filled(memory(f" {header}", units), Kind.tmx, langs=langs, sources=sources)
    there = ", ".join(units.split())
    assert str(error.value) == f"x:2: {what}; set srclang in the header to the language to translate from (there are: {there})"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig", "windows-1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encoding_and_line_ends_stay(encoding: str, end: str) -> None:
    declared = "utf-16" if encoding == "utf-16-be" else encoding.removesuffix("-sig")
    before = MEMORY.format(encoding=declared).replace("\n", end)
    expected = filled(TMX, Kind.tmx).decode().replace("UTF-8", declared).replace("\n", end)
    assert filled(before.encode(encoding), Kind.tmx).decode(encoding) == expected


def test_what_the_encoding_cannot_hold_is_a_reference() -> None:
    before = MEMORY.format(encoding="iso-8859-1").replace("Spare parts", "\u00ff")
    assert b"<seg>&#376;!</seg>" in filled(before.encode("latin-1"), Kind.tmx)


# ── XLIFF ───────────────────────────────────────────────────────────────────────────────────────────────────────────

STATE = 'state="needs-review-translation" state-qualifier="mt-suggestion"'


def test_a_catalogue_gets_the_targets_it_lacks() -> None:
    assert difference(CATALOGUE, filled(CATALOGUE, Kind.xliff)) == [
        '- <trans-unit id="new"><source>New text</source></trans-unit>',
        '- <trans-unit id="copied"><source>Copied text</source><target state="new">Copied text</target></trans-unit>',
        f'+ <trans-unit id="new"><source>New text</source><target {STATE}>NEW TEXT!</target></trans-unit>',
        f'+ <trans-unit id="copied"><source>Copied text</source><target {STATE}>COPIED TEXT!</target></trans-unit>',
    ]


def test_a_new_target_is_laid_out_like_the_source() -> None:
    before = """\
<xliff version="1.2" xmlns:x="urn:x" x:y="z"><file original="a" source-language="en" datatype="plaintext"><body>
  <trans-unit id="1">
    <source>a</source>
    <note>b</note>
  </trans-unit>
  <trans-unit id="2">
    <source>c</source>
  </trans-unit>
  <trans-unit id="3" translate="no"><source>d</source></trans-unit>
  <group translate="no"><trans-unit id="4"><source>e</source></trans-unit></group>
</body></file></xliff>
"""
    after = re.sub("    <source>(.)</source>", lambda m: f"{m[0]}\n    <target {STATE}>{m[1].upper()}!</target>", before)
    after = after.replace("<file ", '<file target-language="de" ')
    assert filled(before, Kind.xliff).decode() == after
    assert [unit.source for unit in units_of(before, Kind.xliff)] == ["a", "c"]


def test_all_targets_again(tmp_path: Path) -> None:
    after = saved(tmp_path, "app.xlf", filled(CATALOGUE, Kind.xliff, retranslate=True))
    found = list(read_pairs(XliffFile(xliff=after), langs=EN_DE))
    assert [(pair.tgt, pair.flaw) for pair in found] == [
        ("GOOD MORNING, !!", "not reviewed"),
        ("TWO LINES!", "not reviewed"),
        ("NEW TEXT!", "not reviewed"),
        ("COPIED TEXT!", "not reviewed"),
        ("CLOSE!", "not reviewed"),
    ]
    assert '<target state="translated"' not in after.read_text(encoding="utf-8")
    assert "<target>nein</target>" in after.read_text(encoding="utf-8")


def test_what_is_new_is_not_approved() -> None:
    unit = '<trans-unit id="1" approved="yes"><source>a</source><target state="final">alt</target></trans-unit>'
    file = f'<xliff version="1.2"><file target-language="de"><body>{unit}</body></file></xliff>'
    assert filled(file, Kind.xliff).decode() == file
    new = f'<trans-unit id="1" approved="no"><source>a</source><target {STATE}>A!</target></trans-unit>'
    assert filled(file, Kind.xliff, retranslate=True).decode() == file.replace(unit, new)


def test_segments_are_translated_one_by_one() -> None:
    source = '<x id="1"/><mrk mtype="seg" mid="0">a <g id="2">b</g>.</mrk> <g id="3"><mrk mtype="seg" mid="1">c?</mrk></g> '
    unit = f'<trans-unit id="1"><source>a b. c?</source><seg-source>{source}</seg-source></trans-unit>'
    file = f'<xliff version="1.2"><file target-language="de"><body>{unit}</body></file></xliff>'
    expected = source.replace('a <g id="2">b</g>.', 'A B.!<g id="2"/>').replace("c?", "C?!")
    assert f"</seg-source><target {STATE}>{expected}</target></trans-unit>".encode() in filled(file, Kind.xliff)


def test_another_target_language_is_refused() -> None:
    with pytest.raises(DataError, match=r"^x:3: target-language is de, but the translation would be in fr; is this the right file"):
        filled(CATALOGUE, Kind.xliff, langs=Langs(src="en", tgt="fr"))
    assert filled(CATALOGUE, Kind.xliff, langs=Langs(src="en", tgt="de-CH")) == filled(CATALOGUE, Kind.xliff)


def test_another_source_language_is_refused() -> None:
    for sources in (["fr"], ["fr", "it"]):
        with pytest.raises(
            DataError, match=rf"^x:3: source-language is en-US, but the model translates from {', '.join(sources)}; is this the"
        ):
            filled(CATALOGUE, Kind.xliff, sources=sources)
    for sources in (["en-GB"], ["fr", "en"]):
        assert filled(CATALOGUE, Kind.xliff, sources=sources) == filled(CATALOGUE, Kind.xliff)


def test_a_namespace_prefix_stays() -> None:
    before = (
        '<?xml version="1.0"?>\n<!-- a --> <x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><x:file><x:body>'
        '<x:trans-unit id="1"><x:source>a</x:source></x:trans-unit></x:body></x:file></x:xliff>\n<!-- b -->\n\n'
    )
    assert filled(before, Kind.xliff, langs=None).decode() == before.replace("</x:source>", f"</x:source><x:target {STATE}>A!</x:target>")


@pytest.mark.parametrize("kind", [Kind.xliff, Kind.tmx])
def test_a_document_without_units_stays(kind: Kind) -> None:
    for text in f"<{kind}/>\n", f"<{kind}></{kind}>", f"<?xml version='1.0'?>\n<{kind} >\n</{kind} >\n<!-- end -->":
        assert filled(text, kind).decode() == text


# ── as a table ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_document_as_a_table() -> None:
    assert filled(TMX, Kind.tmx, as_table=True).decode().split("\n")[-2] == "Spare parts\tSPARE PARTS!"
    rows = [row.split("\t") for row in filled(CATALOGUE, Kind.xliff, as_table=True).decode().split("\n")[:-1]]
    assert len(rows) == len(units_of(CATALOGUE, Kind.xliff)) == 5
    assert rows[1:3] == [["Two lines bold", "Zwei Zeilen fett"], ["New text", "NEW TEXT!"]]
