"""What does not fit into memory is told before it is tried, or with the cure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mt.config.schema import Config
from mt.errors import ConfigError, TooLargeError, TrainError
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.train import memory
from mt.train.loop import validate
from mt.train.memory import enough_memory, memory_of, refuse_too_large, size_of
from mt.train.update import update
from tests.train import tiny

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
    needed = r"^out of memory, 4194304.00 GiB more were needed; lower train.batch_tokens .4096. and raise train.accumulate .1. by the same"
    with pytest.raises(TrainError, match=needed), enough_memory(tiny.cfg()):
        torch.empty(2**50)
    with pytest.raises(TrainError, match=r"^out of memory; lower train.batch_tokens .4096."), enough_memory(tiny.cfg()):
        raise MemoryError


CUDA = (
    "CUDA out of memory. Tried to allocate 2.44 GiB. GPU 0 has a total capacity of 15.77 GiB of which 312.00 MiB is free. "
    "Process 7 has 15.00 GiB memory in use."
)


def test_of_a_batch_that_is_too_large_the_message_tells_its_shape_and_how_far_over_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    state = tiny.state()

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError(CUDA)

    monkeypatch.setattr(state.loss, "forward", full)
    told = r"^out of memory with a batch of 3 × 9 × 9 .rows × source × target., 2.44 GiB more were needed and 312.00 MiB were free; "
    with pytest.raises(TrainError, match=told + r"lower train.batch_tokens .70. and raise train.accumulate .2. .*gradient_checkpointing"):
        update(state, [tiny.batch(8, 1, 3)], cfg=tiny.cfg(batch_tokens=70, accumulate=2), lr=1e-3, start=0.0)
    with pytest.raises(TrainError, match="with a batch of 1 × 9 × 9 .*; that is one pair: set model.gradient_checkpointing"):
        update(state, [tiny.batch(8)], cfg=tiny.cfg(), lr=1e-3, start=0.0)


def test_memory_that_runs_out_while_validating_is_not_taken_for_numbers_out_of_hand(tmp_path: Path) -> None:
    def full(_: object) -> None:
        raise TooLargeError("too little memory for a batch of 7 sentences: give a smaller --batch-tokens or --beam")

    told = "^validation at update 0: too little memory for a batch of 7 sentences; lower decode.batch_tokens or train.validation.beam$"
    with pytest.raises(TrainError, match=told):
        validate(tiny.state(), full, cfg=tiny.cfg(), run=RunDir(tmp_path), epoch=0, began=0.0)  # type: ignore[arg-type]


def test_any_other_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="shape"), enough_memory(tiny.cfg()):
        torch.ones(2).view(3)
