from __future__ import annotations

from pathlib import Path

import pytest

from mt.config.schema import Langs, XliffFile
from mt.errors import DataError
from mt.formats.pairs import Pair
from mt.formats.readers import read_pairs

CATALOGUE = """\
<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="src/main.ui" source-language="en-US" target-language="de" datatype="x-qt">
    <header><note>first <g id="1">release</g></note></header>
    <body>
      <group restype="window">
        <trans-unit id="greeting" resname="greet" approved="yes">
          <source>Good <g id="1" ctype="bold">morning, <x id="2" equiv-text="%s"/></g>!</source>
          <target state="translated">Guten <g id="1" ctype="bold">Morgen, <x id="2" equiv-text="%s"/></g>!</target>
          <alt-trans><source>no</source><target>nein</target></alt-trans>
        </trans-unit>
      </group>
      <trans-unit id="42">
        <source>Two<x id="1" ctype="lb"/>lines <bpt id="2">[b]</bpt>bold<ept id="2">[/b]</ept><ph id="3">{0}</ph></source>
        <seg-source><mrk mtype="seg" mid="0">Two lines</mrk></seg-source>
        <target state="needs-review-translation"><mrk mtype="seg" mid="0">Zwei
Zeilen</mrk> fett</target>
      </trans-unit>
      <trans-unit id="new"><source>New text</source></trans-unit>
      <trans-unit id="copied"><source>Copied text</source><target state="new">Copied text</target></trans-unit>
    </body>
  </file>
  <file original="help.html" source-language="en" target-language="de-AT" datatype="html">
    <body>
      <trans-unit><source>Close</source><target>Schließen</target></trans-unit>
    </body>
  </file>
</xliff>
"""
PAIRS = [
    Pair("Good morning, !", "Guten Morgen, !", "app.xlf:src/main.ui:greeting"),
    Pair("Two lines bold", "Zwei Zeilen fett", "app.xlf:src/main.ui:42", "not reviewed"),
    Pair("New text", "", "app.xlf:src/main.ui:new", "untranslated"),
    Pair("Copied text", "Copied text", "app.xlf:src/main.ui:copied", "untranslated"),
    Pair("Close", "Schließen", "app.xlf:help.html:line 25"),
]


def catalogue(folder: Path, text: str = CATALOGUE) -> XliffFile:
    (folder / "app.xlf").write_text(text, encoding="utf-8", newline="\n")
    return XliffFile(xliff=folder / "app.xlf")


def only_error(corpus: XliffFile, langs: Langs | None = None) -> str:
    with pytest.raises(DataError) as caught:
        list(read_pairs(corpus, langs=langs))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(corpus.xliff))


@pytest.mark.parametrize("langs", [None, Langs(src="en", tgt="de"), Langs(src="en-GB", tgt="de-DE")])
def test_a_catalogue(tmp_path: Path, langs: Langs | None) -> None:
    assert list(read_pairs(catalogue(tmp_path), langs=langs)) == PAIRS


def test_the_other_direction(tmp_path: Path) -> None:
    swapped = list(read_pairs(catalogue(tmp_path), langs=Langs(src="de", tgt="en")))
    assert [Pair(pair.tgt, pair.src, *pair[2:]) for pair in swapped] == PAIRS


def test_other_languages_are_told(tmp_path: Path) -> None:
    message = only_error(catalogue(tmp_path), Langs(src="en", tgt="fr"))
    assert message.startswith(":3: goes from en-US to de, not from en to fr")
    without_target = catalogue(tmp_path, CATALOGUE.replace(' target-language="de"', "").replace(' target-language="de-AT"', ""))
    assert list(read_pairs(without_target, langs=Langs(src="en", tgt="fr"))) == PAIRS


def test_version_2_is_refused(tmp_path: Path) -> None:
    corpus = catalogue(tmp_path, '<?xml version="1.0"?>\n<xliff version="2.0" srcLang="en"><file id="1"><unit id="1"/></file></xliff>')
    assert only_error(corpus) == ":2: is XLIFF 2.0, but 1.2 is read; save or convert it as 1.2"


def test_catalogue_without_units_is_empty(tmp_path: Path) -> None:
    assert only_error(catalogue(tmp_path, '<xliff version="1.2"><file><body/></file></xliff>')).startswith(": is empty")
