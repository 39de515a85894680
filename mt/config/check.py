"""Settings that are allowed but hardly meant. (What cannot work is refused by the stage it is in: `Stage.contradictions`.)"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from mt.config import directions
from mt.config.languages import corpora, named
from mt.config.schema import Config, Langs, TextFiles
from mt.config.stage import Trail

_FEW_UPDATES = 100
_HIGH_RATE = 0.1


def doubts(config: Config) -> Iterator[tuple[Trail, str]]:
    """Each doubtful setting of a complete config (absolute paths), and why."""
    return chain(_data(config), directions.doubts(config), _rate(config), _training(config))


def _data(config: Config) -> Iterator[tuple[Trail, str]]:
    reverse = config.langs and Langs(src=config.langs.tgt, tgt=config.langs.src)
    trained_on, chosen_by = set[Path](), set[Path]()
    for trail, corpus in corpora(config.data):
        langs = None if corpus.langs else named(corpus)
        if langs and langs == reverse and langs != config.langs:
            yield trail, f"goes from {langs.src} to {langs.tgt}, but the config from {langs.tgt} to {langs.src}; swap src and tgt?"
        if isinstance(corpus, TextFiles) and corpus.src == corpus.tgt:
            yield trail, "src and tgt are the same file: nothing but copying can be learnt from it"
        for file in corpus.paths():
            if trail[1] == "train":
                trained_on.add(file)
            elif file in trained_on:
                yield trail, f"{file.name} is trained on as well, so its scores say nothing about new text"
                break
            elif trail[1] == "dev":
                chosen_by.add(file)
            elif file in chosen_by:
                yield trail, f"{file.name} is the dev set as well, by which the best checkpoint is chosen, so its scores flatter"
                break


def _rate(config: Config) -> Iterator[tuple[Trail, str]]:
    if (lr := config.train.optimizer.lr) > _HIGH_RATE:
        what = f"{lr:g} is far above what AdamW takes, 1e-4 to 5e-3: the loss will hardly come down, or go up again"
        yield ("train", "optimizer", "lr"), what


def _training(config: Config) -> Iterator[tuple[Trail, str]]:
    train, longest = config.train, config.data.max_pieces
    if train.max_updates is not None:
        if train.max_updates < _FEW_UPDATES:
            yield ("train", "max_updates"), f"{train.max_updates} updates show that training runs, but teach a model next to nothing"
        warmup = train.schedule.warmup
        if warmup is not None and warmup > train.max_updates:
            what = f"longer than the run of {train.max_updates} updates: the learning rate never reaches its peak"
            yield ("train", "schedule", "warmup"), what
        if train.validation.every is not None and train.validation.every > train.max_updates:
            yield ("train", "validation", "every"), f"longer than the run of {train.max_updates} updates: the only validation is at the end"
        if train.save_every is not None and train.save_every > train.max_updates:
            yield ("train", "save_every"), f"longer than the run of {train.max_updates} updates: nothing is saved before the end"
    if train.average.best and train.save_every and train.validation.every and train.save_every % train.validation.every:
        what = "no multiple of train.validation.every: checkpoints that are not validated have no score, and no part in average.best"
        yield ("train", "save_every"), what
    if train.batch_tokens != "auto" and train.batch_tokens < longest + 1:
        what = f"less than data.max_pieces {longest} and an end mark: a longer sentence is a batch by itself"
        yield ("train", "batch_tokens"), what
    if train.freeze and train.init_from is None:
        yield ("train", "freeze"), "without train.init_from they stay as random as they begin"
    if config.model.attention_dropout > 0 and train.device in ("auto", "cpu"):
        yield ("model", "attention_dropout"), "above 0 it disables the fused attention kernels on CPU, which slows training down"
