"""Sampled search: temperature, top-k and top-p, with a generator for each sentence.

Legend: R rows (one for each sentence still going), V vocabulary, K candidates of a row.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import torch
from torch import Tensor

from mt.errors import DecodeError
from mt.search.greedy import follow, greedy_search
from mt.search.step import Hypothesis, State, Step, best_tokens

COLD = 1e-4
"""Temperatures below are greedy search: dividing by them overflows, and nothing but exact ties could still be drawn."""
HOT = 1e6
"""The highest temperature: all log-probabilities are alike there, and far above it dividing by it makes NaN of those that are −inf."""


def sample_search(
    step: Step[State],
    state: State,
    *,
    bos: int,
    eos: int,
    limits: Sequence[int],
    seeds: Sequence[int | str],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    length_penalty: float = 1.0,
) -> list[Hypothesis]:
    """One hypothesis a sentence, each token drawn from the step's distribution.

    The distribution is sharpened (`temperature` < 1) or flattened (> 1), cut to the `top_k` most probable tokens (0: all), then to the
    fewest tokens that hold `top_p` of what is left (Holtzman et al. 2020, https://arxiv.org/abs/1904.09751), and renormalised. What is
    reported is the step's own log-probability, before any of that.

    A sentence's output is decided by its distributions, its limit and its seed, not by its batch. Temperature 0, or close to it, is greedy
    search. Raises DecodeError for settings out of range, and when log-probabilities are NaN.
    """
    refuse_settings(temperature, top_k=top_k, top_p=top_p)
    if temperature < COLD:
        return greedy_search(step, state, bos=bos, eos=eos, limits=limits, length_penalty=length_penalty)
    generators = [random.Random(seed) for seed in seeds]
    assert len(generators) == len(limits)

    def choose(logp_RV: Tensor, _best_R: Tensor, sentences: list[int]) -> Tensor:
        logp_RV = logp_RV.to(torch.promote_types(logp_RV.dtype, torch.float32))
        uniform_R = torch.tensor([generators[b].random() for b in sentences], dtype=logp_RV.dtype, device=logp_RV.device)
        return draw(logp_RV, uniform_R, temperature=temperature, top_k=top_k, top_p=top_p)

    return follow(step, state, choose=choose, bos=bos, eos=eos, limits=limits, length_penalty=length_penalty)


def several(seeds: Sequence[int | str], n: int) -> list[int | str]:
    """Seeds for n samples a sentence; the first is that of the sentence's only sample."""
    return [f"{seed}/{sample}" if sample else seed for seed in seeds for sample in range(n)]


def draw(logp_RV: Tensor, uniform_R: Tensor, *, temperature: float, top_k: int, top_p: float) -> Tensor:
    """The id (R,) of each row at the point `uniform_R` (in [0, 1)) of its cumulated distribution; never one of probability 0."""
    p_RV = (logp_RV / temperature).softmax(dim=1)
    if top_k:
        p_RK, id_RK = best_tokens(p_RV, top_k)
        mass_RK = (p_RK / p_RK.sum(dim=1, keepdim=True)).cumsum(dim=1)
    elif top_p < 1:
        mass_RK, id_RK = nucleus(p_RV, top_p)
    else:  # nothing is cut, so any order of the tokens will do
        mass_RK, id_RK = p_RV.cumsum(dim=1), torch.arange(p_RV.size(1), device=p_RV.device).expand_as(p_RV)
    # Rounding leaves the mass of all tokens a little off 1, so their end is where it stands last, not at 1.
    kept_R1 = mass_RK[:, -1:].clamp(max=top_p if top_p < 1 else math.inf)
    last_R1 = torch.searchsorted(mass_RK, kept_R1.contiguous()).clamp(max=mass_RK.size(1) - 1)
    drawn_R1 = torch.searchsorted(mass_RK, uniform_R[:, None] * mass_RK.gather(1, last_R1), right=True)
    return id_RK.gather(1, torch.minimum(drawn_R1, last_R1))[:, 0]


def nucleus(p_RV: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Cumulated probabilities (R, K) and ids (R, K) of each row's most probable tokens, best first: enough to hold `top_p` in every row.

    Sorting all of V takes many times longer than the rest of the draw, and the head of a translation model's distribution is short.
    """
    k = 256
    while True:
        p_RK, id_RK = best_tokens(p_RV, k)
        mass_RK = p_RK.cumsum(dim=1)
        if k >= p_RV.size(1) or bool((mass_RK[:, -1] >= top_p).all()):
            return mass_RK, id_RK
        k *= 8


def refuse_settings(temperature: float, *, top_k: int, top_p: float) -> None:
    """Raise DecodeError for settings that describe no distribution."""
    if not 0 <= temperature <= HOT:
        raise DecodeError(f"temperature {temperature:g}: give a number from 0 (greedy) to {HOT:.0f} (all tokens alike)")
    if top_k < 0:
        raise DecodeError(f"top-k {top_k}: give how many tokens to keep, or 0 for all")
    if not 0 < top_p <= 1:
        raise DecodeError(f"top-p {top_p:g}: give the probability to keep, above 0 and at most 1 (all)")
