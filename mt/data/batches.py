"""Batches: ids of some pairs, padded: source = prefix pieces EOS, inputs = BOS pieces, gold = pieces EOS.

Legend: B sentences, S source, T target positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from mt.data.store import Example
from mt.tokenizer.spm import Tokenizers


@dataclass(frozen=True)
class Batch:
    """What one forward pass sees."""

    src_BS: Tensor
    inputs_BT: Tensor
    gold_BT: Tensor
    tokens: int
    """Real target positions, EOS counted."""
    src_tokens: int
    """Real source positions, EOS and prefix counted."""
    origins: tuple[str, ...]
    """Where each pair comes from."""
    real_N: Tensor | None = None
    """Places of the real target positions among all B·T, which a GPU that had to count them would be waited for."""

    def to(self, device: torch.device) -> Self:
        """The same batch on a device; a GPU fetches it by itself, from memory that stays where it is."""
        if device.type == "cpu":
            return self

        def moved(ids: Tensor) -> Tensor:
            return (ids.pin_memory() if device.type == "cuda" else ids).to(device, non_blocking=True)

        real_N = None if self.real_N is None else moved(self.real_N)
        return replace(self, src_BS=moved(self.src_BS), inputs_BT=moved(self.inputs_BT), gold_BT=moved(self.gold_BT), real_N=real_N)


def padded(rows: Sequence[Sequence[int]], *, pad: int) -> Tensor:
    """(rows, longest), int64, filled up with pad at the end."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows], dtype=torch.int64).view(len(rows), longest)


def collate(examples: Sequence[Example], tokenizers: Tokenizers) -> Batch:
    """One batch of these examples; of none, a single position of padding, which has no loss and no gradient."""
    src, tgt = tokenizers
    if not examples:
        nothing_11 = torch.full((1, 1), tgt.pad)
        return Batch(torch.full((1, 1), src.pad), nothing_11, nothing_11, tokens=0, src_tokens=0, origins=())
    sources = [[*example.prefix, *example.src_ids, src.eos] for example in examples]
    golds = [[*example.tgt_ids, tgt.eos] for example in examples]
    gold_BT = padded(golds, pad=tgt.pad)
    return Batch(
        src_BS=padded(sources, pad=src.pad),
        inputs_BT=padded([[tgt.bos, *example.tgt_ids] for example in examples], pad=tgt.pad),
        gold_BT=gold_BT,
        tokens=sum(map(len, golds)),
        src_tokens=sum(map(len, sources)),
        origins=tuple(example.pair.origin for example in examples),
        real_N=(gold_BT != tgt.pad).flatten().nonzero().squeeze(1),
    )
