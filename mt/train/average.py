"""Averages of weights: a moving one while training, or one of several checkpoints. Legend: none, tensors of any shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """Exponential moving average of the weights, average ← d · average + (1 - d) · weights, with d growing from 0.1 to `decay`.

    d = min(decay, (1 + n) / (10 + n)) after n updates, so that the random start is soon forgotten.
    """

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        self.decay = decay
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, *, updates: int, unless: Tensor) -> None:
        """Take in the weights after so many updates, unless this (a bool, where the weights are) is true."""
        d = min(self.decay, (1 + updates) / (10 + updates))
        share = torch.where(unless, 0.0, 1 - d)
        weights = [p.detach() for p in model.parameters()]
        torch._foreach_lerp_(list(self.average.values()), weights, [share.to(w.dtype) for w in weights])

    @contextmanager
    def in_place_of(self, model: nn.Module) -> Iterator[None]:
        """Within, the model has the average as its weights."""
        self._swap(model)
        try:
            yield
        finally:
            self._swap(model)

    def _swap(self, model: nn.Module) -> None:
        for name, p in model.named_parameters():
            p.data, self.average[name] = self.average[name], p.data


def mean(weights: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, summed in double precision."""
    return {name: torch.stack([one[name].double() for one in weights]).mean(dim=0).to(first.dtype) for name, first in weights[0].items()}
