"""The routes of LibreTranslate, as its clients ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from mt.serve.answering import Model
from tests import toy
from tests.serve.serving import Asking, asking, served

LINES = toy.sentences(2)


def test_its_client_works_as_it_is(model: Model) -> None:
    libretranslatepy = pytest.importorskip("libretranslatepy")
    with served(model, keys=["key"]) as (host, port):
        client = libretranslatepy.LibreTranslateAPI(f"http://{host}:{port}", api_key="key")
        assert client.translate(LINES[0], "en", "de") == model.translator.translate(LINES[:1])[0].text
        assert client.languages()[0] == {"code": "en", "name": "English", "targets": ["de"]}


@pytest.mark.parametrize("how", ["json", "data"])
def test_json_and_forms_are_answered_alike(ask: Asking, model: Model, how: str) -> None:
    answer = ask("POST", "/translate", **{how: {"q": LINES[0], "source": "auto", "target": "de"}})
    assert answer.json()["translatedText"] == model.translator.translate(LINES[:1])[0].text
    assert answer.json()["detectedLanguage"]["language"] == "en"


def test_a_form_in_parts_is_one(ask: Asking) -> None:
    text = f"{LINES[0]}\r\n\r\n{LINES[1]}"
    named = {"q": text, "source": "en", "target": "de"}
    answer = ask("POST", "/translate", files={name: (None, value) for name, value in named.items()})
    assert answer.json() == ask("POST", "/translate", json=named).json()
    broken = ask("POST", "/translate", content=b"x", headers={"content-type": "multipart/form-data"})
    assert (broken.status_code, "send application/json" in broken.json()["error"]) == (400, True)


def test_json_that_calls_itself_a_form_is_told_the_cure(ask: Asking) -> None:
    answer = ask("POST", "/translate", content=b'{"q": "x", "target": "de"}', headers={"content-type": "application/x-www-form-urlencoded"})
    assert (answer.status_code, "content-type: application/json" in answer.json()["error"]) == (415, True)


def test_a_number_may_be_text_as_there(ask: Asking) -> None:
    body = {"q": LINES[0], "source": "en", "target": "de", "alternatives": "2"}
    assert len(ask("POST", "/translate", json=body).json()["alternatives"]) == 2


def test_a_list_is_answered_with_a_list(ask: Asking, model: Model) -> None:
    answer = ask("POST", "/translate", json={"q": LINES, "source": "en", "target": "de", "alternatives": 2}).json()
    assert answer["translatedText"] == [one.text for one in model.translator.translate(LINES)]
    assert [len(own) for own in answer["alternatives"]] == [2, 2]
    assert all(best not in own for best, own in zip(answer["translatedText"], answer["alternatives"], strict=True))


def test_html_keeps_its_tags(ask: Asking) -> None:
    text = ask("POST", "/translate", json={"q": f"<i>{LINES[0]}</i>", "source": "en", "target": "de", "format": "html"}).json()
    assert text["translatedText"].startswith("<i>")
    assert text["translatedText"].endswith("</i>")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"q": "x", "target": "fr"}, "translates to de"),
        ({"q": "x"}, "target: is missing"),
        ({"q": "x", "target": "de", "alternatives": 20}, "alternatives: this server gives 19 at most"),
        ({"q": [1] * 1024, "target": "de"}, "q: entry 1: input should be a valid string, not a number"),
    ],
)
def test_what_cannot_be_met_is_an_error(ask: Asking, body: dict[str, Any], says: str) -> None:
    answer = ask("POST", "/translate", json=body)
    assert (answer.status_code, says in answer.json()["error"]) == (422, True)


def test_too_many_texts_are_refused_before_they_are_looked_at(ask: Asking) -> None:
    answer = ask("POST", "/translate", json={"q": [1] * 1025, "target": "de"})
    assert (answer.status_code, answer.json()["error"]) == (413, "q: 1025 entries: send 1024 at a time at most")


def test_a_key_in_the_body_is_one(model: Model) -> None:
    ask = asking(model, keys=["key"])
    body = {"q": LINES[0], "source": "en", "target": "de"}
    assert ask("POST", "/translate", json=body).status_code == 401
    assert ask("POST", "/translate", json=body | {"api_key": "key"}).status_code == 200
    assert ask("POST", "/translate", data=body | {"api_key": "key"}).status_code == 200
    assert ask("POST", "/translate", json=body | {"api_key": ""}, headers={"x-api-key": "key"}).status_code == 200
    assert ask("POST", "/translate", json=body | {"api_key": "key"}, headers={"x-api-key": "no"}).status_code == 200
    assert ask("POST", "/translate", json=body | {"api_key": "no"}, headers={"x-api-key": "key"}).status_code == 401
    assert ask("POST", "/translate", json=body | {"api_key": "schlüssel"}).status_code == 401
    assert ask("POST", "/translate?api_key=key", data=body).status_code == 401
    for api_key in 5, ["key"]:
        answer = ask("POST", "/translate", json=body | {"api_key": api_key})
        assert (answer.status_code, "api_key: input should be a valid string" in answer.json()["error"]) == (422, True)
    assert ask("GET", "/frontend/settings").json()["keyRequired"] is True


def test_languages_are_detected_by_the_extra(ask: Asking) -> None:
    pytest.importorskip("py3langid")
    found = ask("POST", "/detect", data={"q": "Das ist ein kleiner Hund auf der Straße."}).json()
    assert found[0]["language"] == "de"
    assert 0 < found[0]["confidence"] <= 100


def test_what_has_no_letters_is_in_no_language_for_sure(ask: Asking) -> None:
    pytest.importorskip("py3langid")
    assert ask("POST", "/detect", json={"q": "12, 34!"}).json()[0]["confidence"] == 0
    answer = ask("POST", "/detect", json={"q": " \n"})
    assert (answer.status_code, "q: is blank" in answer.json()["error"]) == (422, True)
