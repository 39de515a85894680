"""What a run is warned of before it starts: each where there is cause for it, and not else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from mt.launch.concerns import advice, concerns
from mt.launch.prepare import Prepared
from tests import toy
from tests.runs import four_updates, prepared

CALM = ("tokenizer.vocab_size=40", "model.dropout=0.2")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("concerns")
    toy.write_corpus(folder, train=100, dev=200, test=3)
    return folder


def calm(folder: Path, *overrides: str) -> Prepared:
    return prepared(four_updates(folder, *CALM, *overrides))


def test_a_run_like_any_other_is_told_nothing(corpus: Path) -> None:
    assert [*concerns(one := calm(corpus)), *advice(one)] == []


@pytest.mark.parametrize(
    ("override", "warning"),
    [
        ("train.batch_tokens=100000", "train.batch_tokens: one update takes all 100 pairs, "),
        ("train.accumulate=1000", "train.batch_tokens: one update takes all 100 pairs, "),
        ("tokenizer.vocab_size=200", "tokenizer.vocab_size: 200 pieces for "),
        ("model.dropout=0.1", "model.dropout: 0.1 is little for 100 pairs, "),
        ("train.validation.max_lines=100", "valid.src: scores of 100 lines go up and down by chance"),
    ],
)
def test_what_is_hardly_meant_is_told(corpus: Path, override: str, warning: str) -> None:
    one = calm(corpus, override)
    (line,) = [*concerns(one), *advice(one)]
    assert line.startswith(warning)


class Usage(NamedTuple):
    free: int


def test_a_disk_without_room_for_the_checkpoints(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = calm(corpus, "train.keep=100")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free=2**20))
    (line,) = concerns(one)
    assert "its checkpoints take up to" in line
    assert "the disk has 1.0 MiB left; make room, lower train.keep (100)" in line
