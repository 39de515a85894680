"""From a config to everything the loop needs: tokenizer, store, dev set, model and the settings that depend on the corpus."""

from __future__ import annotations

import gc
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from mt.checkpoint import rotate
from mt.config.derived import AUTO_TOKENS, derive, with_batch_tokens
from mt.config.load import dump, load
from mt.config.schema import Config
from mt.data.cachedir import CacheDir
from mt.data.loader import TrainingData
from mt.data.meter import Say
from mt.data.plan import Measure
from mt.data.store import Store
from mt.errors import DataError, RunError
from mt.files import write_atomic
from mt.formats.pairs import Pair
from mt.launch.derive import changes, make_plan, same_group, same_run
from mt.launch.holdout import at_home, hold_out
from mt.launch.inherit import adopt, freeze, load_inherited
from mt.launch.inputs import find_store, make_inputs, open_store, opens, pointer_of, training_data
from mt.launch.recovery import newest_state, recover
from mt.launch.sources import check_sources, check_tests, fingerprints, read_dev, training_sources
from mt.model.device import choose_device
from mt.model.loss import build_loss
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.tokenizer.of_run import check_fingerprints, load_tokenizers
from mt.tokenizer.spm import Tokenizers
from mt.train.loop import Plan
from mt.train.memory import refuse_too_large
from mt.train.parallel import ALONE, Ranks
from mt.train.precision import choose_precision
from mt.train.state import State
from mt.train.trial import TRIED_ON, choose_batch_tokens
from mt.train.validate import Validators


@dataclass
class Prepared:
    """A run, ready to train."""

    run: RunDir
    config: Config
    """Effective: nothing left to be derived."""
    data: TrainingData
    validator: Validators | None
    state: State
    plan: Plan
    epoch: Measure
    """What the first epoch comes to."""
    changed: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    """The settings that are others than before it was resumed, each with its value then and now."""

    @property
    def updates_per_epoch(self) -> int:
        """Of the first epoch; others differ by a few."""
        return updates_in(self.epoch, self.config, self.state.ranks)

    @property
    def micro_batches(self) -> float:
        """Of an update and a rank, on average: the last update of an epoch takes what is left."""
        return self.epoch.batches / (self.updates_per_epoch * self.state.ranks.count)


def prepare(config: Config, *, device: str, say: Say, ranks: Ranks = ALONE, room: int | None = None) -> Prepared:
    """Read and check all data, train the tokenizer and build the store, in a new run directory.

    `room` are the free bytes of the device that has fewest, where there are several.
    Raises MTError for anything wrong with settings or data; then nothing of the run is left behind.
    """
    run = RunDir(run_path(config))
    config = adopt(config, say=say)
    with fresh(run):
        where = ranks.place(choose_device(device))
        precision = choose_precision(config.train.precision, where)
        refuse_too_large(config, where)
        training_sources(config)  # a filter that cannot work is refused before anything is read
        cache = CacheDir(config.data.cache)
        config = hold_out(config, run.split, cache, fingerprints(config, cache), say=say)
        dev = read_dev(config)
        check_tests(config)
        tokenizers, store = make_inputs(config, run, say=say)
        config = config.model_copy(update={"train": config.train.model_copy(update={"precision": precision})})
        config = with_batch_tokens(config, auto_tokens(config, run, tokenizers, store, device=where, room=room, say=say))
        data = training_data(config, store, tokenizers, workers=worker_count(config, where), ranks=ranks)
        epoch = data.order.measure()
        config = derive(config, updates_per_epoch=updates_in(epoch, config, ranks))
        prepared = assemble(config, run, tokenizers, data, epoch, dev, device=where, ranks=ranks, say=say)
        with write_atomic(run.config) as file:
            file.write(dump(config))
    if prepared.validator:
        say(prepared.validator.report)
    return prepared


def resume(config: Config, *, device: str, say: Say, ranks: Ranks = ALONE) -> Prepared:
    """Take a run up where its newest whole checkpoint was written. Raises RunError naming all settings and files that have changed."""
    run = RunDir(run_path(config))
    frozen = at_home(load(run.config).config, run)
    newest = newest_state(run)
    before = newest.get("micro_batches") or frozen.train.accumulate * ranks.count
    config = same_run(config, same_group(config, frozen, run, before=before, ranks=ranks.count), run)
    cache, where = CacheDir(config.data.cache), ranks.place(choose_device(device))
    check_sources(run, cache)
    check_tests(config)
    tokenizers = load_tokenizers(run, joint=config.tokenizer.joint)
    if newest:
        check_fingerprints(newest, tokenizers, source=run.path)
    store = find_store(config, run, cache, tokenizers, say=say)
    data = training_data(config, store, tokenizers, workers=worker_count(config, where), ranks=ranks)
    prepared = assemble(config, run, tokenizers, data, data.order.measure(), read_dev(config), device=where, ranks=ranks, say=say)
    prepared.changed = changes(frozen, config)
    if changed := ", ".join(f"{key} {new} (was {old})" for key, (old, new) in prepared.changed.items() if key != "run_dir"):
        say(f"{run.path}: goes on with {changed}")
    if recover(prepared.state, run, config.model, say=say):
        cfg = config.train
        if not prepared.state.progress.risen:
            rotate(run, keep=cfg.keep, every=prepared.plan.save_every, best=cfg.average.best, metric=cfg.early_stopping.metric)
    else:
        run.journal.unlink(missing_ok=True)
        shutil.rmtree(run.tensorboard, ignore_errors=True)
        say(f"{run.path}: was stopped before its first checkpoint, starting over")
    with write_atomic(run.config) as file:
        file.write(dump(config))
    return prepared


def join(config: Config, *, device: str, ranks: Ranks, say: Say) -> Prepared:
    """What the first rank has prepared, or resumed, with this config of effect, as another rank has it.

    Raises RunError on a machine that does not see the same files.
    """
    run = RunDir(run_path(config))
    where = ranks.place(choose_device(device))
    cure = "keep run_dir and data.cache where all machines see them"
    if not run.is_whole() or not opens(Path(pointer_of(run)["path"])):
        raise RunError(f"{run.path}: the run, or its prepared pairs, cannot be seen from {socket.gethostname()}; {cure}")
    tokenizers = load_tokenizers(run, joint=config.tokenizer.joint)
    data = training_data(config, open_store(run), tokenizers, workers=worker_count(config, where), ranks=ranks)
    prepared = assemble(config, run, tokenizers, data, data.order.measure(), read_dev(config), device=where, ranks=ranks, say=say)
    recover(prepared.state, run, config.model, say=say)
    return prepared


def run_path(config: Config) -> Path:
    """Where the run is kept; the loader has filled it in."""
    assert config.run_dir is not None
    return config.run_dir


@contextmanager
def fresh(run: RunDir) -> Iterator[None]:
    """Within, the run directory is built from nothing; if that fails it is as it was before, an older run there included."""
    try:
        run.put_aside()
        try:
            yield
        except BaseException:
            run.config.unlink(missing_ok=True)
            raise
    finally:
        run.put_back()


def worker_count(config: Config, device: torch.device) -> int:
    """Processes that make batches; for a CPU none, as they would take its time from the model."""
    workers = config.data.workers
    return workers if workers != "auto" else 0 if device.type == "cpu" else 2


def updates_in(epoch: Measure, config: Config, ranks: Ranks) -> int:
    """Updates of an epoch."""
    return -(-epoch.batches // (config.train.accumulate * ranks.count))


def assemble(
    config: Config,
    run: RunDir,
    tokenizers: Tokenizers,
    data: TrainingData,
    epoch: Measure,
    dev: dict[str, list[Pair]],
    *,
    device: torch.device,
    ranks: Ranks,
    say: Say,
) -> Prepared:
    """Model, optimiser and dev set around the data."""
    check_directions(data, tokenizers)
    state = build_state(config, run, tokenizers, device=device, ranks=ranks, say=say)
    validator = Validators.build(dev, tokenizers, config=config, device=device) if dev else None
    return Prepared(run, config, data, validator, state, make_plan(config, updates_in(epoch, config, ranks)), epoch)


def build_state(config: Config, run: RunDir, tokenizers: Tokenizers, *, device: torch.device, ranks: Ranks, say: Say) -> State:
    """Model and optimiser, from the seed alone, or from the run that this one starts from: the same on all ranks."""
    refuse_too_large(config, device, vocab=(tokenizers.src.size, tokenizers.tgt.size))
    torch.manual_seed(config.train.seed)
    model = Transformer.build(config.model, src_vocab=tokenizers.src.size, tgt_vocab=tokenizers.tgt.size, joint=tokenizers.joint)
    if config.train.init_from and not run.steps():  # else a checkpoint of its own is read next
        load_inherited(model, config, tokenizers, say=say)
    freeze(model, config.train.freeze)
    loss = build_loss(model.to(device), config.train, pad=tokenizers.tgt.pad).train()
    ranks.reseed(config.train.seed)
    precision = choose_precision(config.train.precision, device)
    origin = {
        "tokenizers": [one.fingerprint for one in tokenizers],
        "model": config.model.model_dump(mode="json"),
        "micro_batches": config.train.accumulate * ranks.count,
    }
    return State(loss, config.train, precision=precision, device=device, origin=origin, ranks=ranks)


def auto_tokens(
    config: Config, run: RunDir, tokenizers: Tokenizers, store: Store, *, device: torch.device, room: int | None, say: Say
) -> int:
    """What train.batch_tokens is, or comes to if it is `auto`; then it is said."""
    if config.train.batch_tokens != "auto":
        return config.train.batch_tokens
    if device.type in TRIED_ON:
        state = build_state(config, run, tokenizers, device=device, ranks=ALONE, say=lambda _: None)
        data_of = lambda tokens: training_data(with_batch_tokens(config, tokens), store, tokenizers)  # noqa: E731
        found = choose_batch_tokens(state, data_of, cfg=config.train, room=room)
        del state
        gc.collect()  # another one takes its place
    else:
        found = AUTO_TOKENS
    say(f"train.batch_tokens: auto is {found} here")
    return found


def check_directions(data: TrainingData, tokenizers: Tokenizers) -> None:
    """Raise DataError if the ids of the first pairs do not give their text back: each side has to be in its own tokenizer's ids."""
    for example in data.store.take(range(min(20, len(data.store)))):
        for side, tokenizer, text, ids in zip(("source", "target"), tokenizers, example.pair[:2], example[1:3], strict=True):
            if tokenizer.encode(text) != ids:
                cure = "put the original model file back, or start over with --overwrite"
                raise DataError(f"{example.pair.origin}: the stored {side} ids are not those of its tokenizer; {cure}")
