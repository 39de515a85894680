"""What tests of `mt data` stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.preparing import write_all
from tests.runs import Silent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with its settings, an empty cache, and no console."""
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent())
    return tmp_path
