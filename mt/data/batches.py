"""Batches: ids of some pairs, padded: source = [tag] pieces EOS, inputs = BOS pieces, gold = pieces EOS.

Legend: B sentences, S source, T target positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Self

import numpy as np
import torch
from torch import Tensor

from mt.data.augment import Augmenter
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
    """Real source positions, EOS and tag counted."""
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
    sources = [[*([] if example.tag is None else [example.tag]), *example.src_ids, src.eos] for example in examples]
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
        self,
        store: Store,
        tokenizers: Tokenizers,
        *,
        budget: int,
        seed: int,
        augment: Augmenter | None = None,
        tags: Sequence[int] | None = None,
    ) -> None:
        """`tags` are the ids before the sources of each corpus of the store, if the model is to be told the target language."""
        self.store, self.tokenizers, self.augment, self.tags = store, tokenizers, augment, tags
        self.budget, self.seed = budget, seed

    def plan(self, epoch: int) -> list[Indices]:
        """The pairs of each batch of an epoch."""
        return epoch_batches(
            self.store.lengths_N2, self.store.spans, budget=self.budget, seed=self.seed, epoch=epoch, tagged=self.tags is not None
        )

    def groups(self, cursor: Cursor, *, size: int) -> Iterator[tuple[list[Batch], Cursor]]:
        """Endless: the micro-batches of an update, and the cursor after them. The last group of an epoch may be smaller, none spans two."""
        for epoch in count(cursor.epoch):
            plan = self.plan(epoch)
            for first in range(cursor.batch if epoch == cursor.epoch else 0, len(plan), size):
                micro = [self.batch(plan[i], epoch=epoch) for i in range(first, min(first + size, len(plan)))]
                after = first + size
                yield micro, Cursor(epoch, after) if after < len(plan) else Cursor(epoch + 1, 0)

    def batch(self, indices: Indices, *, epoch: int) -> Batch:
        """One batch of an epoch: the pairs with these indices."""
        return collate(self.examples(indices, epoch=epoch), self.tokenizers)

    def examples(self, indices: Indices, *, epoch: int) -> list[Example]:
        """Pairs as the model sees them in an epoch: with the noise of that epoch, and with tags."""
        examples = self.store.take(indices)
        if self.augment:
            examples = self.augment(examples, map(int, indices), epoch=epoch)
        if self.tags is None:
            return examples
        corpora = np.searchsorted([span.start for span in self.store.spans], indices, side="right") - 1
        return [example._replace(tag=self.tags[corpus]) for example, corpus in zip(examples, corpora, strict=True)]
