"""Trouble that people had with the configs of other toolkits (rows 98, 100, 101)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt.config.load import load
from mt.errors import ConfigError
from mt.rundir import RunDir
from tests import toy
from tests.preparing import sets
from tests.runs import journal
from tests.translating import mt

DATA = "data: {train: [{src: t.en, tgt: t.de}], dev: none}\n"


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return [line.removeprefix(f"{path}:") for line in caught.value.problems]


def refused(path: Path) -> list[str]:
    """What `mt train` says of a config it refuses: nothing but problems, and no traceback; it leaves nothing behind."""
    before = list(path.parent.iterdir())
    done = mt("train", "--config", path, "--run-dir", path.parent / "run")
    assert (done.code, done.out) == (2, b"")
    assert list(path.parent.iterdir()) == before
    return done.err


def test_98_yaml_floats(tmp_path: Path) -> None:
    """`lr: 1e-4` is a number, not text that fails later (huggingface/trl#1450, rbgirshick/yacs#46)."""
    path = tmp_path / "x.yaml"
    path.write_text(DATA + "train:\n  optimizer: {lr: 1e-4}\n  label_smoothing: 1e-1\n  max_updates: 1e3\n", encoding="utf-8")
    train = load(path).config.train
    assert (train.optimizer.lr, train.label_smoothing, train.max_updates) == (0.0001, 0.1, 1000)
    assert isinstance(train.max_updates, int)
    path.write_text(DATA + "train:\n  max_updates: 1e-3\n", encoding="utf-8")
    assert problems(path) == ["3: train.max_updates: should be a whole number, not 0.001"]
    assert refused(path) == [f"{path}:3: train.max_updates: should be a whole number, not 0.001"]  # no word of data that are not there


def test_98_yaml_floats_reach_the_optimizer(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, train=20, dev=1, test=1)
    path = tmp_path / "x.yaml"
    path.write_text(
        "data: {train: [{src: train.src, tgt: train.trg}], dev: none}\n"
        "tokenizer: {vocab_size: 120}\n"
        "train: {max_updates: 2e0, optimizer: {lr: 1e-4}, schedule: {kind: constant}, label_smoothing: 1e-1}\n",
        encoding="utf-8",
    )
    tiny = (*(value for value in toy.TINY if value.startswith("model.")), f"data.cache={tmp_path / 'cache'}")
    done = mt(
        "train", "--config", path, "--run-dir", tmp_path / "run", "--device", "cpu", *sets((*tiny, f"data.cache={tmp_path / 'cache'}"))
    )
    assert done.code == 0
    rates = [event["lr"] for event in journal(RunDir(tmp_path / "run")) if event["event"] == "update"]
    assert set(rates) == {1e-4}


def test_98_foreign_names_are_refused_before_data_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("training:\n  lr: 1e-4\n  label_smoothing: 1e-1\n  max_steps: 1e3\n" + DATA, encoding="utf-8")
    assert problems(path) == [
        "1: training: unknown key, did you mean `train`?",
        "2: training.lr: unknown key, did you mean `train.optimizer.lr`?",
        "4: training.max_steps: unknown key, did you mean `train.max_updates`?",
    ]


def test_100_unknown_key(tmp_path: Path) -> None:
    """Misspelt settings are all named, with the names they should have (eole-nlp/eole#66, OpenNMT-py#948)."""
    path = tmp_path / "x.yaml"
    path.write_text("train:\n  optimizer: {lr: 0.001}\n  warmup_step: 400\n  drop_out: 0.3\n" + DATA, encoding="utf-8")
    expected = [
        "3: train.warmup_step: unknown key, did you mean `train.schedule.warmup`?",
        "4: train.drop_out: unknown key, did you mean `model.dropout`?",
    ]
    assert problems(path) == expected
    path.write_text(path.read_text(encoding="utf-8").replace("train:\n  opt", "training:\n  opt"), encoding="utf-8")
    assert problems(path) == ["1: training: unknown key, did you mean `train`?"] + [
        line.replace("train.", "training.", 1) for line in expected
    ]


def test_100_unknown_key_ends_training_before_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("train:\n  warmup_step: 400\n  drop_out: 0.3\n" + DATA, encoding="utf-8")
    assert refused(path) == [
        f"{path}:2: train.warmup_step: unknown key, did you mean `train.schedule.warmup`?",
        f"{path}:3: train.drop_out: unknown key, did you mean `model.dropout`?",
    ]


def test_101_duplicate_key(tmp_path: Path) -> None:
    """The same key twice is refused instead of the last one winning (rbgirshick/yacs#17, ArcticTraining#85)."""
    path = tmp_path / "x.yaml"
    path.write_text("train:\n  max_updates: 100\n  seed: 1\n  max_updates: 100000\n" + DATA, encoding="utf-8")
    assert problems(path) == ["4: train.max_updates: given twice, on lines 2 and 4; keep one of them"]
    assert refused(path) == [f"{path}:4: train.max_updates: given twice, on lines 2 and 4; keep one of them"]
