"""A finished run that the tests of whole runs share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import toy
from tests.runs import Done, Silent, final_test, four_updates, train


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A folder with a corpus and a finished run; tests that change something take a copy."""
    folder = tmp_path_factory.mktemp("finished")
    toy.write_corpus(folder, train=40, dev=4, test=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.launch.run.Console", lambda **_: Silent())
        return folder, train(four_updates(folder, final_test(folder)))


@pytest.fixture
def folder(finished: tuple[Path, Done], tmp_path: Path) -> Path:
    """The corpus without a run."""
    for file in finished[0].iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
def copied(finished: tuple[Path, Done], tmp_path: Path) -> tuple[Path, str]:
    """The folder of the corpus, and the override that names a copy of its finished run."""
    shutil.copytree(finished[0] / "run", tmp_path / "copy")
    return finished[0], f"run_dir={tmp_path / 'copy'}"
