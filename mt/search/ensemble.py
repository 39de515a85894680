"""Several models as one step: at each position a mean of their distributions. Legend: R rows, V vocabulary, M models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from mt.errors import DecodeError
from mt.search.step import Step


@dataclass(frozen=True)
class Mix:
    """How distributions become one. Raises DecodeError for weights that are none."""

    how: Literal["mean", "log"] = "mean"
    """`mean`: of the probabilities, what one finds likely stays possible. `log`: of their logarithms, renormalised; each has a veto."""
    weights: tuple[float, ...] = ()
    """Of each model, in proportion; none: all alike."""

    def __post_init__(self) -> None:
        if any(not 0 < weight < math.inf for weight in self.weights):
            raise DecodeError(f"weights {', '.join(f'{weight:g}' for weight in self.weights)}: give a number above 0 for each model")

    def __call__(self, log_probs: Sequence[Tensor]) -> Tensor:
        """One distribution (log-probabilities in the last dimension) out of those of M models."""
        if len(log_probs) == 1:
            return log_probs[0]
        weights = self.weights or (1.0,) * len(log_probs)
        shares = [weight / sum(weights) for weight in weights]
        if self.how == "mean":
            return torch.stack([one + math.log(share) for one, share in zip(log_probs, shares, strict=True)]).logsumexp(dim=0)
        total = torch.stack([one * share for one, share in zip(log_probs, shares, strict=True)]).sum(dim=0)
        return total - total.logsumexp(dim=-1, keepdim=True)

    def refuse_other_than(self, models: int) -> None:
        """Raise DecodeError if there is not a weight for each model."""
        if self.weights and len(self.weights) != models:
            raise DecodeError(f"{len(self.weights)} weights for {models} models: give one for each, in the same order")


class Ensemble(Step[tuple[Any, ...]]):
    """A step over steps with one vocabulary, whatever else they are; its state is the tuple of theirs."""

    def __init__(self, steps: Sequence[Step[Any]], mix: Mix) -> None:
        self.steps, self.mix = tuple(steps), mix

    def __call__(self, last_R: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """The mean of what the steps within give."""
        found = [step(last_R, own) for step, own in zip(self.steps, state, strict=True)]
        return self.mix([logp_RV for logp_RV, _ in found]), tuple(own for _, own in found)

    def reorder(self, state: tuple[Any, ...], rows_R: Tensor) -> tuple[Any, ...]:
        """Each as the step within."""
        return tuple(step.reorder(own, rows_R) for step, own in zip(self.steps, state, strict=True))
