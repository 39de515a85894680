"""Batches: ids of some pairs, padded: source = pieces EOS, inputs = BOS pieces, gold = pieces EOS.

Legend: B sentences, S source, T target positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Self

import torch
from torch import Tensor

from mt.config.schema import Sample
from mt.data.plan import Cursor, Indices, epoch_batches
from mt.data.store import Example, Store
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
    """Real source positions, EOS counted."""
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
    """One batch of these examples."""
    src, tgt = tokenizers
    sources = [[*example.src_ids, src.eos] for example in examples]
    golds = [[*example.tgt_ids, tgt.eos] for example in examples]
    return Batch(
        src_BS=padded(sources, pad=src.pad),
        inputs_BT=padded([[tgt.bos, *example.tgt_ids] for example in examples], pad=tgt.pad),
        gold_BT=padded(golds, pad=tgt.pad),
        tokens=sum(map(len, golds)),
        src_tokens=sum(map(len, sources)),
        origins=tuple(example.pair.origin for example in examples),
    )


class TrainingData:
    """The batches of a run, epoch after epoch, from any position on."""

    def __init__(
        self, store: Store, tokenizers: Tokenizers, *, budget: int, seed: int, sample: Sample | None = None, max_pieces: int | None = None
    ) -> None:
        self.store, self.tokenizers, self.sample, self.max_pieces = store, tokenizers, sample, max_pieces
        self.budget, self.seed = budget, seed

    def plan(self, epoch: int) -> list[Indices]:
        """The pairs of each batch of an epoch."""
        return epoch_batches(self.store.lengths_N2, self.store.spans, budget=self.budget, seed=self.seed, epoch=epoch)

    def groups(self, cursor: Cursor, *, size: int) -> Iterator[tuple[list[Batch], Cursor]]:
        """Endless: the micro-batches of an update, and the cursor after them. The last group of an epoch may be smaller, none spans two."""
        for epoch in count(cursor.epoch):
            plan = self.plan(epoch)
            for first in range(cursor.batch if epoch == cursor.epoch else 0, len(plan), size):
                micro = [self.batch(plan[i], epoch=epoch, index=i) for i in range(first, min(first + size, len(plan)))]
                after = first + size
                yield micro, Cursor(epoch, after) if after < len(plan) else Cursor(epoch + 1, 0)

    def batch(self, indices: Indices, *, epoch: int, index: int) -> Batch:
        """The index-th batch of an epoch, its sub-words sampled if that was asked for."""
        examples = self.store.take(indices)
        if self.sample:
            examples = self.resampled(examples, self.sample, seed=hash((self.seed, epoch, index)))
        return collate(examples, self.tokenizers)

    def resampled(self, examples: list[Example], sample: Sample, *, seed: int) -> list[Example]:
        """The same text in other pieces; where that would be longer than max_pieces, the unsampled ones stay."""
        src = (
            self.tokenizers.src.sample_batch([e.pair.src for e in examples], sample, seed=seed)
            if "src" in sample.sides
            else [e.src_ids for e in examples]
        )
        tgt = (
            self.tokenizers.tgt.sample_batch([e.pair.tgt for e in examples], sample, seed=seed + 1)
            if "tgt" in sample.sides
            else [e.tgt_ids for e in examples]
        )
        most = self.max_pieces or max(map(len, src + tgt), default=0)
        return [
            Example(e.pair, s if len(s) <= most else e.src_ids, t if len(t) <= most else e.tgt_ids)
            for e, s, t in zip(examples, src, tgt, strict=True)
        ]
