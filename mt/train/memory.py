"""What does not fit into memory: refused before it is tried where that can be told, one line with the cure where it cannot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self

import torch

from mt.config.schema import Config, ModelConfig, TrainConfig
from mt.data.batches import Batch
from mt.errors import ConfigError, TrainError
from mt.model.device import is_out_of_memory

COPIES = 4
"""Of each parameter while training: itself, its gradient and the optimiser's two moments."""
FLOAT = 4

ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+) (\w+)")
FREE = re.compile(r"of which ([\d.]+ \w+) is free")
"""What torch says of a tensor that did not fit."""


def refuse_too_large(config: Config, device: torch.device, *, vocab: tuple[int, int] = (1, 1)) -> None:
    """Raise ConfigError for a model that cannot be trained here, whatever its batches: its parameters alone take more than there is."""
    room = memory_of(device)
    parameters = size_of(config.model, *vocab, joint=config.tokenizer.joint)
    needed = parameters * FLOAT * (COPIES + bool(config.train.ema))
    if room is not None and needed > room:
        size = f"about {parameters} parameters take {needed / 2**30:.0f} GiB to train, and {device} has {room / 2**30:.0f} GiB"
        raise ConfigError(f"model: {size}; lower model.dim, model.ffn, the layers or tokenizer.vocab_size")


def size_of(model: ModelConfig, src_vocab: int, tgt_vocab: int, *, joint: bool) -> int:
    """Parameters in the matrices of a model, which has few beside; to build it on torch's meta device would take a second."""
    attention, feed_forward = 4 * model.dim**2, (3 if model.activation == "swiglu" else 2) * model.dim * model.ffn
    layers = model.encoder_layers * (attention + feed_forward) + model.decoder_layers * (2 * attention + feed_forward)
    embeddings = src_vocab if joint and model.tied_embeddings else src_vocab + tgt_vocab
    return layers + model.dim * (embeddings + (0 if model.tied_embeddings else tgt_vocab))


def memory_of(device: torch.device) -> int | None:
    """Bytes that a device has; None where that cannot be told."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if device.type == "cpu" else None
    except (ValueError, OSError):
        return None


def room_of(device: torch.device) -> int | None:
    """Bytes of a GPU that nobody has yet; None for other devices."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


class Shape(NamedTuple):
    """Of a batch, padding included."""

    rows: int
    src: int
    tgt: int

    @classmethod
    def of(cls, batch: Batch) -> Self:
        """That of its tensors."""
        return cls(batch.src_BS.size(0), batch.src_BS.size(1), batch.gold_BT.size(1))

    def __str__(self) -> str:
        return f"{self.rows} × {self.src} × {self.tgt}"


@contextmanager
def enough_memory(cfg: TrainConfig, shape: Shape | None = None) -> Iterator[None]:
    """Within, a batch (of this shape, if it is known) that does not fit into memory is a TrainError with the cure."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        what = f"out of memory{f' with a batch of {shape} (rows × source × target)' if shape else ''}{lacking(str(error))}"
        raise TrainError(f"{what}; {cure(cfg, shape)}") from None


def lacking(words: str) -> str:
    """How far over it was, as far as torch's words tell."""
    asked, free = ASKED.search(words), FREE.search(words)
    if not asked:
        return ""
    amount = f"{int(asked[1]) / 2**30:.2f} GiB" if asked[2] == "bytes" else f"{asked[1]} {asked[2]}"
    return f", {amount} more were needed{f' and {free[1]} were free' if free else ''}"


def cure(cfg: TrainConfig, shape: Shape | None) -> str:
    """What to lower: first what keeps the updates the same."""
    rest = "set model.gradient_checkpointing: true, lower data.max_pieces, or take a smaller model"
    if shape and shape.rows == 1:
        return f"that is one pair: {rest}"
    smaller = f"lower train.batch_tokens ({cfg.batch_tokens}) and raise train.accumulate ({cfg.accumulate}) by the same factor"
    return f"{smaller}, which leaves the updates as large; or {rest}"
