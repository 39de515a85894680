"""Files as a whole."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from mt.constraints.control import Control
from mt.constraints.glossary import Glossary, Term
from mt.errors import TooLargeError
from mt.serve.answering import Model
from mt.serve.limits import Limits
from mt.serve.uploads import safe_name
from tests import toy
from tests.serve.serving import Asking, asking

LINES = toy.sentences(3)

PO = f'''msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "{LINES[0]}"
msgstr ""

msgid "{LINES[1]}"
msgstr "is there"
'''

XLIFF = f"""<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file source-language="en" target-language="de" datatype="plaintext" original="x"><body>
  <trans-unit id="1"><source>{LINES[0]}</source></trans-unit>
 </body></file>
</xliff>
"""

TMX = f"""<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en" segtype="sentence" datatype="plaintext" adminlang="en"
 creationtool="x" creationtoolversion="1" o-tmf="x"/><body>
 <tu><tuv xml:lang="en"><seg>{LINES[0]}</seg></tuv></tu>
</body></tmx>
"""


@pytest.mark.parametrize(("name", "text"), [("app.po", PO), ("app.xlf", XLIFF), ("app.xliff", XLIFF), ("memory.tmx", TMX)])
def test_a_document_has_its_gaps_filled_in(ask: Asking, model: Model, name: str, text: str) -> None:
    answer = ask("POST", f"/v1/file?name={name}&target=de", content=text.encode())
    assert answer.status_code == 200, answer.text
    assert model.translator.translate(LINES[:1])[0].text in answer.text
    assert ("is there" in answer.text) == (name == "app.po")
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_text_is_translated_line_by_line(ask: Asking, model: Model) -> None:
    expected = [one.text for one in model.translator.translate(LINES)]
    answer = ask("POST", "/v1/file?name=a.txt", content="\n\n".join(LINES).encode())
    assert answer.text == "\n\n".join(expected)


def test_a_file_is_translated_with_the_terms_and_the_search_of_its_address(ask: Asking, model: Model) -> None:
    line, term = LINES[0], toy.translation(LINES[1].split()[0])
    glossary = [(line.split()[0], term)]
    settings = model.ask(target=None, beam=3, length_penalty=0.2, limits=Limits()).search
    control = Control(glossary=Glossary(Term(*one) for one in glossary))
    (expected,) = model.translator.translate([line], settings=settings, control=control)
    query = urlencode({"name": "a.txt", "beam": 3, "length_penalty": 0.2, "glossary": json.dumps(glossary)})
    assert ask("POST", f"/v1/file?{query}", content=line.encode()).text == expected.text
    assert term in expected.text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("glossary=hat", "glossary: "),
        ("glossary=[[1]]", "glossary: "),
        ('glossary=[["a",""]]', "glossary"),
        ("beam=21", "beam: "),
        ("beam=x", "beam: "),
        ("length_penalty=-1", "length_penalty: "),
        ("taget=de", "'taget': unknown key; there are name, target, beam, length_penalty, glossary"),
    ],
)
def test_an_address_that_says_nonsense_is_told_in_a_line(ask: Asking, query: str, says: str) -> None:
    answer = ask("POST", f"/v1/file?name=a.txt&{query}", content=b"x")
    assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.text


@pytest.mark.parametrize(
    ("name", "content", "status", "says"),
    [
        ("a.txt", b"fine\n\xff", 422, "a.txt:2"),
        ("a.txt", "fine".encode("utf-16"), 422, "a.txt:1: byte 0xFF is not UTF-8 (at byte 1 of the line); the file looks like UTF-16"),
        ("a.txt", "fine".encode("utf-16-le"), 422, "the file looks like UTF-16"),
        ("a.pdf", b"x", 415, ".pdf"),
        ("a.po.gz", b"x", 415, ".gz"),
        ("a.tmx", b"<tmx", 422, "a.tmx:1"),
        ("a.tmx", b'<!DOCTYPE x [<!ENTITY a "b">]><tmx/>', 422, "entity"),
        ("a.xlf", XLIFF.replace('"en"', '"fr"').encode(), 422, "fr"),
        ("a.txt", b"x" * 2001, 413, "2000 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_a_line(model: Model, name: str, content: bytes, status: int, says: str) -> None:
    answer = asking(model, Limits(file_bytes=2000))("POST", f"/v1/file?name={name}", content=content)
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text


@pytest.mark.parametrize(("name", "text"), [("a.txt", LINES[0]), ("a.po", PO)])
def test_too_little_memory_is_the_servers(model: Model, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    def too_large(*_: Any) -> Any:
        raise TooLargeError("too little memory")

    monkeypatch.setattr(model, "search", too_large)
    answer = asking(model)("POST", f"/v1/file?name={name}", content=text.encode())
    assert (answer.status_code, answer.json()) == (503, {"error": "too little memory"})


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\x\\a.po", "a.po"),
        ('a"; filename="b.txt', "a_ filename_b.txt"),
        ("a\r\nset-cookie: x.txt", "a_set-cookie_ x.txt"),
        ("ünï.po", "_n_.po"),
        ("", "text.txt"),
        ("...", "text.txt"),
        (".hidden", "hidden"),
        ("x" * 300 + ".po", "x" * 97 + ".po"),
    ],
)
def test_names_are_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe
