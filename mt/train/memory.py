"""What does not fit into memory: refused before it is tried where that can be told, one line with the cure where it cannot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mt.config.schema import Config, ModelConfig
from mt.errors import ConfigError, TrainError
from mt.model.device import is_out_of_memory

COPIES = 4
"""Of each parameter while training: itself, its gradient and the optimiser's two moments."""
FLOAT = 4


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


@contextmanager
def enough_memory(batch_tokens: int) -> Iterator[None]:
    """Within, a batch that does not fit into memory is a TrainError with the cure."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        cure = f"lower train.batch_tokens ({batch_tokens}) and raise train.accumulate instead, or take a smaller model"
        raise TrainError(f"out of memory; {cure}") from None
