"""The coverage penalty: finished hypotheses that leave parts of the source unread rank lower (Wu et al. 2016, eq. 14, 1609.08144).

    score = log-probability / L^α + β · Σ_s log(min(Σ_t a_ts, 1))

where a_ts is how much step t of the decoder looks at id s of the source. Legend: S source ids, T steps of the decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from mt.forced.given import Given
from mt.search.step import Hypothesis


def coverage(weights_TS: Tensor) -> float:
    """Σ_s log(min(Σ_t a_ts, 1)): 0 where each id was looked at for a whole step, below 0 where one was not."""
    mass_S = weights_TS.double().sum(dim=0)
    return float(mass_S.clamp(min=torch.finfo(mass_S.dtype).tiny, max=1).log().sum())  # a weight may be too small for a float


def reranked(
    sources: Sequence[list[int]],
    found: Sequence[Sequence[Hypothesis]],
    attention: Callable[[Sequence[Given]], Iterable[tuple[int, Tensor]]],
    *,
    penalty: float,
) -> list[list[Hypothesis]]:
    """The hypotheses of each source, best first, with a score that counts coverage; of equals the first stays first.

    `attention` is `attended` of a model.
    """
    given = [Given(source, one.ids) for source, own in zip(sources, found, strict=True) for one in own]
    added = {place: penalty * coverage(weights_TS) for place, weights_TS in attention(given)}
    rest = iter(sorted(added))
    scored = [[with_coverage(one, added[next(rest)]) for one in own] for own in found]
    return [sorted(own, key=lambda one: -one.score) for own in scored]


def with_coverage(one: Hypothesis, added: float) -> Hypothesis:
    """A hypothesis whose score has something added."""
    return replace(one, score=one.score + added, coverage=added)
