from __future__ import annotations

from pathlib import Path

import pytest

from mt.config.schema import Langs, TmxFile
from mt.errors import DataError
from mt.formats.pairs import Pair
from mt.formats.readers import read_pairs

MEMORY = """\
<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<!-- exported on a Monday -->
<tmx version="1.4">
  <header creationtool="Workbench" creationtoolversion="8.0" datatype="rtf" segtype="sentence" o-tmf="TW4Win"
    adminlang="en-US" srclang="en-US" creationdate="20040102T030405Z">
    <prop type="x-domain">appliances</prop>
  </header>
  <body>
    <tu tuid="4711" creationdate="20040102T030405Z">
      <note>not <hi>for</hi> sale</note>
      <tuv xml:lang="en-US"><seg>Open the <bpt i="1">{{\\b </bpt>door<ept i="1">}}</ept> &amp; wait 5&#160;minutes.</seg></tuv>
      <tuv xml:lang="de-DE"><seg>Öffnen Sie die <bpt i="1">{{\\b </bpt>Tür<ept i="1">}}</ept> &amp; warten Sie 5&#160;Minuten.</seg></tuv>
      <tuv xml:lang="de-DE"><seg>Ein zweiter Vorschlag.</seg></tuv>
    </tu>
    <tu>
      <prop type="x-domain">appliances</prop>
      <tuv xml:lang="EN_us"><seg>Press <hi type="bold">Start<ph x="2">&lt;img alt="<sub>knob</sub>"/&gt;</ph></hi>,
then wait.</seg></tuv>
      <tuv xml:lang="DE">
        <seg>Drücken Sie <hi type="bold">Start</hi><it pos="begin">&lt;b&gt;</it>,<ph type="lb"/>dann warten.<ut>x</ut></seg>
      </tuv>
    </tu>
    <tu tuid="no translation"><tuv xml:lang="en-US"><seg>Spare parts</seg></tuv></tu>
  </body>
</tmx>
"""
PAIRS = [
    Pair("Open the door & wait 5\u00a0minutes.", "Öffnen Sie die Tür & warten Sie 5\u00a0Minuten.", "memory.tmx:10 (tuid 4711)"),
    Pair("Press Start, then wait.", "Drücken Sie Start, dann warten.", "memory.tmx:16"),
    Pair("Spare parts", "", "memory.tmx:24 (tuid no translation)", "untranslated"),
]
EN_DE = Langs(src="en", tgt="de")


def memory(folder: Path, encoding: str = "utf-8", text: str = MEMORY) -> TmxFile:
    path = folder / "memory.tmx"
    declared = "UTF-16" if encoding == "utf-16-le" else encoding.removesuffix("-sig")
    path.write_bytes(text.format(encoding=declared).encode(encoding))
    return TmxFile(tmx=path)


def units(folder: Path, *variants: dict[str, str], header: str = 'srclang="en"') -> TmxFile:
    """A memory of units, each with its variants by language."""
    body = "".join(
        "<tu>" + "".join(f'<tuv xml:lang="{lang}"><seg>{text}</seg></tuv>' for lang, text in one.items()) + "</tu>\n" for one in variants
    )
    (folder / "m.tmx").write_text(f'<tmx version="1.4"><header {header}/><body>\n{body}</body></tmx>', encoding="utf-8", newline="\n")
    return TmxFile(tmx=folder / "m.tmx")


def texts(corpus: TmxFile, langs: Langs | None = None) -> list[tuple[str, str]]:
    return [pair[:2] for pair in read_pairs(corpus, langs=langs)]


def only_error(corpus: TmxFile, langs: Langs | None = None) -> str:
    with pytest.raises(DataError) as caught:
        list(read_pairs(corpus, langs=langs))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(corpus.tmx))


@pytest.mark.parametrize("langs", [None, EN_DE, Langs(src="en-US", tgt="de-DE")])
def test_a_memory(tmp_path: Path, langs: Langs | None) -> None:
    assert list(read_pairs(memory(tmp_path), langs=langs)) == PAIRS


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "iso-8859-1", "windows-1252"])
def test_encodings_by_declaration(tmp_path: Path, encoding: str) -> None:
    assert list(read_pairs(memory(tmp_path, encoding), langs=EN_DE)) == PAIRS


def test_either_language_may_be_the_source(tmp_path: Path) -> None:
    swapped = list(read_pairs(memory(tmp_path), langs=Langs(src="de", tgt="en")))
    assert [(pair.tgt, pair.src, pair.origin) for pair in swapped] == [pair[:3] for pair in PAIRS]
    assert [pair.flaw for pair in swapped] == [None, None, "untranslated"]


def test_languages_of_the_corpus_win(tmp_path: Path) -> None:
    corpus = units(tmp_path, {"en": "a", "de": "A", "fr": "á"})
    assert texts(corpus.model_copy(update={"langs": Langs(src="fr", tgt="en")}), EN_DE) == [("á", "a")]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("pt", "pt"), ("pt-BR", "BR"), ("PT_br", "BR"), ("pt-PT", "PT"), ("pt-AO", "pt"), ("zh", "TW"), ("zh-CN", "CN"), ("zh-Hant-HK", "TW")],
)
def test_the_closest_variant_is_taken(tmp_path: Path, wanted: str, found: str) -> None:
    corpus = units(tmp_path, {"en": "a", "pt-PT": "PT", "pt-BR": "BR", "pt": "pt", "zh-Hant": "TW", "zh-CN": "CN"})
    assert texts(corpus, Langs(src="en", tgt=wanted)) == [("a", found)]


def test_another_country_is_no_match(tmp_path: Path) -> None:
    corpus = units(tmp_path, {"en-GB": "a", "de": "A"}, {"en-GB": "b", "de": "B"}, {"de": "C"})
    message = only_error(corpus, Langs(src="en-US", tgt="de"))
    assert message.startswith(": no unit has both en-US and de; there are: de (3), en-GB (2); choose with langs")


def test_the_unit_may_name_its_source_language(tmp_path: Path) -> None:
    variants = '<tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>A</seg></tuv>'
    (tmp_path / "m.tmx").write_text(f'<tmx><header srclang="*all*"/><body><tu srclang="de">{variants}</tu></body></tmx>')
    assert texts(TmxFile(tmx=tmp_path / "m.tmx")) == [("A", "a")]


@pytest.mark.parametrize("header", ["", 'srclang="*all*"'])
def test_without_source_language_there_is_a_choice_to_make(tmp_path: Path, header: str) -> None:
    corpus = units(tmp_path, {"en": "a", "de": "A"}, header=header)
    assert only_error(corpus).startswith(":2: the header names no source language; choose two with langs")
    assert texts(corpus, EN_DE) == [("a", "A")]


def test_more_than_two_languages_are_listed(tmp_path: Path) -> None:
    message = only_error(units(tmp_path, {"en": "a", "de": "A"}, {"en": "b", "fr": "B"}))
    assert message.startswith(":3: 3 languages, and nothing says which is the target; choose two with langs")
    assert message.endswith("there are: en, de, fr")


def test_a_namespace_changes_nothing(tmp_path: Path) -> None:
    text = MEMORY.replace("<tmx ", '<tmx xmlns="http://www.lisa.org/tmx14" ')
    assert list(read_pairs(memory(tmp_path, text=text))) == PAIRS


def test_memory_without_units_is_empty(tmp_path: Path) -> None:
    assert only_error(units(tmp_path)).startswith(": is empty")
