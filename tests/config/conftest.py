"""A config file to load: the text is written to x.yaml in a fresh folder, which is also the current directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mt.config.load import Loaded, load
from mt.errors import ConfigError

DATA = "data: {train: [{src: t.en, tgt: t.de}], dev: {src: d.en, tgt: d.de}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def read() -> Callable[..., Loaded]:
    """Load a text; the smallest valid data section is put before it unless it has one."""

    def read(text: str, *overrides: str, data: bool = True) -> Loaded:
        Path("x.yaml").write_text(DATA + text if data else text, encoding="utf-8", newline="\n")
        return load(Path("x.yaml"), overrides)

    return read


@pytest.fixture
def problems(read: Callable[..., Loaded]) -> Callable[..., list[str]]:
    """What loading a text complains about, line by line."""

    def problems(text: str, *overrides: str, data: bool = True) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            read(text, *overrides, data=data)
        return str(caught.value).split("\n")

    return problems
