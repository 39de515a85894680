"""What does not fit into memory is told before it is tried, or with the cure."""

from __future__ import annotations

import pytest
import torch

from mt.config.schema import Config
from mt.errors import ConfigError, TrainError
from mt.model.transformer import Transformer
from mt.train import memory
from mt.train.memory import enough_memory, memory_of, refuse_too_large, size_of

CPU = torch.device("cpu")


def config(**model: object) -> Config:
    return Config.model_validate({"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}, "model": model})


def test_the_bound_is_the_memory_its_parameters_need(monkeypatch: pytest.MonkeyPatch) -> None:
    small = config(dim=8, ffn=16, heads=2)
    needed = 16 * size_of(small.model, 50, 50, joint=True)
    monkeypatch.setattr(memory, "memory_of", lambda _: needed)
    refuse_too_large(small, CPU, vocab=(50, 50))
    monkeypatch.setattr(memory, "memory_of", lambda _: needed - 1)
    with pytest.raises(ConfigError, match="model: .* parameters take 0 GiB to train, and cpu has 0 GiB; lower model.dim"):
        refuse_too_large(small, CPU, vocab=(50, 50))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("tied_embeddings", [True, False])
@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_the_size_of_a_model_is_that_of_its_matrices(activation: str, tied_embeddings: bool, joint: bool) -> None:
    cfg = config(dim=8, ffn=12, heads=2, encoder_layers=1, decoder_layers=3, activation=activation, tied_embeddings=tied_embeddings).model
    model = Transformer.build(cfg, src_vocab=30, tgt_vocab=30 if joint else 40, joint=joint)
    matrices = sum(p.numel() for p in model.parameters() if p.dim() > 1)
    assert size_of(cfg, 30, 30 if joint else 40, joint=joint) == matrices


def test_a_model_beyond_this_machine_is_refused_without_being_made() -> None:
    assert (memory_of(CPU) or 0) > 2**28
    with pytest.raises(ConfigError, match="lower model.dim"):
        refuse_too_large(config(dim=65536, ffn=2**20, encoder_layers=50), CPU)


def test_a_batch_beyond_this_machine_is_one_line() -> None:
    with pytest.raises(TrainError, match=r"out of memory; lower train.batch_tokens .4096."), enough_memory(4096):
        torch.empty(2**50)
    with pytest.raises(TrainError, match="out of memory"), enough_memory(4096):
        raise MemoryError


def test_any_other_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="shape"), enough_memory(4096):
        torch.ones(2).view(3)
