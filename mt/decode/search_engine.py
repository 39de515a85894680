"""What a translator asks of whatever runs a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch

from mt.constraints.orders import NO_ORDERS, Orders
from mt.model.transformer import Transformer
from mt.search.ensemble import Mix
from mt.search.step import Hypothesis
from mt.tokenizer.spm import Tokenizers

if TYPE_CHECKING:
    from mt.decode.engine import Beam, Sampling
    from mt.decode.job import Job


class SearchEngine(Protocol):
    """What runs a model, as a translator sees it: ids in, hypotheses out. Padding, bos, unknown and tags are never generated."""

    tokenizers: Tokenizers
    device: torch.device
    mix: Mix

    @property
    def precision(self) -> str:
        """The numbers it computes in."""
        ...

    @property
    def models(self) -> Sequence[Transformer]:
        """What it searches with. Raises DecodeError where this is nothing that torch computes with."""
        ...

    def refuse(self, job: Job, *, prefixes: bool = False, required: bool = False) -> None:
        """Raise DecodeError, naming the option, for what it cannot do; the flags: whether lines have a prefix, or something to say."""
        ...

    def search(
        self,
        sources: Sequence[Sequence[int]],
        settings: Beam | Sampling,
        *,
        limits: Sequence[int],
        seeds: Sequence[int] = (),
        orders: Orders = NO_ORDERS,
    ) -> list[list[Hypothesis]]:
        """For each source (tag if there is one, pieces, no EOS) its hypotheses, best first; samples in the order they were drawn."""
        ...

    def alternatives(
        self,
        sources: Sequence[Sequence[int]],
        settings: Beam | Sampling,
        most: Sequence[int],
        *,
        limits: Sequence[int],
        seeds: Sequence[int] = (),
        orders: Orders = NO_ORDERS,
    ) -> list[list[Hypothesis]]:
        """For each source so many hypotheses, each beginning with another of the most probable ids after the prefix."""
        ...
