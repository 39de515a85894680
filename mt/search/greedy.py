"""Searches that keep one row a sentence: greedy search, and the loop that sampling shares with it.

Legend: R rows (one for each sentence still going), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mt.search.step import Hypothesis, State, Step, refuse_nan

Choose = Callable[[Tensor, Tensor, list[int]], Tensor]
"""(log-probabilities (R, V), most probable ids (R,), the sentence of each row) → the id each row takes."""


def greedy_search(
    step: Step[State], state: State, *, bos: int, eos: int, limits: Sequence[int], length_penalty: float = 1.0
) -> list[Hypothesis]:
    """One hypothesis a sentence, taking the most probable token each time (of equals the lower id).

    `limits`: for each sentence, the most tokens it may have, EOS counted; at the limit EOS is forced. `length_penalty` decides the reported
    score only. Raises DecodeError when log-probabilities are NaN.
    """
    return follow(step, state, choose=most_probable, bos=bos, eos=eos, limits=limits, length_penalty=length_penalty)


def most_probable(_logp_RV: Tensor, best_R: Tensor, _sentences: list[int]) -> Tensor:
    """The choice of greedy search."""
    return best_R


@torch.no_grad()
def follow(
    step: Step[State], state: State, *, choose: Choose, bos: int, eos: int, limits: Sequence[int], length_penalty: float
) -> list[Hypothesis]:
    """One hypothesis a sentence, made of what `choose` chooses; finished sentences leave the batch.

    EOS is forced at a sentence's limit, and where the step allows no token at all. A forced EOS the step does not allow makes the
    hypothesis's log-probability −inf: every sentence gets an output.
    """
    assert all(limit >= 1 for limit in limits)
    finished: dict[int, Hypothesis] = {}
    ids: list[list[int]] = [[] for _ in limits]
    totals: list[list[float]] = [[] for _ in limits]
    sentences = list(range(len(limits)))
    last_R = torch.full((len(limits),), bos)
    total_R = torch.zeros(len(limits))  # float32 at least: adding float64 log-probabilities makes it float64
    position = 0
    while sentences:
        position += 1
        logp_RV, state = step(last_R, state)
        top_R, best_R = logp_RV.max(dim=1)
        refuse_nan(top_R, position=position, sentences=sentences)
        at_limit_R = torch.tensor([limits[b] == position for b in sentences], device=logp_RV.device)
        forced_R = at_limit_R | (top_R == -torch.inf)
        last_R = choose(logp_RV, best_R, sentences).masked_fill(forced_R, eos)
        truncated_R = forced_R & (logp_RV[:, eos] < top_R)
        total_R = total_R.to(logp_RV.device) + logp_RV.gather(1, last_R[:, None])[:, 0]

        going: list[int] = []
        rows = zip(sentences, last_R.tolist(), total_R.tolist(), truncated_R.tolist(), strict=True)
        for row, (b, token, log_prob, truncated) in enumerate(rows):
            if token == eos:
                finished[b] = Hypothesis.ended(
                    ids[b], log_prob=log_prob, length_penalty=length_penalty, truncated=truncated, totals=totals[b]
                )
            else:
                ids[b].append(token)
                totals[b].append(log_prob)
                going.append(row)
        if going and len(going) < len(sentences):
            going_R = torch.tensor(going, device=logp_RV.device)
            state = step.reorder(state, going_R)
            last_R, total_R = last_R[going_R], total_R[going_R]
        sentences = [sentences[row] for row in going]
    return [finished[b] for b in range(len(limits))]
