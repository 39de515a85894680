"""The library that tells languages takes seconds to load: here it is as if it were not installed, unless a test puts one in its place."""

from __future__ import annotations

import pytest

from mt.errors import ConfigError


@pytest.fixture(autouse=True)
def no_language_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*languages: str) -> None:
        raise ConfigError(f"not installed, for {languages}")

    monkeypatch.setattr("mt.doctor.looks.Identifier", missing)
    monkeypatch.setattr("mt.doctor.doctor.installed", lambda: True)  # no note about that in each report
