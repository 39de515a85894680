"""What can be trained but is hardly meant, by what the corpus comes to. (What the settings tell by themselves: `mt.config.check`.)"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from mt.formats.pairs import counted
from mt.launch.footprint import checkpoints_size, parameters
from mt.launch.prepare import Prepared

SEEN = 20
"""Times that a piece of the vocabulary should come in an epoch, on average; a rarer one hardly learns anything."""
SMALL, LITTLE = 50_000, 0.2
"""Pairs below which dropout below this is too little to keep a model from learning them by heart."""
NOISY = 200
"""Lines of a dev set below which BLEU goes up and down by chance."""


def size(count: int) -> str:
    """Bytes for people."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def free_disk(path: Path) -> int:
    """Bytes that are free where a folder is, or will be."""
    return shutil.disk_usage(next(folder for folder in (path, *path.absolute().parents) if folder.exists())).free


def concerns(prepared: Prepared) -> Iterator[str]:
    """What a run should be told before it starts, a line each."""
    config, epoch = prepared.config, prepared.epoch
    train, tokenizers = config.train, prepared.data.tokenizers
    if prepared.updates_per_epoch == 1:
        what = f"one update takes all {counted(len(prepared.data.store), 'pair')}"
        yield f"train.batch_tokens: {what}, which makes few updates an epoch; lower train.batch_tokens or train.accumulate"
    pieces = tokenizers.src.size + (0 if tokenizers.joint else tokenizers.tgt.size)
    if epoch.real < SEEN * pieces:
        what = f"{pieces} pieces for {epoch.real} tokens an epoch, each comes {epoch.real / pieces:.1f} times on average"
        yield f"tokenizer.vocab_size: {what}; {max(100, epoch.real // SEEN // 100 * 100)} or fewer would learn more"
    needed, free = checkpoints_size(config, parameters(prepared.state.model)), free_disk(prepared.run.path)
    if needed > free and not prepared.run.steps():
        what = f"its checkpoints take up to {size(needed)}, and the disk has {size(free)} left"
        yield f"{prepared.run.path}: {what}; make room, lower train.keep ({train.keep}), or give another --run-dir"


def advice(prepared: Prepared) -> Iterator[str]:
    """What whoever looks before training may want to know; at the start of each run it would be in the way of those who know."""
    model, pairs = prepared.config.model, len(prepared.data.store)
    if model.dropout < LITTLE and pairs < SMALL:
        yield f"model.dropout: {model.dropout:g} is little for {counted(pairs, 'pair')}, which a model soon knows by heart; 0.3 is usual"
    if prepared.validator:
        for name, one in prepared.validator.each.items():
            if len(one.pairs) < NOISY:
                yield f"{name}: scores of {counted(len(one.pairs), 'line')} go up and down by chance; 500 or more tell more"
