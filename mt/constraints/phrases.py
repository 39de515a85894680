"""Constraints on what an output says: how it begins, and what it must not say. See `constrain` for what they have in common.

Legend: R rows, V vocabulary, T positions so far, P positions of the longest prefix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from mt.constraints.constrain import Rows, Watching, free
from mt.search.step import State, Step


class Prefix(Watching[State]):
    """Each sentence's outputs begin with its prefix, which may be empty; the model's own log-probabilities of it count."""

    def __init__(self, step: Step[State], prefixes: Sequence[Sequence[int]]) -> None:
        super().__init__(step)
        most = max(map(len, prefixes), default=0)
        self.forced_BP = torch.tensor([[*ids, *[-1] * (most - len(ids))] for ids in prefixes], dtype=torch.int64)

    def restrain(self, logp_RV: Tensor, rows: Rows[State]) -> None:
        """Rule out all but the prefix's next id."""
        position = rows.ids_RT.size(1)
        if position >= self.forced_BP.size(1):
            return
        self.forced_BP = self.forced_BP.to(logp_RV.device)
        forced_R = self.forced_BP[rows.sentence_R, position]
        others_RV = torch.arange(logp_RV.size(1), device=logp_RV.device) != forced_R[:, None]
        logp_RV.masked_fill_(others_RV & (forced_R >= 0)[:, None], -torch.inf)


class Ban(Watching[State]):
    """Some sequences of ids never occur in an output."""

    def __init__(self, step: Step[State], banned: Sequence[Sequence[int]]) -> None:
        super().__init__(step)
        self.last: dict[tuple[int, ...], set[int]] = defaultdict(set)
        """By the ids before it, what would complete a sequence."""
        for *before, last in banned:
            self.last[tuple(before)].add(last)
        self.lengths = sorted({len(before) for before in self.last})

    def restrain(self, logp_RV: Tensor, rows: Rows[State]) -> None:
        """Rule out what would complete a sequence."""
        free_R = free(logp_RV).tolist()
        ids_RT = rows.ids_RT
        newest = max(0, ids_RT.size(1) - self.lengths[-1])
        for row, ids in enumerate(ids_RT[:, newest:].tolist()):
            if free_R[row] and (found := self.completing(ids)):
                logp_RV[row, found] = -torch.inf

    def completing(self, ids: list[int]) -> list[int]:
        """What must not follow these ids."""
        found: set[int] = set()
        for length in self.lengths:
            if length <= len(ids):
                found |= self.last.get(tuple(ids[len(ids) - length :]), set())
        return sorted(found)
