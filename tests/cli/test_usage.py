"""Usage that is wrong in the usual ways is told with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import mt


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["train", "my.yaml"], "Missing option '--config'; write --config my.yaml"),
        (["data", "prepare", "my.yml"], "Missing option '--config'; write --config my.yml"),
        (["data", "check", "my.yaml"], "; write --config my.yaml"),
        (["train", "--config", "my.yaml", "--set", "train.seed", "2"], "(2); write --set train.seed=2"),
        (["config", "show", "my.yaml", "--set", "train.seed", "2"], "(2); write --set train.seed=2"),
        (["config", "show", "my.yaml", "--set", "train.lr", "=", "5e-4"], "; write --set train.lr=5e-4"),
        (["config", "show", "my.yaml", "--set", "train.lr=", "5e-4"], "; write --set train.lr=5e-4"),
        (["config", "show", "my.yaml", "--set", "train.lr", "=5e-4"], "; write --set train.lr=5e-4"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_the_cure_is_named(words: list[str], cure: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = mt(*words, capsys=capsys)
    assert done.code == 2
    assert done.lines[-1].endswith(cure)


def test_other_mistakes_keep_their_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = mt("train", "--config", tmp_path / "x.yaml", "--no-such-option", capsys=capsys)
    assert done.code == 2
    assert "--no-such-option" in done.lines[-1]
    assert "write" not in done.lines[-1]
