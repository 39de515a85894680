"""A run that starts from another one (`train.init_from`): with its tokenizer and its best weights, some of which may stay as they are."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mt.checkpoint import TRAINING_ONLY, check_model, load_weights, read_state, read_weights
from mt.config.directions import tags
from mt.config.load import load
from mt.config.schema import Config, Frozen
from mt.data.meter import Say
from mt.errors import ConfigError
from mt.files import write_atomic
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.tokenizer.of_run import check_fingerprints, load_tokenizers
from mt.tokenizer.spm import Tokenizers


def adopt(config: Config, *, say: Say) -> Config:
    """The config with the tokenizer settings of the run it starts from; only sampling, which is noise in training, is its own.

    Raises ConfigError with a line for each setting of the model that is another there, and RunError if its checkpoint cannot be read.
    """
    if config.train.init_from is None:
        return config
    assert config.run_dir is not None
    parent = RunDir(config.train.init_from)
    if os.path.realpath(parent.path) == os.path.realpath(config.run_dir):
        raise ConfigError(f"train.init_from: {parent.path} is the directory of this very run; give another --run-dir")
    path = parent.find("best")
    theirs = load(parent.config).config
    ours, before = (one.model.model_dump(mode="json", exclude=TRAINING_ONLY) for one in (config, theirs))
    if changed := [key for key in ours if ours[key] != before[key]]:
        cures = (f"model.{key} is {ours[key]}, but {before[key]} in {parent.path}; set model.{key}={before[key]}" for key in changed)
        raise ConfigError(*(f"train.init_from: {cure}" for cure in cures))
    check_fingerprints(read_state(path), load_tokenizers(parent, joint=theirs.tokenizer.joint), source=path)
    read_weights(path)  # before hours of preparation, after which they are read again
    tokenizer = theirs.tokenizer.model_copy(update={"sample": config.tokenizer.sample})
    if clashes := [clash.what for clash in tokenizer.contradictions()]:
        raise ConfigError(f"tokenizer.sample: {parent.path} has a tokenizer of kind {tokenizer.kind}: {clashes[0]}")
    given = sorted(config.tokenizer.model_fields_set)
    if others := [key for key in given if getattr(tokenizer, key) != getattr(config.tokenizer, key)]:
        which = ", ".join(f"tokenizer.{key} ({getattr(tokenizer, key)} there)" for key in others)
        say(f"train.init_from: the tokenizer is that of {parent.path}, whatever this config says of {which}")
    return config.model_copy(update={"tokenizer": tokenizer})


def keep_tokenizers(config: Config, run: RunDir) -> Tokenizers:
    """Copy the tokenizers of the run that this one starts from. Raises ConfigError if they know other tags than this run asks for."""
    assert config.train.init_from is not None
    parent, joint = RunDir(config.train.init_from), config.tokenizer.joint
    tokenizers = load_tokenizers(parent, joint=joint)
    known, asked = tokenizers.src.tags, tags(config)
    if not known.keys() >= set(asked) or bool(known) != bool(asked):
        there, here = (", ".join(f"<2{lang}>" for lang in langs) or "none" for langs in (known, asked))
        cure = "set data.tags: true" if known and not asked else "leave the others out, or train a model from the start"
        raise ConfigError(f"train.init_from: the tags of this run are {here}, those of {parent.path} {there}; {cure}")
    if tokenizers.src.mark is None and (synthetic := next((one for one in config.data.train if one.synthetic), None)):
        cure = "leave synthetic out, or train a model from the start"
        raise ConfigError(f"train.init_from: {parent.path} has no <bt> for the sources of {synthetic.called()}; {cure}")
    for theirs, ours in set(zip(parent.tokenizer_files(joint=joint), run.tokenizer_files(joint=joint), strict=True)):
        with write_atomic(ours, "wb") as file:
            file.write(theirs.read_bytes())
    return tokenizers


def load_inherited(model: Transformer, config: Config, tokenizers: Tokenizers, *, say: Say) -> None:
    """Give a new model the best weights of the run it starts from: the moving average, where there is one."""
    assert config.train.init_from is not None
    parent = RunDir(config.train.init_from)
    path = parent.find("best")
    state = read_state(path)
    check_fingerprints(state, tokenizers, source=path)
    check_model(state, config.model, source=path, config=parent.config)
    load_weights(model, read_weights(path), source=path)
    say(f"starting from {path}")


def freeze(model: Transformer, parts: Sequence[Frozen]) -> None:
    """Let these parts of the model stay as they are."""
    modules = {
        "encoder": (model.encoder, model.encoder_norm),
        "decoder": (model.decoder, model.decoder_norm),
        "embeddings": (model.src_embedding, model.tgt_embedding),
    }
    for part in parts:
        for module in modules[part]:
            module.requires_grad_(False)
