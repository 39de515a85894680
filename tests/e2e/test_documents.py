"""From a translation memory to a catalogue with its translations filled in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

import polib
import pytest

from mt.config.schema import Langs, PoFile, TmxFile, TsvFile, XliffFile
from mt.formats.readers import read_pairs
from tests import toy
from tests.runs import mt

LANGS = Langs(src="xa", tgt="de")
LEARNS = (
    "tokenizer={vocab_size: 1000, byte_fallback: false}",
    "train.batch_tokens=320",
    "train.max_updates=400",
    "train.optimizer.lr=4e-3",
    "train.schedule={kind: cosine, warmup: 50}",
    "train.validation.every=400",
)
"""A piece a word, and so long that a toy model learns the toy language."""


def memory(sources: Iterable[str], *, translated: bool = True) -> str:
    """A TMX, as a tool for translators writes it, in UTF-16."""
    variants = [[("xa-XX", source), *([("de-DE", toy.translation(source))] if translated else [])] for source in sources]
    units = [
        "".join(f'      <tuv xml:lang="{lang}"><seg>{escape(text)}</seg></tuv>\n' for lang, text in one).join(("    <tu>\n", "    </tu>\n"))
        for one in variants
    ]
    header = '<header creationtool="test" segtype="sentence" datatype="plaintext" srclang="xa-XX" adminlang="en" o-tmf="x"/>'
    return f'<?xml version="1.0" encoding="UTF-16"?>\n<tmx version="1.4">\n  {header}\n  <body>\n{"".join(units)}  </body>\n</tmx>\n'


def catalogue(sources: list[str]) -> str:
    """A template; its second message has plural forms, its third two lines."""
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: \\n"\n'
    first, one, many, line, other, *rest = sources
    entries = [
        f'#: app.c:1\n#, c-format\nmsgid "{first}"\nmsgstr ""\n',
        f'msgid "{one}"\nmsgid_plural "{many}"\nmsgstr[0] ""\nmsgstr[1] ""\n',
        f'msgid ""\n"{line}\\n"\n"{other}\\n"\nmsgstr ""\n',
        *(f'msgid "{source}"\nmsgstr ""\n' for source in rest),
    ]
    return "\n".join([header, *entries])


def exchange(sources: list[str]) -> str:
    """An XLIFF without targets; the last word of each source is within a code."""
    units = []
    for number, source in enumerate(sources):
        words, _, last = source.rpartition(" ")
        units.append(f'<trans-unit id="{number}"><source>{words} <g id="1">{last}</g></source></trans-unit>')
    return f'<xliff version="1.2"><file original="a" source-language="xa"><body>\n{chr(10).join(units)}\n</body></file></xliff>\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained on a memory, and documents to translate."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "train.tmx").write_text(memory(toy.sentences(4000, seed=1)), encoding="utf-16")
    (folder / "dev.tmx").write_text(memory(toy.sentences(20, seed=2)), encoding="utf-16")
    config = toy.config_text(train="{tmx: train.tmx}", dev="{tmx: dev.tmx}")
    (folder / "toy.yaml").write_text(f"langs: {{src: xa, tgt: de}}\n{config}", encoding="utf-8")
    return folder


def test_from_a_memory_to_translated_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [word for setting in LEARNS for word in ("--set", setting)]
    done = mt("train", "--config", folder / "toy.yaml", "--run-dir", folder / "run", "--device", "cpu", *settings, capsys=capsys)
    assert done.code == 0, done.lines
    sources = toy.sentences(12, seed=3)
    documents = {
        "app.po": catalogue(sources),
        "app.xlf": exchange(sources),
        "app.tmx": memory(sources, translated=False),
        "app.tsv": "".join(f"{source}\n" for source in sources),
    }
    for name, text in documents.items():
        (folder / name).write_text(text, encoding="utf-16" if name == "app.tmx" else "utf-8")
        output = folder / name.replace("app.", "app.de.")
        done = mt("translate", "--model", folder / "run", "--input", folder / name, "--output", output, capsys=capsys)
        assert done.code == 0, done.lines

    # The catalogue: same order, plural forms and line breaks kept, flagged fuzzy.
    entries = polib.pofile(str(folder / "app.de.po"))
    assert entries.metadata["Language"] == "de"
    assert [entry.msgid for entry in entries] == [entry.msgid for entry in polib.pofile(str(folder / "app.po"))]
    assert all(entry.fuzzy for entry in entries)
    assert entries[0].flags == ["fuzzy", "c-format"]
    assert sorted(entries[1].msgstr_plural) == [0, 1]
    assert entries[2].msgstr.count("\n") == entries[2].msgid.count("\n") == 2

    # Every document says the same, and nearly all of it is right.
    found = {
        "po": list(read_pairs(PoFile(po=folder / "app.de.po"))),
        "xliff": list(read_pairs(XliffFile(xliff=folder / "app.de.xlf"))),
        "tmx": list(read_pairs(TmxFile(tmx=folder / "app.de.tmx"), langs=LANGS)),
        "tsv": list(read_pairs(TsvFile(tsv=folder / "app.de.tsv"))),
    }
    table = [(pair.src, pair.tgt) for pair in found["tsv"]]
    assert [source for source, _ in table] == sources
    assert [(pair.src, pair.tgt) for pair in found["xliff"]] == [(pair.src, pair.tgt) for pair in found["tmx"]] == table
    translations = dict(table)
    assert [pair.tgt for pair in found["po"][:3]] == [translations[source] for source in sources[:3]]
    assert found["po"][3].tgt == f"{translations[sources[3]]} {translations[sources[4]]} "  # two lines and their ends
    assert [pair.tgt for pair in found["po"][4:]] == [translations[source] for source in sources[5:]]
    assert {pair.flaw for pair in found["po"]} == {"fuzzy"}
    assert {pair.flaw for pair in found["xliff"]} == {"not reviewed"}
    assert sum(translation == toy.translation(source) for source, translation in table) >= 8
    assert (folder / "app.de.xlf").read_text(encoding="utf-8").count('<g id="1"/></target>') == 12
