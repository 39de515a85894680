"""Settings that are left out and depend on the corpus: what they come to."""

from __future__ import annotations

from collections.abc import Iterator

from mt.config.schema import Config

AUTO_TOKENS = 1024
"""What `train.batch_tokens: auto` is elsewhere than on CUDA: small batches cost a CPU no more for each token, and make more updates."""


def with_batch_tokens(config: Config, tokens: int) -> Config:
    """The config with this number in place of `auto`."""
    if config.train.batch_tokens != "auto":
        return config
    return config.model_copy(update={"train": config.train.model_copy(update={"batch_tokens": tokens})})


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


def left_out(config: Config) -> Iterator[str]:
    """A line on each setting that training will derive: its value, or from what to what the corpus decides."""
    small, large = (derive(config, updates_per_epoch=updates).train for updates in (1, 10**9))
    found = {
        "train.max_updates": (config.train.max_updates, small.max_updates, large.max_updates),
        "train.schedule.warmup": (config.train.schedule.warmup, small.schedule.warmup, large.schedule.warmup),
        "train.validation.every": (config.train.validation.every, small.validation.every, large.validation.every),
        "train.save_every": (config.train.save_every, small.save_every, large.save_every),
    }
    for key, (given, least, most) in found.items():
        if given is None and most is not None:
            yield f"{key}: {most}" if least == most else f"{key}: {least} to {most}, more for a larger corpus"
    if config.data.dev is None:
        which = "data.dev" if config.data.test else "data.dev and data.test"
        yield f"{which}: held out of the training pairs (data.split)"
    if config.train.batch_tokens == "auto":
        yield f"train.batch_tokens: {AUTO_TOKENS}, on CUDA as many as fit"
