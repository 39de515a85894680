"""From a config to everything the loop needs: tokenizer, store, dev set, model and the settings that depend on the corpus."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from mt.config.directions import langs_of, tag_of, tags
from mt.config.load import dump, load
from mt.config.schema import Config, Cosine, Linear
from mt.data.augment import Augmenter
from mt.data.batches import TrainingData
from mt.data.filters import drop_reason
from mt.data.pairs import Pair
from mt.data.readers import read_pairs
from mt.data.store import Store, build_store
from mt.errors import ConfigError, DataError, RunError
from mt.files import sha256, shards, write_atomic
from mt.model.device import choose_device
from mt.model.loss import LossOfBatch
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.tokenizer.fit import fit as fit_tokenizer
from mt.tokenizer.spm import Tokenizers
from mt.train.loop import Plan
from mt.train.precision import choose_precision
from mt.train.state import State
from mt.train.validate import Validator
from mt.translator import load_tokenizers

Say = Callable[[str], None]

MAY_CHANGE = (
    "train.max_updates",
    "train.max_epochs",
    "train.max_minutes",
    "train.save_every",
    "train.keep",
    "train.validation.",
    "train.early_stopping.",
    "decode.",
    "run_dir",
)
"""Settings that a resumed run may have otherwise than before; the limits not under cosine or linear, whose curve they shape."""


@dataclass
class Prepared:
    """A run, ready to train."""

    run: RunDir
    config: Config
    """Effective: nothing left to be derived."""
    data: TrainingData
    validator: Validator | None
    state: State
    plan: Plan
    updates_per_epoch: int


def prepare(config: Config, *, device: str, say: Say) -> Prepared:
    """Read and check all data, train the tokenizer and build the store, in a new run directory.

    Raises MTError for anything wrong with settings or data; then nothing of the run is left behind.
    """
    run = RunDir(run_path(config))
    with fresh(run):
        where = choose_device(device)
        precision = choose_precision(config.train.precision, where)
        dev = read_dev(config)
        check_tests(config)
        tokenizers = fit_tokenizers(config, run, say=say)
        for line in build_store(run.data / "train", train_corpora(config), tokenizers, max_pieces=config.data.max_pieces):
            say(line)
        config = config.model_copy(update={"train": config.train.model_copy(update={"precision": precision})})
        data = training_data(config, run, tokenizers)
        config = derive(config, updates_per_epoch=updates_in_epoch(config, data))
        prepared = assemble(config, run, tokenizers, data, dev, device=where)
        with write_atomic(run.sources) as file:
            json.dump(fingerprints(config), file, indent=1)
        with write_atomic(run.config) as file:
            file.write(dump(config))
    if prepared.validator:
        say(prepared.validator.report)
    return prepared


def resume(config: Config, *, device: str, say: Say) -> Prepared:
    """Take a run up where its newest checkpoint was written. Raises RunError naming all settings and files that have changed."""
    run = RunDir(run_path(config))
    frozen = load(run.config).config
    config = same_run(config, frozen, run)
    check_sources(run)
    check_tests(config)
    tokenizers = load_tokenizers(run, joint=config.tokenizer.joint)
    data = training_data(config, run, tokenizers)
    prepared = assemble(config, run, tokenizers, data, read_dev(config), device=choose_device(device))
    last = run.names().get("last") or next((run.step(update).name for update in reversed(run.steps())), None)
    if last is None:
        run.journal.unlink(missing_ok=True)
        shutil.rmtree(run.tensorboard, ignore_errors=True)
        say(f"{run.path}: was stopped before its first checkpoint, starting over")
        return prepared
    prepared.state.restore(run.checkpoints / last)
    if "best" not in run.names():  # names.json was lost: the next validation is the best there is
        prepared.state.progress.best = None
    with write_atomic(run.config) as file:
        file.write(dump(config))
    return prepared


def run_path(config: Config) -> Path:
    """Where the run is kept; the loader has filled it in."""
    assert config.run_dir is not None
    return config.run_dir


@contextmanager
def fresh(run: RunDir) -> Iterator[None]:
    """Within, the run directory is built from nothing; if that fails it is as it was before, an older run there included."""

    run.put_aside()
    try:
        yield
    except BaseException:
        run.config.unlink(missing_ok=True)
        raise
    finally:
        run.put_back()


# ── data ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_dev(config: Config) -> tuple[str, list[Pair]] | None:
    """Name and pairs of the dev set; None if the run has none. Raises DataError if it is empty or broken."""
    dev = config.data.dev
    if dev == "none":
        return None
    return dev.called(), list(read_pairs(dev, langs=langs_of(config, dev)))


def check_tests(config: Config) -> None:
    """Read the test sets once: what is wrong with them is said before hours of training, not after."""
    for corpus in config.data.test.values():
        for _ in read_pairs(corpus, langs=langs_of(config, corpus)):
            pass


def train_corpora(config: Config) -> Iterator[tuple[str, float, Iterable[Pair]]]:
    """Name, weight and pairs of each training corpus."""
    for corpus in config.data.train:
        yield corpus.called(), corpus.weight, read_pairs(corpus, langs=langs_of(config, corpus))


def fit_tokenizers(config: Config, run: RunDir, *, say: Say) -> Tokenizers:
    """Train the tokenizer of both sides, or of each, on the training text; says what was adjusted."""
    src_file, tgt_file = run.tokenizer_files(joint=config.tokenizer.joint)
    sides: list[tuple[Path, tuple[int, ...]]] = [(src_file, (0, 1))] if config.tokenizer.joint else [(src_file, (0,)), (tgt_file, (1,))]
    for path, columns in sides:
        texts = ([pair[c] for c in columns] for _, _, pairs in train_corpora(config) for pair in pairs if not drop_reason(pair))
        tagged = tags(config) if 0 in columns else ()
        report = fit_tokenizer(texts, path, config.tokenizer, tags=tagged, seed=config.train.seed)
        for warning in report.warnings:
            say(f"{path.name}: {warning}")
        say(f"{path.name}: {report.vocab_size} pieces{', tags for ' + ', '.join(tagged) if tagged else ''}")
    return load_tokenizers(run, joint=config.tokenizer.joint)


def training_data(config: Config, run: RunDir, tokenizers: Tokenizers) -> TrainingData:
    """The batches of the run."""
    seed = config.train.seed
    augment = Augmenter(
        config.data.augment,
        sample=config.tokenizer.sample,
        symbols=config.tokenizer.symbols,
        tokenizers=tokenizers,
        max_pieces=config.data.max_pieces,
        seed=seed,
    )
    asked = [lang for corpus in config.data.train if (lang := tag_of(config, corpus))]
    tagged = [tokenizers.src.tag(lang) for lang in asked] or None
    return TrainingData(Store(run.data / "train"), tokenizers, budget=config.train.batch_tokens, seed=seed, augment=augment, tags=tagged)


def updates_in_epoch(config: Config, data: TrainingData) -> int:
    """Updates of the first epoch; others differ by a few."""
    return -(-len(data.plan(0)) // config.train.accumulate)


def fingerprints(config: Config) -> dict[str, str]:
    """SHA-256 of each file the run was made from; data sets of a hub are not among them."""
    corpora = [*config.data.train, *([] if config.data.dev == "none" else [config.data.dev])]
    return {str(file): sha256(file) for corpus in corpora for path in corpus.paths() for file in shards(path)}


def check_sources(run: RunDir) -> None:
    """Raise RunError naming each file that is no longer what the run was made from; one that is gone does no harm, the store has it."""
    before = json.loads(run.sources.read_text(encoding="utf-8"))
    changed = [file for file, digest in before.items() if Path(file).exists() and sha256(file) != digest]
    if changed:
        raise RunError(
            f"{run.path}: cannot resume, the data changed: {', '.join(changed)}; put the old files back, or start with --run-dir NEW"
        )


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def derive(config: Config, *, updates_per_epoch: int) -> Config:
    """The config with everything filled in that depends on the corpus."""
    train = config.train
    limits = (train.max_updates, train.max_epochs, train.max_minutes)
    max_updates = train.max_updates if any(limits) else min(100_000, max(2000, 40 * updates_per_epoch))
    every = train.validation.every or min(2000, max(100, updates_per_epoch))
    known = [n for n in (max_updates, train.max_epochs and train.max_epochs * updates_per_epoch) if n]
    warmup = train.schedule.warmup or max(1, min([1000, *(n // 10 for n in known)]))
    return config.model_copy(
        update={
            "train": train.model_copy(
                update={
                    "max_updates": max_updates,
                    "save_every": train.save_every or every,
                    "schedule": train.schedule.model_copy(update={"warmup": warmup}),
                    "validation": train.validation.model_copy(update={"every": every}),
                }
            )
        }
    )


def make_plan(config: Config, updates_per_epoch: int) -> Plan:
    """The numbers the loop goes by."""
    train = config.train
    assert train.schedule.warmup is not None
    assert train.validation.every is not None
    assert train.save_every is not None
    limits = [n for n in (train.max_updates, train.max_epochs and train.max_epochs * updates_per_epoch) if n]
    curve = min(limits) if limits else None
    return Plan(
        warmup=train.schedule.warmup,
        last_update=train.max_updates,
        curve_end=curve,
        validate_every=train.validation.every,
        save_every=train.save_every,
    )


def flat(values: object, prefix: str = "") -> dict[str, object]:
    """{"a": {"b": 1}} → {"a.b": 1}; lists by index."""
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else None
    if items is None:
        return {prefix[:-1]: values}
    return {key: value for name, inner in items for key, value in flat(inner, f"{prefix}{name}.").items()}


def same_run(config: Config, frozen: Config, run: RunDir) -> Config:
    """The config to go on with: what was derived stays, harmless changes are taken. Raises RunError listing all others."""
    train = config.train
    derived = frozen.train
    fills: dict[str, object] = {"precision": derived.precision if train.precision == "auto" else train.precision}
    if train.max_updates is None and train.max_epochs is None and train.max_minutes is None:
        fills["max_updates"] = derived.max_updates
    fills["save_every"] = train.save_every or derived.save_every
    fills["schedule"] = train.schedule.model_copy(update={"warmup": train.schedule.warmup or derived.schedule.warmup})
    fills["validation"] = train.validation.model_copy(update={"every": train.validation.every or derived.validation.every})
    config = config.model_copy(update={"train": train.model_copy(update=fills)})
    old, new = flat(frozen.model_dump(mode="json")), flat(config.model_dump(mode="json"))
    shaped = isinstance(config.train.schedule, Cosine | Linear)
    allowed = tuple(key for key in MAY_CHANGE if not (shaped and key in ("train.max_updates", "train.max_epochs")))
    changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key) and not key.startswith(allowed)]
    if changed:
        lines = [f"{run.path}: cannot resume, {key} changed: {old.get(key)} before, {new.get(key)} now" for key in changed]
        raise ConfigError(*lines, f"{run.path}: set these back, or start another run with --run-dir NEW")
    return config


def assemble(
    config: Config, run: RunDir, tokenizers: Tokenizers, data: TrainingData, dev: tuple[str, list[Pair]] | None, *, device: torch.device
) -> Prepared:
    """Model, optimiser and dev set, from the seed alone."""
    check_directions(data, tokenizers)
    torch.manual_seed(config.train.seed)
    model = Transformer.build(config.model, src_vocab=tokenizers.src.size, tgt_vocab=tokenizers.tgt.size, joint=tokenizers.joint)
    loss = LossOfBatch(model.to(device), smoothing=config.train.label_smoothing, pad=tokenizers.tgt.pad).train()
    precision = choose_precision(config.train.precision, device)
    prints = [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint]
    state = State(loss, config.train, precision=precision, device=device, fingerprints=prints)
    validator = Validator(dev[1], tokenizers, config=config, device=device, name=dev[0]) if dev else None
    updates = updates_in_epoch(config, data)
    return Prepared(run, config, data, validator, state, make_plan(config, updates), updates)


def check_directions(data: TrainingData, tokenizers: Tokenizers) -> None:
    """Raise DataError if the ids of the first pairs do not give their text back: each side has to be in its own tokenizer's ids."""
    for example in data.store.take(range(min(20, len(data.store)))):
        for side, tokenizer, text, ids in zip(("source", "target"), tokenizers, example.pair[:2], example[1:3], strict=True):
            if tokenizer.encode(text) != ids:
                raise DataError(
                    f"{example.pair.origin}: the stored {side} ids are not those of its tokenizer; start again with --overwrite"
                )
