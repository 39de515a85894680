from __future__ import annotations

import pytest

from mt.serve.answering import Model
from tests import toy
from tests.serve.serving import Asking, asking, lively_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return lively_model(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def ask(model: Model) -> Asking:
    return asking(model)


def test_a_sentence_is_translated_as_the_translator_does(ask: Asking, model: Model) -> None:
    lines = toy.sentences(3)
    answer = ask("POST", "/v1/translate", json={"text": lines})
    assert answer.status_code == 200
    assert [one["text"] for one in answer.json()["translations"]] == [one.text for one in model.translator.translate(lines)]
