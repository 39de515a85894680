"""For tests of `mt data`: a small corpus, the settings of a tiny run on it, and the words that hand them to the command line."""

from __future__ import annotations

from pathlib import Path

from tests import toy
from tests.runs import four_updates
from tests.translating import Ended, mt

COUNT = 60
CORPORA = (
    "data.train=[{src: train.src, tgt: train.trg, langs: {src: en, tgt: de}},"
    " {src: train.trg, tgt: train.src, langs: {src: de, tgt: en}, weight: 2}]",
    "data.dev=none",
)
"""Overrides that make two corpora, and two target languages, of the one there is."""


def write_all(folder: Path) -> None:
    """A corpus with its settings, toy.yaml."""
    toy.write_corpus(folder, train=COUNT, dev=4, test=3)
    four_updates(folder)


def short(folder: Path, *overrides: str) -> tuple[str, ...]:
    """Two updates of a tiny model, with a cache of their own."""
    return (*toy.TINY, "train.max_updates=2", f"data.cache={folder / 'cache'}", f"run_dir={folder / 'run'}", *overrides)


def sets(overrides: tuple[str, ...]) -> list[str]:
    """The overrides as words of a command line."""
    return [word for override in overrides for word in ("--set", override)]


def data(command: str, folder: Path, *words: str | Path, overrides: tuple[str, ...] = ()) -> Ended:
    """`mt data show` or `mt data prepare` with these settings."""
    return mt("data", command, "--config", folder / "toy.yaml", *sets(short(folder, *overrides)), *words)
