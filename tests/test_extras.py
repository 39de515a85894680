"""How an extra is had: by the names of its libraries, wherever mt came from."""

from __future__ import annotations

import shlex
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from mt import extras

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", ["export", "languages", "serve", "eval-neural"])
def test_its_libraries_are_named(extra: str) -> None:
    pip, install, *names = shlex.split(extras.install(extra))
    assert (pip, install, sorted(names)) == ("pip", "install", sorted(EXTRAS[extra]))


def test_what_was_never_installed_is_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", unknown)
    assert extras.install("serve") == "pip install '.[serve]' in the folder of pyproject.toml"
