"""Sentences of a run to try a model on, found in what is left of its data."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from mt.config.directions import langs_of, tag_of
from mt.config.load import load
from mt.config.schema import Config
from mt.errors import MTError
from mt.formats.pairs import Pair
from mt.formats.readers import read_held_out
from mt.launch.holdout import at_home
from mt.launch.inputs import open_store
from mt.rundir import RunDir


class Probe(NamedTuple):
    """Some pairs of one direction."""

    pairs: list[Pair]
    called: str
    """Where they are from."""
    to: str | None
    """Target language to ask for, where the model has tags."""


def probe_of(run: RunDir, count: int) -> Probe | None:
    """So many pairs of the dev set, else of what was trained on, spread over it; fewer where there are not as many, None without any."""
    config = load(run.config).config
    for found in _of_dev, _of_training:
        with suppress(MTError, OSError):  # moved, changed or gone since the run was made
            if probe := found(config, run, count):
                return probe
    return None


def spread(pairs: list[Pair], count: int) -> list[Pair]:
    """So many of them, from all over."""
    return [pairs[place * len(pairs) // count] for place in range(count)] if len(pairs) > count else pairs


def _of_dev(config: Config, run: RunDir, count: int) -> Probe | None:
    config = at_home(config, run)
    for name, corpus in config.data.dev_sets().items():
        pairs = [pair for pair in read_held_out(corpus, langs=langs_of(config, corpus)) if pair.src.strip()]
        if pairs:
            return Probe(spread(pairs, count), f"the dev set ({name})", tag_of(config, corpus))
    return None


def _of_training(config: Config, run: RunDir, count: int) -> Probe | None:
    store = open_store(run)
    for corpus, span in zip(config.data.train, store.spans, strict=True):
        if not corpus.synthetic and span.count:
            most = min(count, span.count)
            found = store.take(span.start + place * span.count // most for place in range(most))
            called = f"what it was trained on ({corpus.called()}), as there is no dev set any more"
            return Probe([example.pair for example in found], called, tag_of(config, corpus))
    return None
