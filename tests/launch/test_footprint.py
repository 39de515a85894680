"""What a run takes of memory and disk, by arithmetic, against what it does take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from mt.config.schema import Config
from mt.launch.footprint import STATE, activations, checkpoint_size, checkpoints_size, parameters
from mt.launch.inherit import freeze
from mt.model.loss import build_loss
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.train.memory import Shape
from mt.train.precision import autocast
from tests.runs import Done

SIZES = {"dim": 64, "ffn": 256, "heads": 4, "encoder_layers": 2, "decoder_layers": 3}


def config(train: dict[str, Any] | None = None, **model: Any) -> Config:
    values = {"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}, "model": {**SIZES, **model}, "train": train or {}}
    return Config.model_validate(values)


def built(settings: Config, *, joint: bool = True, vocab: int = 300) -> Transformer:
    return Transformer.build(settings.model, src_vocab=vocab, tgt_vocab=vocab if joint else vocab + 50, joint=joint)


# ── parameters ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("options", [{}, {"tied_embeddings": False}, {"norm": "post"}, {"norm_kind": "rms"}], ids=str)
def test_the_parts_are_the_whole(options: dict[str, Any], joint: bool) -> None:
    model = built(config(**options), joint=joint)
    found = parameters(model)
    assert found.total == found.trained == sum(p.numel() for p in model.parameters())
    assert (found.output == 0) == options.get("tied_embeddings", True)
    assert found.encoder < found.decoder


def test_what_is_frozen_is_not_trained() -> None:
    model = built(config())
    freeze(model, ["encoder"])
    found = parameters(model)
    assert found.trained == found.total - found.encoder


# ── memory ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def kept(settings: Config, shape: Shape, *, precision: Any) -> int:
    """Bytes that the forward pass keeps for the backward pass, parameters apart."""
    model = built(settings)
    loss, own = build_loss(model, settings.train, pad=0).train(), {p.untyped_storage().data_ptr() for p in model.parameters()}
    found: dict[int, tuple[int, torch.Tensor]] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    src, tgt = torch.full((shape.rows, shape.src), 5), torch.full((shape.rows, shape.tgt), 5)
    with saved_tensors_hooks(pack, lambda tensor: tensor), autocast(precision, torch.device("cpu")):
        loss(src, tgt, tgt)
    return sum(size for size, _ in found.values())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("shape", [Shape(16, 30, 40), Shape(32, 12, 16), Shape(2, 150, 100)], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.0},
        {"dropout": 0.1},
        {"norm": "post"},
        {"activation": "gelu"},
        {"activation": "swiglu"},
        {"positions": "rope"},
        {"norm_kind": "rms"},
        {"attention_dropout": 0.1},
        {"activation_dropout": 0.1},
        {"gradient_checkpointing": True},
    ],
    ids=str,
)
def test_activations_are_those_that_are_kept(options: dict[str, Any], shape: Shape, precision: Any) -> None:
    settings = config(**options)
    expected, found = activations(settings, shape, precision=precision, on_cpu=True), kept(settings, shape, precision=precision)
    if settings.model.gradient_checkpointing:  # of one layer they are made only in the backward pass
        assert found < expected < activations(config(), shape, precision=precision, on_cpu=True)
    else:
        assert 0.7 * found < expected < 1.5 * found


def test_r_drop_takes_twice_as_much() -> None:
    once, twice = (activations(config(train), Shape(8, 30, 30), precision="fp32", on_cpu=True) for train in ({}, {"r_drop": 5}))
    assert twice == 2 * once


MEASURE = """
import torch
from mt.config.schema import Config
from mt.model.loss import build_loss
from mt.model.transformer import Transformer
from mt.launch.footprint import memory, parameters
from mt.train.memory import Shape
from mt.train.optim import build_optimizer
from mt.launch.rehearsal import peak_memory
settings = Config.model_validate({"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}, "model": MODEL})
def update(model, rows):
    loss, optimizer = build_loss(model, settings.train, pad=0).train(), build_optimizer(model, settings.train.optimizer)
    for _ in range(2):
        src, tgt = torch.full((rows, 60), 5), torch.full((rows, 60), 5)
        loss(src, tgt, tgt)[0].backward()
        optimizer.step()
        optimizer.zero_grad()
update(Transformer(src_vocab=9, tgt_vocab=9, dim=8, ffn=8, heads=2, encoder_layers=1, decoder_layers=1), 1)
before = peak_memory(torch.device("cpu"))
model = Transformer.build(settings.model, src_vocab=8000, tgt_vocab=8000, joint=True)
update(model, 64)
foretold = memory(settings, parameters(model), Shape(64, 60, 60), vocab=8000, precision="fp32", on_cpu=True)
print(peak_memory(torch.device("cpu")) - before, foretold.total)
"""


def test_the_memory_of_training_is_foretold_within_a_third() -> None:
    """In a process of its own, whose memory nothing else has filled."""
    model = {**SIZES, "dim": 256, "ffn": 1024}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    code = MEASURE.replace("MODEL", repr(model))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    measured, foretold = map(int, done.stdout.split())
    assert 0.67 * measured < foretold < 1.33 * measured


# ── disk ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_checkpoint_is_as_large_as_foretold(finished: tuple[Path, Done]) -> None:
    step = RunDir(finished[0] / "run").step(4)
    found = sum(file.stat().st_size for file in step.iterdir())
    weights = (step / "model.safetensors").stat().st_size // 4
    model = Transformer(src_vocab=120, tgt_vocab=120, dim=16, ffn=32, heads=2, encoder_layers=1, decoder_layers=1)
    assert parameters(model).total <= weights
    assert found - STATE < checkpoint_size(parameters(model), ema=False) <= found + STATE


def test_the_average_and_the_moving_one_take_room_too() -> None:
    found = parameters(built(config()))
    plain, moving, average = (checkpoints_size(config(train), found) for train in ({}, {"ema": 0.9}, {"average": {"last": 3}}))
    assert moving - plain == 7 * 4 * found.total
    assert average - plain == 4 * found.total
