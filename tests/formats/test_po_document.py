"""Catalogues filled in; where GNU gettext is installed, it has the last word on what came out."""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config.schema import Langs
from mt.errors import DataError
from mt.formats.exchange import Kind
from mt.formats.po_document import folded
from tests.data.filling import filled, saved, shout
from tests.formats.test_po import CATALOGUE

KETTLE = CATALOGUE.replace("{charset}", "UTF-8")
TEMPLATE = r"""#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: PACKAGE VERSION\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=CHARSET\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#: a.c:1
msgid "open"
msgstr ""

#: a.c:2
#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""
"""


def entries(data: bytes) -> list[polib.POEntry]:
    return list(polib.pofile(data.decode()))


def checked(folder: Path, data: bytes) -> bytes:
    """The same, after GNU gettext has accepted it."""
    if shutil.which("msgfmt"):
        done = subprocess.run(["msgfmt", "--check", "-o", folder / "x.mo", saved(folder, "x.po", data)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return data


def difference(before: str, after: bytes) -> list[str]:
    """Lines that went (-) and came (+)."""
    lines = difflib.ndiff(before.split("\n"), after.decode().split("\n"))
    return [line for line in lines if line[:2] in ("- ", "+ ")]


def test_only_what_was_untranslated_changes() -> None:
    assert difference(KETTLE, filled(KETTLE, Kind.po)) == ['- msgstr ""', '+ msgstr "STEEP!"']


def test_nothing_to_do_nothing_changed() -> None:
    done = KETTLE.replace('msgid "Steep"\nmsgstr ""', 'msgid "Steep"\nmsgstr "Ziehen"')
    assert filled(done, Kind.po).decode() == done


def test_all_again(tmp_path: Path) -> None:
    done = entries(checked(tmp_path, filled(KETTLE, Kind.po, retranslate=True)))
    assert [(e.msgid, e.msgstr or e.msgstr_plural, e.fuzzy) for e in done if not e.obsolete] == [
        ('Open "%s"', 'OPEN "%S"!', True),
        ("Close", "CLOSE!", True),
        ("Boil the water,\nthen wait.\n", "BOIL THE WATER,!\nTHEN WAIT.!\n", True),
        ("%d cup", {0: "%D CUP!", 1: "%D CUPS!"}, True),
        ("Steep", "STEEP!", True),
    ]
    before = entries(KETTLE.encode())
    assert [(e.msgctxt, e.comment, e.occurrences, e.previous_msgid) for e in done] == [
        (e.msgctxt, e.comment, e.occurrences, e.previous_msgid) for e in before
    ]
    assert [(e.msgid, e.msgstr) for e in done if e.obsolete] == [(e.msgid, e.msgstr) for e in before if e.obsolete]
    assert done[0].flags == ["fuzzy", "c-format"]


@pytest.mark.parametrize(
    ("tgt", "language", "plural", "forms"),
    [
        ("de", "de", "nplurals=2; plural=(n != 1);", ["%D FILE!", "%D FILES!"]),
        ("ja", "ja", "nplurals=1; plural=(0);", ["%D FILES!"]),
        ("pt-BR", "pt_BR", "nplurals=2; plural=(n > 1);", ["%D FILE!", "%D FILES!"]),
        ("pl", "pl", "nplurals=3; ", ["%D FILE!", "%D FILES!", "%D FILES!"]),
        ("ar", "ar", "nplurals=6; ", ["%D FILES!", "%D FILE!", *["%D FILES!"] * 4]),
        ("xx", "xx", "nplurals=INTEGER; plural=EXPRESSION;", ["%D FILE!", "%D FILES!"]),
    ],
)
def test_a_template_gets_language_and_plural_forms(tmp_path: Path, tgt: str, language: str, plural: str, forms: list[str]) -> None:
    data = filled(TEMPLATE, Kind.po, langs=Langs(src="en", tgt=tgt))
    if tgt != "xx":
        checked(tmp_path, data)
    header = polib.pofile(data.decode()).metadata
    assert header["Content-Type"] == "text/plain; charset=UTF-8"
    assert header["Language"] == language
    assert header["Plural-Forms"].startswith(plural)
    assert list(entries(data)[1].msgstr_plural.values()) == forms
    assert all(entry.fuzzy for entry in entries(data))


def test_where_no_language_is_known_the_header_stays() -> None:
    template = TEMPLATE.replace("CHARSET", "utf-8")
    data = filled(template, Kind.po, langs=None)
    assert data.decode().split("\n\n")[0] == template.split("\n\n")[0]
    assert entries(data)[1].msgstr_plural == {0: "%D FILE!", 1: "%D FILES!"}


def test_forms_that_are_there_stay_when_others_are_filled_in() -> None:
    half = KETTLE.replace('msgstr[1] "%d Tassen"', 'msgstr[1] ""')
    assert sorted(difference(half, filled(half, Kind.po))) == [
        "+ #, fuzzy, c-format",
        '+ msgstr "STEEP!"',
        '+ msgstr[1] "%D CUPS!"',
        "- #, c-format",
        '- msgstr ""',
        '- msgstr[1] ""',
    ]


def test_another_language_brings_its_own_plural_forms(tmp_path: Path) -> None:
    polish = "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);"
    three = re.sub("nplurals=2;.*;", polish, KETTLE.replace("Language: de", "Language: pl"))
    three = three.replace('msgstr[1] "%d Tassen"', 'msgstr[1] "%d kubki"\nmsgstr[2] "%d kubków"')
    assert three.count(polish) == three.count("msgstr[2]") == 1
    data = checked(tmp_path, filled(three, Kind.po, retranslate=True))
    assert polib.pofile(data.decode()).metadata["Plural-Forms"] == "nplurals=2; plural=(n != 1);"
    assert [entry.msgstr_plural for entry in entries(data) if entry.msgid_plural] == [{0: "%D CUP!", 1: "%D CUPS!"}]


def test_another_language_is_refused() -> None:
    french = KETTLE.replace("Language: de", "Language: fr")
    with pytest.raises(DataError, match=r"^x: is in fr, but the translation would be in de; empty the Language"):
        filled(french, Kind.po)
    assert b'"Language: de\\n"' in filled(french, Kind.po, retranslate=True)
    assert filled(KETTLE.replace("Language: de", "Language: de_AT"), Kind.po).count(b"Language: de_AT") == 1


def test_encoding_and_line_ends_stay_where_they_can() -> None:
    latin = CATALOGUE.replace("{charset}", "ISO-8859-1").replace("„", "<").replace("“", ">").replace("Steep", "Café")
    data = filled(latin.replace("\n", "\r\n").encode("latin-1"), Kind.po)
    assert data.decode("latin-1") == latin.replace('msgid "Café"\nmsgstr ""', 'msgid "Café"\nmsgstr "CAFÉ!"').replace("\n", "\r\n")


def test_what_the_encoding_cannot_hold_makes_it_utf8(tmp_path: Path) -> None:
    latin = TEMPLATE.replace("CHARSET", "ISO-8859-1").replace("open", "aÿ")  # Latin-1 has no capital of this letter
    data = checked(tmp_path, filled(latin.encode("latin-1"), Kind.po))
    assert entries(data)[0].msgstr == "AŸ!"
    assert polib.pofile(data.decode()).metadata["Content-Type"] == "text/plain; charset=UTF-8"


def test_ascii_holds_ascii_only() -> None:
    plain_text = TEMPLATE.replace("CHARSET", "US-ASCII")
    assert polib.pofile(filled(plain_text, Kind.po).decode("ascii")).metadata["Content-Type"] == "text/plain; charset=US-ASCII"
    assert b"charset=UTF-8" in filled(plain_text.replace("open", "\\\\ ä").encode(), Kind.po)


def test_a_message_that_is_white_space_is_copied() -> None:
    text = 'msgid "\\n"\nmsgstr ""\n\nmsgid "  "\nmsgstr ""\n'
    assert filled(text, Kind.po).decode() == '#, fuzzy\nmsgid "\\n"\nmsgstr "\\n"\n\n#, fuzzy\nmsgid "  "\nmsgstr "  "\n'


def test_a_file_that_is_not_folded_stays_so() -> None:
    long = "word " * 30 + "end"
    wide = f'msgid "{long}"\nmsgstr ""\n'
    assert filled(wide, Kind.po).decode() == f'#, fuzzy\nmsgid "{long}"\nmsgstr "{shout(long)}"\n'
    narrow = 'msgid ""\n"' + "word " * 15 + '"\n"' + "word " * 14 + 'end"\nmsgstr ""\n'
    assert max(map(len, filled(narrow, Kind.po).decode().split("\n"))) < 80


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60) | st.text(' \n"\\ab', max_size=200))
def test_folding_loses_nothing(text: str) -> None:
    for width in (20, 79, 2**30):
        lines = folded("msgstr", text, width)
        assert all("\n" not in line for line in lines)
        read_back = polib.pofile("\n".join(['msgid "a"', *lines])) if text.isprintable() else None
        if read_back:
            assert read_back[0].msgstr == text


@pytest.mark.skipif(not shutil.which("msgattrib"), reason="GNU gettext is not installed")
@given(source=st.lists(st.sampled_from(["a b c", "d", "", " e", 'f "g" \\']), min_size=1, max_size=5).map("\n".join).filter(str.strip))
def test_gettext_reads_what_was_written(tmp_path_factory: pytest.TempPathFactory, source: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    before = "\n".join(
        ['msgid ""', 'msgstr "Content-Type: text/plain; charset=UTF-8\\n"', "", *folded("msgid", source, 79), 'msgstr ""', ""]
    )
    path = saved(folder, "y.po", filled(before, Kind.po))
    assert subprocess.run(["msgfmt", "--check-format", "-o", folder / "y.mo", path], capture_output=True).returncode == 0
    done = subprocess.run(["msgattrib", "--only-fuzzy", "--no-wrap", path], capture_output=True, check=True).stdout
    (entry,) = entries(done)
    assert entry.msgid == source
    assert [line.strip() for line in entry.msgstr.split("\n")] == [
        shout(line.strip()) if line.strip() else "" for line in source.split("\n")
    ]
