"""The ids that may come next after a prefix: each is the beginning of an output of its own.

Legend: R rows, K ids of a row, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from mt.constraints.orders import Orders
from mt.search.step import State, Step, best_tokens, refuse_nan


@torch.no_grad()
def next_ids(step: Step[State], state: State, prefixes: Sequence[Sequence[int]], *, bos: int, k: int) -> list[list[int]]:
    """For each sentence the k most probable ids after its prefix, EOS among them, most probable first; fewer where no others are possible.

    The step is one that allows the prefixes. Raises DecodeError when log-probabilities are NaN.
    """
    found: list[list[int]] = [[] for _ in prefixes]
    sentences = list(range(len(prefixes)))
    last_R = torch.full((len(prefixes),), bos)
    position = 0
    while sentences:
        logp_RV, state = step(last_R, state)
        value_RK, id_RK = best_tokens(logp_RV, k)
        refuse_nan(value_RK[:, 0], position=position + 1, sentences=sentences)
        for b, values, ids in zip(sentences, value_RK.tolist(), id_RK.tolist(), strict=True):
            if len(prefixes[b]) == position:
                found[b] = [i for i, value in zip(ids, values, strict=True) if value > -torch.inf]
        going = [row for row, b in enumerate(sentences) if len(prefixes[b]) > position]
        sentences = [sentences[row] for row in going]
        if sentences:
            state = step.reorder(state, torch.tensor(going, device=logp_RV.device))
            last_R = torch.tensor([prefixes[b][position] for b in sentences], device=logp_RV.device)
        position += 1
    return found


def branched(orders: Orders, following: Sequence[Sequence[Sequence[int]]]) -> Orders:
    """The orders of as many sentences as there are continuations of prefixes: for each sentence some, each of one id, or of none."""
    prefixes = orders.prefixes or [()] * len(following)
    required = [own for own, many in zip(orders.required, following, strict=True) for _ in many] if orders.required else ()
    begun = [[*before, *ids] for before, many in zip(prefixes, following, strict=True) for ids in many]
    return replace(orders, prefixes=begun, required=required)
