"""Batches: ids of some pairs, padded: source = prefix pieces EOS, inputs = BOS pieces, gold = pieces EOS.

Legend: B sentences, S source, T target positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    def to(self, device: torch.device) -> Self:
        """The same batch on a device."""
        if device.type == "cpu":
            return self
        move = {name: getattr(self, name).to(device, non_blocking=True) for name in ("src_BS", "inputs_BT", "gold_BT")}
        return type(self)(**move, tokens=self.tokens, src_tokens=self.src_tokens, origins=self.origins)


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
    return Batch(
        src_BS=padded(sources, pad=src.pad),
        inputs_BT=padded([[tgt.bos, *example.tgt_ids] for example in examples], pad=tgt.pad),
        gold_BT=padded(golds, pad=tgt.pad),
        tokens=sum(map(len, golds)),
        src_tokens=sum(map(len, sources)),
        origins=tuple(example.pair.origin for example in examples),
    )
