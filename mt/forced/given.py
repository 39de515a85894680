"""Given outputs in batches, every position at once: what `score` and `attended` have in common.

Legend: B sentences, S source, T target positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from mt.data.batches import padded
from mt.data.plan import longest_first
from mt.errors import TooLargeError
from mt.model.device import is_out_of_memory
from mt.tokenizer.spm import Tokenizers


class Given(NamedTuple):
    """A source (tag if there is one, pieces) and an output for it, both without EOS."""

    source: list[int]
    target: list[int]


class Inputs(NamedTuple):
    """What a model is given of a batch."""

    src_BS: Tensor
    allowed_BS: Tensor
    inputs_BT: Tensor

    @classmethod
    def of(cls, pairs: Sequence[Given], tokenizers: Tokenizers, device: torch.device) -> Inputs:
        """Sources with their end, outputs after BOS, padded."""
        src, tgt = tokenizers
        src_BS = padded([[*pair.source, src.eos] for pair in pairs], pad=src.pad).to(device)
        inputs_BT = padded([[tgt.bos, *pair.target] for pair in pairs], pad=tgt.pad).to(device)
        return cls(src_BS, src_BS != src.pad, inputs_BT)


def batches(pairs: Sequence[Given], *, budget: int) -> Iterator[list[int]]:
    """Places, from long to short, in batches of rows × longest side ≤ budget; a longer one is a batch by itself."""
    return longest_first([max(map(len, pair)) + 1 for pair in pairs], budget=budget)


@contextmanager
def enough_memory(rows: int) -> Iterator[None]:
    """Turn what torch says of too little memory into a TooLargeError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise TooLargeError(f"too little memory for a batch of {rows} sentences: give a smaller --batch-tokens or --beam") from None
