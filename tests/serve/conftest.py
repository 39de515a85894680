"""One model for all tests of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt.serve.answering import Model
from mt.translator import Translator
from tests.serve.serving import Asking, asking, small_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def model(run: Path) -> Model:
    return Model(Translator.load(run), "runs/demo")


@pytest.fixture(scope="session")
def ask(model: Model) -> Asking:
    return asking(model)
