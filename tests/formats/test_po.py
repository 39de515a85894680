from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config.schema import PoFile
from mt.errors import DataError
from mt.formats.pairs import Pair
from mt.formats.plurals import from_header, of_language
from mt.formats.readers import read_pairs

CATALOGUE = r"""# German translations for kettle.
# Copyright (C) 2026 the kettle team
#
msgid ""
msgstr ""
"Project-Id-Version: kettle 1.0\n"
"POT-Creation-Date: 2026-01-01 12:00+0000\n"
"Language: de\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset={charset}\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. shown at the top
#: src/main.c:12 src/main.c:40
#, c-format
msgid "Open \"%s\""
msgstr "„%s“ öffnen"

#: src/main.c:20
#, fuzzy, c-format
#| msgid "Close all"
msgid "Close"
msgstr "Alles schließen"

msgctxt "menu"
msgid ""
"Boil the water,\n"
"then wait.\n"
msgstr ""
"Das Wasser kochen,\n"
"dann warten.\n"

#, c-format
msgid "%d cup"
msgid_plural "%d cups"
msgstr[0] "%d Tasse"
msgstr[1] "%d Tassen"

#, fuzzy
msgid "Steep"
msgstr ""

# gone since 0.9
#~ msgctxt "menu"
#~ msgid "Whistle"
#~ msgstr "Pfeifen"

#~ msgid "Gone"
#~ msgstr ""
"""
PAIRS = [
    Pair('Open "%s"', "„%s“ öffnen", "kettle.po:17"),
    Pair("Close", "Alles schließen", "kettle.po:23", "fuzzy"),
    Pair("Boil the water, then wait. ", "Das Wasser kochen, dann warten. ", "kettle.po:27"),
    Pair("%d cup", "%d Tasse", "kettle.po:35"),
    Pair("%d cups", "%d Tassen", "kettle.po:35"),
    Pair("Steep", "", "kettle.po:41", "untranslated"),
    Pair("Whistle", "Pfeifen", "kettle.po:46", "obsolete"),
    Pair("Gone", "", "kettle.po:49", "obsolete"),
]


def catalogue(folder: Path, text: str = CATALOGUE, *, charset: str = "utf-8", declared: str | None = None) -> PoFile:
    (folder / "kettle.po").write_bytes(text.replace("{charset}", declared or charset).encode(charset))
    return PoFile(po=folder / "kettle.po")


def only_error(corpus: PoFile) -> str:
    with pytest.raises(DataError) as caught:
        list(read_pairs(corpus))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(corpus.po))


def plural_pairs(folder: Path, rule: str, *forms: str) -> list[tuple[str, str]]:
    """A message of so many plural forms, as it is read under a rule."""
    header = f'msgid ""\nmsgstr "Plural-Forms: {rule}\\n"\n\n' if rule else ""
    strings = "".join(f'msgstr[{n}] "{form}"\n' for n, form in enumerate(forms))
    return [pair[:2] for pair in read_pairs(catalogue(folder, f'{header}msgid "one"\nmsgid_plural "many"\n{strings}'))]


@pytest.mark.parametrize(
    ("charset", "declared"), [("utf-8", "UTF-8"), ("utf-8", "CHARSET"), ("windows-1252", "CP1252"), ("utf-8-sig", "UTF8")]
)
def test_a_catalogue(tmp_path: Path, charset: str, declared: str) -> None:
    assert list(read_pairs(catalogue(tmp_path, charset=charset, declared=declared))) == PAIRS


def test_windows_line_ends_and_no_final_one(tmp_path: Path) -> None:
    assert list(read_pairs(catalogue(tmp_path, CATALOGUE.replace("\n", "\r\n").removesuffix("\r\n")))) == PAIRS


def test_without_header(tmp_path: Path) -> None:
    text = "\n" * 13 + CATALOGUE.split("\n\n", 1)[1]
    assert list(read_pairs(catalogue(tmp_path, text))) == PAIRS


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="GNU gettext is not installed")
def test_the_catalogue_is_what_gettext_accepts(tmp_path: Path) -> None:
    path = catalogue(tmp_path).po
    assert subprocess.run(["msgfmt", "--check-format", "-o", tmp_path / "x.mo", path]).returncode == 0


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\\\n\r'), min_size=1, max_size=20))
def test_any_character_in_a_string(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    corpus = catalogue(tmp_path_factory.getbasetemp(), f'msgid "{text}"\nmsgstr "x{text}"\n')
    spaced = text.replace("\t", " ")
    assert list(read_pairs(corpus)) == [Pair(spaced, f"x{spaced}", "kettle.po:1")]


def test_escapes_are_read(tmp_path: Path) -> None:
    corpus = catalogue(tmp_path, r'msgid "C:\\new\t\"x\""' + "\n" + r'msgstr "D:\\neu\t\"y\"\r\n"')
    assert list(read_pairs(corpus)) == [Pair('C:\\new "x"', 'D:\\neu "y"  ', "kettle.po:1")]


# ── plural forms ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("language", "sources"),
    [
        ("de", ["one", "many"]),
        ("fr", ["one", "many"]),
        ("ja", ["many"]),
        ("ru", ["one", "many", "many"]),
        ("ar", ["many", "one", "many", "many", "many", "many"]),
    ],
)
def test_each_form_translates_its_own_source(tmp_path: Path, language: str, sources: list[str]) -> None:
    rule = of_language(language)
    assert rule is not None
    forms = [f"form {n}" for n in range(len(sources))]
    assert plural_pairs(tmp_path, rule.header, *forms) == list(zip(sources, forms, strict=True))


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "nplurals=INTEGER; plural=EXPRESSION;",
        "nplurals=2; plural=(n !=",
        "nplurals=2; plural=__import__('os');",
        "nplurals=2; plural=n%0;",
    ],
)
def test_without_a_usable_rule_the_first_form_is_the_singular(tmp_path: Path, rule: str) -> None:
    assert plural_pairs(tmp_path, rule, "eins", "viele") == [("one", "eins"), ("many", "viele")]
    assert plural_pairs(tmp_path, rule, "viele") == [("many", "viele")]


def test_a_missing_form_is_untranslated(tmp_path: Path) -> None:
    text = 'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n!=1;\\n"\nmsgid "one"\nmsgid_plural "many"\nmsgstr[0] "eins"\n'
    pairs = list(read_pairs(catalogue(tmp_path, text)))
    assert [(pair.src, pair.tgt, pair.flaw) for pair in pairs] == [("one", "eins", None), ("many", "", "untranslated")]


@pytest.mark.parametrize(("code", "count"), [("en", 2), ("pt_BR", 2), ("zh-TW", 1), ("cs", 3), ("sl", 4), ("ga", 5), ("ar", 6)])
def test_number_of_forms_of_a_language(code: str, count: int) -> None:
    rule = of_language(code)
    assert rule is not None
    assert rule.number == count
    assert from_header(rule.header) == rule


def test_an_unknown_language_has_no_rule() -> None:
    assert of_language("xx") is None


# ── bad files ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('msgid "a"\nmsgstr "b\n', ":2: no PO: a string that is not closed"),
        ('msgid "a"\nmsgstr "b" "c"\n', ":2: no PO: expected"),
        ('msgid "a"\n\nmsgstr b\n', ":3: no PO: "),
        ('msgid "a"\nmsgstr "b"\nmsgword "c"\n', ":3: no PO: expected"),
        ("Good morning.\n", ":1: no PO: expected a comment, a keyword such as msgid"),
        ('msgid "a"\nmsgstr "b"\n\nmsgid "c"\n', ":4: no PO: it ends within an entry; is the file whole?"),
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', ":2: no PO: this line cannot follow the ones before it"),
        ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', ":3: no PO: this line cannot follow the ones before it"),
        ('msgid "a"\n#: x.c:1\nmsgid "b"\nmsgstr "c"\n', ":3: no PO: an entry with 2 msgid"),
        ('msgid "a"\n# gone\nmsgstr "b"\nmsgctxt "c"\nmsgstr "d"\n', ":5: no PO: "),
        ('"a"\nmsgid "b"\nmsgstr "c"\n', ":1: no PO: this line cannot follow the ones before it"),
        ('msgid "a"\nmsgstr "b"\n#| nonsense here "x"\nmsgid "c"\nmsgstr "d"\n', ":3: no PO: unknown keyword nonsense"),
    ],
)
def test_what_is_no_po_names_the_line(tmp_path: Path, text: str, what: str) -> None:
    assert only_error(catalogue(tmp_path, text)).startswith(what)


def test_a_wrong_encoding_names_the_line(tmp_path: Path) -> None:
    ascii_quotes = CATALOGUE.replace("„", "<").replace("“", ">")
    assert only_error(catalogue(tmp_path, ascii_quotes, charset="latin-1", declared="UTF-8")).startswith(":18: byte 0xF6 is not UTF-8")
    assert only_error(catalogue(tmp_path, declared="EUC-JP")).startswith(":18: is not in euc_jp, the encoding that its header names")
    assert only_error(catalogue(tmp_path, declared="klingon")).startswith(": the header names the encoding klingon, which nobody knows")
    assert only_error(catalogue(tmp_path, declared="rot13")).startswith(":1: is not in rot-13")


def test_a_catalogue_without_messages_is_empty(tmp_path: Path) -> None:
    assert only_error(catalogue(tmp_path, CATALOGUE.split("\n\n")[0] + "\n")).startswith(": is empty")
    assert only_error(catalogue(tmp_path, "")).startswith(": is empty")
    assert only_error(catalogue(tmp_path, "# nothing yet\n")).startswith(": is empty")


@pytest.mark.parametrize("end", ["#:", "#", "#~ ", "#~|", "#, fuzzy", "# the end"])
def test_the_last_message_counts_whatever_stands_below_it(tmp_path: Path, end: str) -> None:
    assert list(read_pairs(catalogue(tmp_path, f'msgid "a"\nmsgstr "b"\n{end}\n'))) == [Pair("a", "b", "kettle.po:1")]
