"""A stand-in for the package unbabel-comet, whose pins exclude a current numpy."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from mt.evaluate.neural import judge_of


class Judge:
    """Stands in for a model: the score of a line is the share of its words that are in the reference, or in the source."""

    asked: list[list[dict[str, str]]] = []

    def predict(self, data: list[dict[str, str]], **_options: Any) -> dict[str, list[float]]:
        self.asked.append(data)
        against = [set(one.get("ref", one["src"]).split()) for one in data]
        return {"scores": [share(one["mt"], words) for one, words in zip(data, against, strict=True)]}


def share(text: str, words: set[str]) -> float:
    return len(set(text.split()) & words) / max(1, len(text.split()))


def pretend_comet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As if the package were there, for this test; what is loaded is added to the list."""
    loaded: list[str] = []

    def load(path: str) -> Judge:
        loaded.append(path)
        return Judge()

    def download(name: str) -> str:
        if name == "none/such":
            raise KeyError("Model 'none/such' not supported by COMET.")
        return f"/hub/{name}"

    module = ModuleType("comet")
    module.__spec__ = ModuleSpec("comet", None)
    module.load_from_checkpoint, module.download_model = load, download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "comet", module)
    monkeypatch.setattr(Judge, "asked", [])
    judge_of.cache_clear()
    return loaded
