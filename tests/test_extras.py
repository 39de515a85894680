"""How an extra is had: by the names of its libraries, wherever mt came from."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from mt import extras

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", ["export", "languages", "serve", "eval-neural"])
def test_its_libraries_are_named(extra: str) -> None:
    pip, install, *names = shlex.split(extras.install(extra, tested=False))
    assert (pip, install, sorted(names)) == ("pip", "install", sorted(EXTRAS[extra]))


@dataclass
class Installed:
    """Stands in for what pip keeps about an installation."""

    url: str

    def read_text(self, name: str) -> str | None:
        return json.dumps({"url": self.url, "dir_info": {}}) if self.url and name == "direct_url.json" else None


@pytest.mark.parametrize(("there", "known"), [(True, True), (False, True), (True, False)])
def test_versions_are_those_of_the_folder_it_was_installed_from(
    there: bool, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    if there:
        (folder / "constraints.txt").touch()
    monkeypatch.setattr(extras, "distribution", lambda _: Installed(folder.as_uri() if known else ""))
    words = shlex.split(extras.install("languages"))
    expected = ["-c", str(folder / "constraints.txt")] if there and known else []
    assert words == ["pip", "install", *expected, *EXTRAS["languages"]]


def test_a_folder_of_somebody_else_has_no_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = os.stat

    def refused(path: Any, **how: Any) -> os.stat_result:
        if os.fspath(path) == str(tmp_path / "constraints.txt"):
            raise PermissionError(13, "Permission denied")
        return status(path, **how)

    monkeypatch.setattr(extras, "distribution", lambda _: Installed(tmp_path.as_uri()))
    monkeypatch.setattr(os, "stat", refused)
    assert shlex.split(extras.install("languages")) == ["pip", "install", *EXTRAS["languages"]]


def test_what_was_never_installed_is_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", unknown)
    assert extras.install("serve") == "pip install -c constraints.txt '.[serve]' in the folder of pyproject.toml"


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_it_is_installed_as_the_pages_say(page: str) -> None:
    block = (ROOT / page).read_text(encoding="utf-8").partition("```bash\n")[2].partition("```")[0].splitlines()
    assert block == ["python3 -m venv .venv", extras.ACTIVATE, extras.INSTALL]
