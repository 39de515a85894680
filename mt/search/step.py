"""What every search shares: the step it is a function of, the hypothesis it gives, and the order of equals.

Legend: R rows (live hypotheses), V vocabulary, B sentences, K candidates of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from mt.errors import DecodeError
from mt.search.banks import Goals

State = TypeVar("State")
BLOCK = 64
"""Ids that are looked at together where the best of many are sought."""


class Step(Protocol[State]):
    """Next-token distributions of some rows; models, ensembles, constraints and test doubles are all steps.

    Only the step knows what its state is. A search starts with one row for each sentence, in order; afterwards the rows of one sentence
    stand together, equally many for each sentence of the batch.
    """

    def __call__(self, last_R: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (R, V) of the token after `last_R`, the newest id (int64) of each row, and the state that includes it.

        They are natural logarithms, over the whole vocabulary, in a tensor the caller may change. A search makes its first `last_R` on the
        CPU and everything else where the log-probabilities are: the step moves `last_R` to its own device.
        """
        ...

    def reorder(self, state: State, rows_R: Tensor) -> State:
        """The state of the rows that go on: indices into the present rows, some perhaps repeated, some left out."""
        ...

    def goals(self, state: State) -> Goals | None:  # noqa: ARG002
        """What leads the rows on to what they have to reach, given the state after a call; None: there is nothing to reach."""
        return None


class Suppress(Step[State]):
    """A step that never gives some ids, such as padding: their log-probability is −inf, the others stay as they were (not renormalised)."""

    def __init__(self, step: Step[State], ids: Sequence[int]) -> None:
        self.step = step
        self.ids = tuple(ids)

    def __call__(self, last_R: Tensor, state: State) -> tuple[Tensor, State]:
        """As the step within, less the ids."""
        logp_RV, state = self.step(last_R, state)
        for i in self.ids:
            logp_RV[:, i] = -torch.inf
        return logp_RV, state

    def reorder(self, state: State, rows_R: Tensor) -> State:
        """As the step within."""
        return self.step.reorder(state, rows_R)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One finished output of a search."""

    ids: list[int]
    """What was generated, without EOS."""
    log_prob: float
    """Natural log-probability under the step, summed over the ids and EOS."""
    score: float
    """log_prob / L^α + coverage, L counting EOS; higher is better."""
    truncated: bool
    """The length limit ended it: EOS was forced where another token was more probable."""
    tokens: list[float] = field(default_factory=list)
    """Log-probability of each id, and of EOS; they add up to `log_prob`."""
    parts: list[int] = field(default_factory=list)
    """Where it is the outputs of several parts of a line, how many ids each has; each has an EOS in `tokens`."""
    coverage: float = 0.0
    """What the coverage penalty adds to the score, if there is one."""

    @classmethod
    def ended(cls, ids: list[int], *, log_prob: float, length_penalty: float, truncated: bool, totals: Sequence[float] = ()) -> Hypothesis:
        """With its score at α = `length_penalty`; a larger α favours longer outputs, 0 ranks by log-probability.

        `totals`: the log-probability up to each id.
        """
        tokens = [after - before for before, after in pairwise((0.0, *totals, log_prob))]
        return cls(ids, log_prob, log_prob / (len(ids) + 1) ** length_penalty, truncated, tokens)


def concatenated(parts: Sequence[Hypothesis], *, length_penalty: float) -> Hypothesis:
    """One hypothesis out of those of consecutive parts; its length counts the EOS of each."""
    log_prob = sum(h.log_prob for h in parts)
    length = sum(len(h.ids) + 1 for h in parts)
    coverage = sum(h.coverage for h in parts)
    return Hypothesis(
        [i for h in parts for i in h.ids],
        log_prob,
        log_prob / length**length_penalty + coverage,
        any(h.truncated for h in parts),
        tokens=[one for h in parts for one in h.tokens],
        parts=[len(h.ids) for h in parts],
        coverage=coverage,
    )


def refuse_nan(best: Tensor, *, position: int, sentences: Sequence[int]) -> None:
    """Raise DecodeError if the best log-probability of any row is NaN, as it is when any one of the row is.

    `best` holds (B · rows per sentence) values, sentence by sentence; `sentences` are the B places in the batch to be named.
    """
    if not best.isnan().any():
        return
    broken_B = best.view(len(sentences), -1).isnan().any(dim=1).tolist()
    places = [b for b, broken in zip(sentences, broken_B, strict=True) if broken]
    raise DecodeError(
        f"step {position}: log-probabilities are NaN for {len(places)} of {len(sentences)} sentences of the batch"
        f" (first: number {places[0] + 1}); the weights are broken, or overflow: try another checkpoint, or --precision fp32"
    )


def best_tokens(logp_RV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row (all, if V < k): log-probabilities (R, K) and ids (R, K); higher first, of equals the lower id first.

    torch.topk alone leaves open which of equal values it gives, and in which order: bfloat16 logits tie at the edge in one row of six.
    """
    k = min(k, logp_RV.size(1))
    value_RK, id_RK = largest(logp_RV, min(k + 1, logp_RV.size(1)))
    edge_R = value_RK[:, k - 1]
    torn_R = (value_RK[:, -1] == edge_R) & (edge_R > -torch.inf) if value_RK.size(1) > k else torch.zeros_like(edge_R, dtype=torch.bool)
    id_RK = id_RK[:, :k]
    if torn_R.any():
        id_RK[torn_R] = lowest_of_equals(logp_RV[torn_R], edge_R[torn_R], k)
    id_RK = id_RK.sort(dim=1).values
    value_RK, order_RK = logp_RV.gather(1, id_RK).sort(dim=1, descending=True, stable=True)
    return value_RK, id_RK.gather(1, order_RK)


def largest(logp_RV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """What torch.topk gives, in half the time for a large vocabulary: only blocks with one of the k largest maxima can have any of them."""
    rows, vocabulary = logp_RV.shape
    blocks = vocabulary // BLOCK
    if blocks < 4 * k:
        return logp_RV.topk(k)
    blocks_RXB = logp_RV[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK))
    chosen_RK = blocks_RXB.amax(dim=2).topk(k).indices
    places_RN = (chosen_RK[:, :, None] * BLOCK + torch.arange(BLOCK, device=logp_RV.device)).flatten(1)
    rest_N = torch.arange(blocks * BLOCK, vocabulary, device=logp_RV.device)
    places_RN = torch.cat([places_RN, rest_N.expand(rows, -1)], dim=1)
    value_RK, order_RK = logp_RV.gather(1, places_RN).topk(k)
    return value_RK, places_RN.gather(1, order_RK)


def lowest_of_equals(logp_RV: Tensor, edge_R: Tensor, k: int) -> Tensor:
    """Ids (R, K), unordered, of the k best where `edge_R` is each row's k-th value: all above it, then the lowest ids among its equals."""
    vocabulary = logp_RV.size(1)
    rank_V = torch.arange(vocabulary, 0, -1, device=logp_RV.device, dtype=torch.int32)
    equals_RV = torch.where(logp_RV == edge_R[:, None], rank_V, 0)
    return largest(equals_RV.masked_fill(logp_RV > edge_R[:, None], vocabulary + 1), k)[1]
