"""A model that runs in CTranslate2, served."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt.serve.answering import Model
from mt.translator import Translator
from tests import toy
from tests.serve.serving import Asking, asking

LINES = toy.sentences(2)


@pytest.fixture(scope="module")
def model(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    pytest.importorskip("ctranslate2")
    from mt.export.ct2 import export

    folder = tmp_path_factory.mktemp("export") / "ct2"
    export(run, folder)
    return Model(Translator.load(folder), "ct2")


@pytest.fixture(scope="module")
def exported(model: Model) -> Asking:
    return asking(model)


def test_it_translates_as_the_translator_does_and_tells_all_but_what_looks_at_what(exported: Asking, model: Model) -> None:
    answer = exported("POST", "/v1/translate", json={"text": LINES, "details": True})
    assert answer.status_code == 200, answer.text
    expected = [one.text for one in model.translator.translate(LINES)]
    found = answer.json()["translations"]
    assert [one["text"] for one in found] == expected
    for one in found:
        (sentence,) = one["sentences"]
        assert "".join(token["text"] for token in sentence["tokens"]) == one["text"].replace(" ", "")
        assert sentence["alignment"] == []


def test_tags_stay_where_it_does_not_tell_where_they_go(exported: Asking) -> None:
    answer = exported("POST", "/v1/translate", json={"text": f"<b>{LINES[0]}</b> <i>{LINES[1]}</i>", "format": "html"})
    text = answer.json()["translations"][0]["text"]
    assert [tag for tag in ("<b>", "</b>", "<i>", "</i>") if tag in text] == ["<b>", "</b>", "<i>", "</i>"]


@pytest.mark.parametrize(("path", "more"), [("/v1/alternatives", {}), ("/v1/translate", {"glossary": [["a", "b"]]})])
def test_what_it_cannot_do_is_told_in_a_line(exported: Asking, path: str, more: dict[str, object]) -> None:
    answer = exported("POST", path, json={"text": LINES[0], **more})
    assert (answer.status_code, list(answer.json())) == (422, ["error"]), answer.text
