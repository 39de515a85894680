"""One trained toy model for all cases that need one: about 20 seconds of a core, once; and runs that learn nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.preparing import sets
from tests.runs import train
from tests.translating import Ended, mt

FOREIGN = {"mäka": "grän", "søto": "漢字"}
"""Words of the toy language beside those of tests/toy.py; their letters are in no eight-bit code page together."""


def right(sentence: str) -> str:
    """The right translation of a toy sentence."""
    words = toy.lexicon() | FOREIGN | {".": "."}
    return " ".join(words[word] for word in sentence.split())


def sentences(count: int, *, seed: int) -> list[str]:
    """Sentences of one to six words and a full stop."""
    rng, words = random.Random(seed), [*toy.lexicon(), *FOREIGN]
    return [" ".join([*rng.choices(words, k=rng.randint(1, 6)), "."]) for _ in range(count)]


def tiny_run(folder: Path, *changes: str, name: str = "run", more: Sequence[str | Path] = ()) -> Ended:
    """What comes of `mt train` on the corpus in a folder: two updates of a tiny model, unless the changes say otherwise."""
    tiny = (*toy.TINY, "train.max_updates=2", "data.dev=none", f"data.cache={folder / 'cache'}", *changes)
    return mt("train", "--config", toy.config_file(folder), "--run-dir", folder / name, "--device", "cpu", *sets(tiny), *more)


@dataclass(frozen=True)
class ToyRun:
    """A run that has learnt the toy language, a piece a word. Without bytes, what it never saw is unknown; a line has 10 pieces at most."""

    run: RunDir
    """Holds checkpoints of 200 updates and of 400, the best; its config and corpora are one directory up."""
    test: list[str]
    """Source sentences, not those it was trained on."""

    @cached_property
    def translator(self) -> Translator:
        return Translator.load(self.run.path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> ToyRun:
    folder = tmp_path_factory.mktemp("toy")
    texts = {"train": sentences(4000, seed=1), "valid": sentences(40, seed=2), "test": sentences(41, seed=3)}
    for name, lines in texts.items():
        toy.write_lines(folder / f"{name}.src", lines)
        toy.write_lines(folder / f"{name}.trg", map(right, lines))
    settings = {
        "data.max_pieces": 10,
        "tokenizer": "{vocab_size: 1000, byte_fallback: false}",
        "train.batch_tokens": 320,
        "train.max_updates": 400,
        "train.optimizer.lr": 4e-3,
        "train.schedule": "{kind: cosine, warmup: 50}",
        "train.validation.every": 200,
    }
    config = toy.config(folder, *(f"{key}={value}" for key, value in settings.items()))
    done = train(config)
    assert done.code == 0
    toy_run = ToyRun(RunDir(folder / "run"), texts["test"])
    found = [translation.text for translation in toy_run.translator.translate(toy_run.test)]
    wrong = sum(translation != right(source) for source, translation in zip(toy_run.test, found, strict=True))
    assert wrong <= 1, f"{wrong} of {len(found)} test lines are wrong: the cases would mean nothing"
    return toy_run
