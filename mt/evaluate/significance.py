"""Whether two systems differ by more than chance: paired bootstrap resampling and approximate randomisation, as in sacreBLEU.

The draws, the order of sums and so the p-values are those of `sacrebleu --paired-bs` and `--paired-ar` with the same seed. Its own
class for them is not used: it gives no samples, of which the interval of the difference is made, counts the n-grams anew for either
test, and holds all samples at once. Bootstrap: Koehn 2004 (https://aclanthology.org/W04-3250); randomisation: Riezler and Maxwell 2005
(https://aclanthology.org/W05-0908); corrected for several comparisons as in Holm 1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import _compute_p_value, estimate_ci

from mt.evaluate.metrics import BOOTSTRAP_SAMPLES, BOOTSTRAP_SEED, bootstrap_scores

ALPHA = 0.05
"""Differences with a p-value below it are called significant."""
TOGETHER = 32
"""Trials that are drawn at once: numpy draws bits 32 at a time, so that a multiple of 32 trials leaves none over."""

Statistics = list[list[float]]


@dataclass(frozen=True)
class Resampling:
    """How often, and from which seed; the defaults are sacreBLEU's."""

    samples: int = BOOTSTRAP_SAMPLES
    trials: int = 10000
    seed: int = BOOTSTRAP_SEED


USUAL = Resampling()


@dataclass(frozen=True)
class Estimate:
    """A score, and the 95 % interval of the paired bootstrap: mean ± half-width."""

    score: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """A system's score less the baseline's; its 95 % interval and both p-values, as they are and by Holm for all that are compared."""

    difference: float
    interval: tuple[float, float]
    p_bootstrap: float
    p_randomisation: float
    p_bootstrap_holm: float
    p_randomisation_holm: float

    @property
    def significant(self) -> bool | None:
        """Whether both tests say so, after the correction; None where they contradict each other."""
        found = {p < ALPHA for p in (self.p_bootstrap_holm, self.p_randomisation_holm)}
        return found.pop() if len(found) == 1 else None


def paired(metric: Metric, statistics: Sequence[Statistics], resampling: Resampling = USUAL) -> tuple[list[Estimate], list[Difference]]:
    """The scores of all systems, and how all but the first differ from the first, the baseline.

    `statistics` are those of `segment_statistics` for each system, of the same lines.
    """
    scores = [metric._aggregate_and_compute(one).score for one in statistics]
    sampled = [np.array(bootstrap_scores(metric, one, samples=resampling.samples, seed=resampling.seed)) for one in statistics]
    estimates = [Estimate(float(score), _interval(samples)) for score, samples in zip(scores, sampled, strict=True)]
    sizes = [abs(scores[0] - score) for score in scores]
    by_bootstrap = [_bootstrap_p(samples - sampled[0], size) for samples, size in zip(sampled[1:], sizes[1:], strict=True)]
    by_randomisation = [
        _randomisation_p(metric, statistics[0], one, size, resampling) for one, size in zip(statistics[1:], sizes[1:], strict=True)
    ]
    found = zip(scores[1:], sampled[1:], by_bootstrap, by_randomisation, holm(by_bootstrap), holm(by_randomisation), strict=True)
    return estimates, [
        Difference(float(score - scores[0]), _interval(samples - sampled[0]), *p_values) for score, samples, *p_values in found
    ]


def difference_intervals(metric: Metric, statistics: Sequence[Statistics], resampling: Resampling = USUAL) -> list[tuple[float, float]]:
    """Only the intervals of what `paired` finds, in Python's numbers: several times as fast, the last digits are others."""
    rows = np.array(statistics, dtype=np.float64)
    rng = np.random.default_rng(resampling.seed)
    drawn = (rows[:, rng.choice(rows.shape[1], size=rows.shape[1])].sum(1).tolist() for _ in range(resampling.samples))
    baseline, *others = np.array([[metric._compute_score_from_stats(one).score for one in sample] for sample in drawn]).T
    return [_interval(samples - baseline) for samples in others]


def signature(metric: Metric, **test: int) -> str:
    """The signature of a paired test, as sacreBLEU gives it: `bs` samples or `ar` trials, and the `seed`."""
    found = metric.get_signature()
    for name, value in test.items():
        found.update(name, value)
    return found.format()


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values as they are where all of them are looked at: times the number of those not smaller, never falling, at most 1."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(np.argsort(p_values, kind="stable")):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def _interval(samples: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Mean ± half-width that 95 % of the samples are in."""
    centre, half_width = map(float, estimate_ci(samples))
    return centre - half_width, centre + half_width


def _bootstrap_p(differences: np.ndarray[Any, Any], found: float) -> float:
    """How often samples differ from their mean difference by more than the systems do.

    Equal scores have 1 here, in either test; sacreBLEU counts what is more than nothing, and its least p-value is theirs.
    """
    if not found:
        return 1.0
    sizes = np.abs(differences)
    return float(_compute_p_value(sizes - sizes.mean(), found))


def _randomisation_p(metric: Metric, baseline: Statistics, other: Statistics, found: float, resampling: Resampling) -> float:
    """How often the systems differ by more than they do once it is drawn for each line whose translation is whose."""
    if not found:
        return 1.0
    ours, theirs = np.array(baseline, dtype=np.float64), np.array(other, dtype=np.float64)
    both, between = ours.sum(0) + theirs.sum(0), ours - theirs
    rng = np.random.default_rng(resampling.seed)
    sizes: list[float] = []
    for begun in range(0, resampling.trials, TOGETHER):
        chosen = rng.integers(2, size=(min(TOGETHER, resampling.trials - begun), len(ours)), dtype=bool)
        mixed = chosen @ between + theirs.sum(0)
        for one, rest in zip(mixed.tolist(), (both - mixed).tolist(), strict=True):
            sizes.append(abs(metric._compute_score_from_stats(one).score - metric._compute_score_from_stats(rest).score))
    return float(_compute_p_value(np.array(sizes), found))
