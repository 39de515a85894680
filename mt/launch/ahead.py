"""Before a run: tokenizers and prepared pairs made ahead, and the first pairs of an epoch to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from mt.config.derived import AUTO_TOKENS, with_batch_tokens
from mt.config.load import load
from mt.config.schema import Config
from mt.data.cachedir import CacheDir
from mt.data.loader import TrainingData
from mt.data.meter import Say
from mt.data.plan import Cursor
from mt.data.show import shown
from mt.errors import ConfigError
from mt.launch.holdout import at_home, hold_out
from mt.launch.inherit import adopt
from mt.launch.inputs import find_store, fit_tokenizers, obtain_store, training_data
from mt.launch.sources import fingerprints
from mt.rundir import RunDir
from mt.tokenizer.of_run import load_tokenizers


def data_of_config(path: Path, overrides: Sequence[str], *, say: Say) -> TrainingData:
    """The batches that a run of this config will have; tokenizers and prepared pairs are found in the cache, or made and left there."""
    config, warnings = load(path, overrides)
    for warning in warnings:
        say(f"warning: {warning}")
    config = adopt(config, say=say)
    if config.train.batch_tokens == "auto":
        say(f"train.batch_tokens: auto, shown as {AUTO_TOKENS}; training on CUDA tries how many fit")
        config = with_batch_tokens(config, AUTO_TOKENS)
    cache = CacheDir(config.data.cache)
    prints = fingerprints(config, cache)
    with TemporaryDirectory() as folder:
        run = RunDir(folder)
        config = hold_out(config, run.split, cache, prints, say=say)
        tokenizers = fit_tokenizers(config, run, cache, prints, say=say)
        store = obtain_store(config, cache, prints, tokenizers, say=say)
    for name, tally in store.tallies.items():
        say(tally.line(name))
    return training_data(config, store, tokenizers)


def data_of_run(path: Path, overrides: Sequence[str], *, say: Say) -> TrainingData:
    """The batches of a run; of its settings, those that do not decide which pairs there are can be changed."""
    run = RunDir(path)
    run.require()
    frozen, config = (at_home(load(run.config, changes).config, run) for changes in ((), overrides))
    config = with_batch_tokens(config, frozen.train.budget)
    tokenizers = load_tokenizers(run, joint=frozen.tokenizer.joint)
    refuse_other_pairs(config, frozen, run)
    store = find_store(frozen, run, CacheDir(config.data.cache), tokenizers, say=say)
    return training_data(config, store, tokenizers)


def refuse_other_pairs(config: Config, frozen: Config, run: RunDir) -> None:
    """Raise ConfigError where settings ask for other pairs, or other pieces, than a run was prepared with."""
    kept = {"data.train": "train", "data.filters": "filters", "data.max_pieces": "max_pieces", "data.tags": "tags", "data.split": "split"}
    changed = [name for name, field in kept.items() if getattr(config.data, field) != getattr(frozen.data, field)]
    changed += ["langs"] if config.langs != frozen.langs else []
    fixed = {"sample"}
    changed += ["tokenizer"] if config.tokenizer.model_dump(exclude=fixed) != frozen.tokenizer.model_dump(exclude=fixed) else []
    if changed:
        raise ConfigError(f"{run.path}: was prepared with another {changed[0]}; to see pairs of other settings give --config FILE")


def first_pairs(data: TrainingData, *, epoch: int, count: int) -> Iterator[str]:
    """The first pairs of an epoch (from 0), in the order they are trained on."""
    examples = ((place, example) for place, _ in data.order.cursors(Cursor(epoch)) for example in data.examples(place))
    for place, example in islice(examples, count):
        window = f" of window {place.window + 1}" if place.window else ""
        yield f"{example.pair.origin}  epoch {place.epoch + 1}, batch {place.batch + 1}{window}"
        yield from shown(example, data.tokenizers)
