"""Beam search, by a definition that makes its properties true.

Each position, the 2W best continuations of a sentence's live rows are its candidates (W the width). An EOS among the first W of them
finishes a hypothesis; one further down counts for nothing. The first W candidates that are not EOS live on. This is fairseq's rule
(https://arxiv.org/abs/1904.01038): width 1 is then exactly greedy search, and a width no smaller than the number of possible outputs is
exactly brute force. Neither holds when an EOS counts anywhere among the 2W.

A sentence is finished after the position at which W · patience hypotheses are (Kasai et al. 2022, https://arxiv.org/abs/2204.05424), or
when nothing lives; how many hypotheses are asked for has no part in it. At a sentence's limit EOS is the only continuation. Scores are
log-probability / L^α, L counting EOS.

Where rows have something to reach, "the first" are those that `banks` deals first, of candidates to which all that leads on belongs;
else they are those with the best totals.

Equal candidates: the continuation of the better row comes first, then the more probable token, then the lower id. Equal scores: the
hypothesis found first.

Legend: B sentences still going, V vocabulary, W width, K live rows of a sentence (1 at the first position, then up to W), R = B·K rows,
C candidates of a row, N = K·C candidates of a sentence, T positions so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mt.errors import DecodeError
from mt.search.banks import Dealing, dealt, with_goals
from mt.search.step import Hypothesis, State, Step, best_tokens, refuse_nan


@torch.no_grad()
def beam_search(
    step: Step[State],
    state: State,
    *,
    bos: int,
    eos: int,
    limits: Sequence[int],
    width: int,
    length_penalty: float = 1.0,
    patience: float = 1.0,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """For each sentence up to `n_best` hypotheses, distinct as id sequences, best first; fewer (even none) where fewer exist.

    `limits`: for each sentence, the most tokens it may have, EOS counted. The module says what is searched and in which order. Raises
    DecodeError for settings that cannot be met, and when log-probabilities are NaN.
    """
    enough = hypotheses_wanted(width, patience=patience, n_best=n_best, length_penalty=length_penalty)
    assert all(limit >= 1 for limit in limits)
    found: list[list[Hypothesis]] = [[] for _ in limits]
    sentences = list(range(len(limits)))
    last_R = torch.full((len(limits),), bos)
    total_BK = torch.zeros(len(limits), 1)  # float32 at least: adding float64 log-probabilities makes it float64
    prefix_RT = torch.empty(len(limits), 0, dtype=torch.int64)
    totals_RT = torch.empty(len(limits), 0)
    position = 0
    while sentences:
        position += 1
        logp_RV, state = step(last_R, state)
        at_limit_B = torch.tensor([limits[b] == position for b in sentences], device=logp_RV.device)
        goals = step.goals(state)
        # One row has one EOS, so it gives at most W candidates that live on and that EOS: W + 1 from each row decide as all V would.
        value_RC, token_RC = best_tokens(logp_RV, width + 1 + (goals.most if goals else 0))
        refuse_nan(value_RC[:, 0], position=position, sentences=sentences)
        dealing = None
        if goals:
            value_RC, token_RC, dealing = with_goals(value_RC, token_RC, logp_RV, goals)
        value_RC, token_RC, truncated_R = end_at_limit(value_RC, token_RC, eos_R=logp_RV[:, eos], at_limit_B=at_limit_B, eos=eos)
        candidates = ranked(total_BK.to(logp_RV.device), value_RC, token_RC, dealing)
        prefix_RT, totals_RT = prefix_RT.to(logp_RV.device), totals_RT.to(logp_RV.device)

        for place, ids, totals, log_prob, truncated in finished(candidates, prefix_RT, totals_RT, truncated_R, eos=eos, width=width):
            hypothesis = Hypothesis.ended(ids, log_prob=log_prob, length_penalty=length_penalty, truncated=truncated, totals=totals)
            found[sentences[place]].append(hypothesis)

        live = surviving(candidates, eos=eos, width=width)
        alive_B = (live.total[:, 0] > -torch.inf).tolist()
        going = [place for place, b in enumerate(sentences) if alive_B[place] and len(found[b]) < enough]
        if going and len(going) < len(sentences):
            going_B = torch.tensor(going, device=logp_RV.device)
            live = Candidates(*(x[going_B] for x in live))
        sentences = [sentences[place] for place in going]
        if sentences:
            total_BK, last_R, row_R = live.total, live.token.flatten(), live.row.flatten()
            state = step.reorder(state, row_R)
            prefix_RT = torch.cat([prefix_RT[row_R], last_R[:, None]], dim=1)
            totals_RT = torch.cat([totals_RT[row_R], total_BK.flatten()[:, None]], dim=1)
    return [sorted(hypotheses, key=lambda h: -h.score)[:n_best] for hypotheses in found]


class Candidates(NamedTuple):
    """Continuations of the sentences' live rows, best first, or as they are dealt: three tensors (B, N)."""

    total: Tensor
    """Log-probability of prefix and token together; −inf: not a candidate."""
    token: Tensor
    """The id that continues."""
    row: Tensor
    """The row, of all R, that is continued."""


def end_at_limit(value_RC: Tensor, token_RC: Tensor, *, eos_R: Tensor, at_limit_B: Tensor, eos: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best tokens of each row with EOS in place of all others where the sentence is at its limit, and whether that cut the row short.

    `eos_R` is each row's log-probability of EOS, which may not be among its best. Returns (R, C), (R, C) and bool (R,).
    """
    at_limit_R = at_limit_B.repeat_interleave(value_RC.size(0) // at_limit_B.size(0))
    truncated_R = at_limit_R & (eos_R < value_RC[:, 0])
    forced_RC = torch.full_like(value_RC, -torch.inf)
    forced_RC[:, 0] = eos_R
    value_RC = torch.where(at_limit_R[:, None], forced_RC, value_RC)
    return value_RC, token_RC.masked_fill(at_limit_R[:, None], eos), truncated_R


def ranked(total_BK: Tensor, value_RC: Tensor, token_RC: Tensor, dealing: Dealing | None) -> Candidates:
    """All continuations of each sentence, best first; equal totals by row, then as the row ranks its tokens (sorts are stable)."""
    sentences, rows = total_BK.shape
    total_BN = (total_BK[:, :, None] + value_RC.view(sentences, rows, -1)).flatten(1)
    order_BN = dealt(total_BN, dealing) if dealing else total_BN.argsort(dim=1, descending=True, stable=True)
    total_BN = total_BN.gather(1, order_BN)
    first_row_B1 = torch.arange(0, sentences * rows, rows, device=total_BN.device)[:, None]
    token_BN = token_RC.reshape(sentences, -1).gather(1, order_BN)
    return Candidates(total_BN, token_BN, first_row_B1 + order_BN // value_RC.size(1))


def finished(
    candidates: Candidates, prefix_RT: Tensor, totals_RT: Tensor, truncated_R: Tensor, *, eos: int, width: int
) -> Iterator[tuple[int, list[int], list[float], float, bool]]:
    """The hypotheses that end here: place of the sentence among the B, ids without EOS, totals up to each, log-probability, truncated."""
    total_BW, token_BW, row_BW = (x[:, :width] for x in candidates)
    ended_BW = (token_BW == eos) & (total_BW > -torch.inf)
    places = ended_BW.nonzero()[:, 0].tolist()
    if places:
        row_E = row_BW[ended_BW]
        columns = prefix_RT[row_E].tolist(), totals_RT[row_E].tolist(), total_BW[ended_BW].tolist(), truncated_R[row_E].tolist()
        yield from zip(places, *columns, strict=True)


def surviving(candidates: Candidates, *, eos: int, width: int) -> Candidates:
    """The rows of the next position, (B, W) or fewer: the best candidates that are not EOS."""
    total_BN = candidates.total.masked_fill(candidates.token == eos, -torch.inf)
    order_BW = (total_BN == -torch.inf).sort(dim=1, stable=True).indices[:, :width]
    total_BW = total_BN.gather(1, order_BW)
    # Where there are fewer, a dead row (total −inf) repeats the best one: a step is never asked to continue what it does not allow.
    order_BW = torch.where(total_BW > -torch.inf, order_BW, order_BW[:, :1])
    return Candidates(total_BW, candidates.token.gather(1, order_BW), candidates.row.gather(1, order_BW))


def hypotheses_wanted(width: int, *, patience: float, n_best: int, length_penalty: float) -> int:
    """How many hypotheses finish a sentence: W · patience, rounded. Raises DecodeError for settings that cannot be met."""
    if width < 1:
        raise DecodeError(f"beam {width}: give a width from 1 (greedy) upwards")
    if not 1 <= patience < math.inf:
        raise DecodeError(f"patience {patience:g}: give a number from 1 upwards")
    if width == 1 and patience != 1:
        raise DecodeError(f"patience {patience:g} needs a beam of 2 or more: beam 1 is greedy search")
    if not 0 <= length_penalty < math.inf:
        raise DecodeError(f"length penalty {length_penalty:g}: give a number from 0 (rank by log-probability) upwards")
    enough = round(width * patience)
    if n_best < 1:
        raise DecodeError(f"n-best {n_best}: give a number from 1 upwards")
    if n_best > enough:
        holds = f"beam {width}" if patience == 1 else f"beam {width} × patience {patience:g} = {enough}"
        raise DecodeError(f"n-best {n_best} is larger than {holds}: ask for fewer, or widen the beam")
    return enough
