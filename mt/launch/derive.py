"""The numbers a run goes by, and settings that may change while it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mt.config.schema import Config, Cosine, Linear
from mt.errors import ConfigError, RunError
from mt.launch.holdout import same_split
from mt.rundir import RunDir
from mt.train.loop import Plan

MAY_CHANGE = (
    "train.max_updates",
    "train.max_epochs",
    "train.max_minutes",
    "train.save_every",
    "train.keep",
    "train.max_risen",
    "train.report",
    "train.validation.",
    "train.early_stopping.",
    "data.cache",
    "data.workers",
    "decode.",
    "run_dir",
)
"""Settings that a resumed run may have otherwise than before; the limits not under cosine or linear, whose curve they shape."""


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


def same_group(config: Config, frozen: Config, run: RunDir, *, before: int, ranks: int) -> Config:
    """The frozen config, its `accumulate` being that of the config where ranks × accumulate is what it was `before`.

    Then updates are the same ones, whoever makes them. Raises RunError where they would not be.
    """
    now = config.train.accumulate * ranks
    if now != before:
        what = f"an update had {before} micro-batches (ranks × train.accumulate), and would have {now} now"
        other = f"set train.accumulate={before // ranks}, or " if before % ranks == 0 else ""
        raise RunError(f"{run.path}: cannot resume, {what}; {other}start as many ranks as before")
    return frozen.model_copy(update={"train": frozen.train.model_copy(update={"accumulate": config.train.accumulate})})


def differing(old: object, new: object, name: str = "") -> Iterator[tuple[str, tuple[object, object]]]:
    """Where settings differ, by name, as deep as both have parts: a corpus that only one of them has is one change."""
    if isinstance(old, list) and isinstance(new, list):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differing(old.get(key), new.get(key), f"{name}.{key}" if name else str(key))
    elif old != new:
        yield name, (old, new)


def changes(frozen: Config, config: Config) -> dict[str, tuple[object, object]]:
    """The settings that are others than before, each with its value then and now."""
    old, new = (one.model_dump(mode="json", exclude_none=True) for one in (frozen, config))
    return dict(differing(old, new))


def may_change(config: Config) -> tuple[str, ...]:
    """Those of MAY_CHANGE that may under the schedule of a config."""
    shaped = isinstance(config.train.schedule, Cosine | Linear)
    return tuple(key for key in MAY_CHANGE if not (shaped and key in ("train.max_updates", "train.max_epochs")))


def longer(config: Config, why: str, run: RunDir, changed: Mapping[str, tuple[object, object]] | None = None) -> str:
    """How to train on after a run that ended because of `why`: a limit, such as `the limit of 3 minutes`, or lost patience.

    `changed`: the settings whose change has ended it, each with its value before and now.
    """
    unit = why.rpartition(" ")[2].removesuffix("s")
    limit = f"train.max_{unit}s" if unit in ("update", "epoch", "minute") else "train.early_stopping.patience"
    if changed and limit in changed:
        before = changed[limit][0]
        again = f"{limit}={f'{before:.10g}' if isinstance(before, int | float) else 'null'}"
        return f"the run had {again} before; to go on: --resume --set {again}{', or more' if before else ''}"
    if limit.startswith(may_change(config)):
        return f"to train longer: --resume --set {limit}=…"
    return f"to train longer: another run, with --init-from {run.path}; the schedule has come to its end"


def same_run(config: Config, frozen: Config, run: RunDir) -> Config:
    """The config to go on with: what was derived stays, harmless changes are taken. Raises RunError listing all others."""
    train = config.train
    derived = frozen.train
    fills: dict[str, object] = {"precision": derived.precision if train.precision == "auto" else train.precision}
    fills["batch_tokens"] = derived.batch_tokens if train.batch_tokens == "auto" else train.batch_tokens
    if train.max_updates is None and train.max_epochs is None and train.max_minutes is None:
        fills |= {limit: getattr(derived, limit) for limit in ("max_updates", "max_epochs", "max_minutes")}
    fills["init_from"] = train.init_from or derived.init_from
    if derived.init_from:  # the tokenizer is that of the other run, whatever the settings say
        sample = config.tokenizer.sample
        config = config.model_copy(update={"tokenizer": frozen.tokenizer.model_copy(update={"sample": sample})})
    fills["save_every"] = train.save_every or derived.save_every
    fills["schedule"] = train.schedule.model_copy(update={"warmup": train.schedule.warmup or derived.schedule.warmup})
    fills["validation"] = train.validation.model_copy(update={"every": train.validation.every or derived.validation.every})
    config = same_split(config.model_copy(update={"train": train.model_copy(update=fills)}), frozen)
    allowed = may_change(config)
    changed = {key: values for key, values in changes(frozen, config).items() if not key.startswith(allowed)}
    if changed:
        lines = [
            f"{run.path}: cannot resume, {key} changed: {'unset' if old is None else old} before, {'unset' if new is None else new} now"
            for key, (old, new) in changed.items()
        ]
        raise ConfigError(*lines, f"{run.path}: set these back, or start another run with --run-dir NEW")
    return config
