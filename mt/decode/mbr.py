"""Minimum Bayes risk: of several outputs the one that is, in the mean, nearest to all of them (Eikema & Aziz 2022, 2108.04718).

The utility of a candidate is its expected sentence score, with the candidates as references, each as probable as it is: samples count
as often as they came, the n-best of a beam by their probabilities among themselves. A candidate is a reference of itself, too.

What a candidate has of n-grams is counted once, what two have in common by one minimum over all of them; sacreBLEU's own formula then
makes the score of a pair, so that it is `sacrebleu`'s sentence score.

Legend: N candidates that differ, G n-grams of all of them, O orders of n-grams.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from mt.errors import DecodeError
from mt.evaluate.metrics import build_metric
from mt.search.step import Hypothesis


@dataclass(frozen=True)
class Mbr:
    """Choose by expected utility. Raises DecodeError for settings that cannot be met."""

    utility: Literal["chrf", "bleu"] = "chrf"
    n_best: int = 1
    """How many are kept, best first."""

    def __post_init__(self) -> None:
        if self.n_best < 1:
            raise DecodeError(f"n-best {self.n_best}: give a number from 1 upwards")


class Utility:
    """Sentence scores of texts against each other: sacreBLEU's chrF, or BLEU with effective order and the tokenizer of the language."""

    def __init__(self, key: Literal["chrf", "bleu"], *, lang: str | None) -> None:
        metric, _ = build_metric(key, lang=lang, tokenize=None, lowercase=False)
        assert isinstance(metric, BLEU | CHRF)
        self._metric = metric
        if isinstance(metric, BLEU):
            metric.effective_order = True
        self._orders = metric.max_ngram_order if isinstance(metric, BLEU) else metric.char_order

    def between(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(N, N): the score of each text with each as its reference."""
        items = [self._items(text) for text in texts]
        common_NNO, total_NO = self._counts(items)
        scores = np.empty((len(texts), len(texts)))
        lengths = [len(one) for one in items]
        totals, common = total_NO.tolist(), common_NNO.tolist()
        for i in range(len(texts)):
            for j in range(len(texts)):
                scores[i, j] = self._score(common[i][j], totals[i], totals[j], lengths[i], lengths[j])
        return scores

    def expected(self, texts: Sequence[str], probabilities: Sequence[float]) -> list[float]:
        """The expected score of each text, when the reference is one of them with these probabilities; equal texts may come again."""
        places: dict[str, int] = {}
        for text in texts:
            places.setdefault(text, len(places))
        weight_N = np.zeros(len(places))
        for text, probability in zip(texts, probabilities, strict=True):
            weight_N[places[text]] += probability
        expected_N = self.between([*places]) @ (weight_N / weight_N.sum())
        return [float(expected_N[places[text]]) for text in texts]

    def _items(self, text: str) -> Sequence[str]:
        """What n-grams are made of: words of the tokenizer, or characters that are no white space."""
        if isinstance(self._metric, BLEU):
            words: list[str] = self._metric._preprocess_segment(text).split()
            return words
        return "".join(self._metric._preprocess_segment(text).split())

    def _counts(self, items: Sequence[Sequence[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many n-grams of each order two texts have in common, (N, N, O), and each has by itself, (N, O)."""
        total_NO = np.array([[max(0, len(one) - n) for n in range(self._orders)] for one in items])
        common_NNO = np.zeros((len(items), len(items), self._orders), dtype=np.int64)
        for n in range(1, self._orders + 1):
            places: dict[Any, int] = {}
            counts = [
                Counter(one[i : i + n] if isinstance(one, str) else tuple(one[i : i + n]) for i in range(len(one) - n + 1)) for one in items
            ]
            for one in counts:
                for gram in one:
                    places.setdefault(gram, len(places))
            count_NG = np.zeros((len(items), len(places)), dtype=np.int32)
            for row, one in zip(count_NG, counts, strict=True):
                row[[places[gram] for gram in one]] = [*one.values()]
            for i, row in enumerate(count_NG):
                common_NNO[i, :, n - 1] = np.minimum(row, count_NG).sum(axis=1)
        return common_NNO, total_NO

    def _score(self, common: list[int], ours: list[int], theirs: list[int], length: int, reference: int) -> float:
        """The formula of sacreBLEU for what one text and its reference have."""
        if isinstance(self._metric, BLEU):
            return float(self._metric._compute_score_from_stats([length, reference, *common, *ours]).score)
        triples = zip(ours, theirs, common, strict=True)
        return float(self._metric._compute_f_score([n for a, b, c in triples for n in (a if b else 0, b, c)]))


def by_utility(
    found: list[tuple[str, Hypothesis]], mbr: Mbr | None, *, lang: str | None, sampled: bool
) -> tuple[list[tuple[str, Hypothesis]], list[float]]:
    """The hypotheses with different texts that have the highest expected utility, and that utility; without `mbr` all as they are.

    Of equals the first stays first.
    """
    if mbr is None or not found:
        return found, []
    texts = [text for text, _ in found]
    probabilities = [1.0] * len(found) if sampled else posterior([one.log_prob for _, one in found])
    utilities = utility_of(mbr.utility, lang).expected(texts, probabilities)
    first = {text: place for place, text in reversed([*enumerate(texts)])}
    best = sorted(first.values(), key=lambda place: (-utilities[place], place))[: mbr.n_best]
    return [found[place] for place in best], [utilities[place] for place in best]


@functools.cache
def utility_of(key: Literal["chrf", "bleu"], lang: str | None) -> Utility:
    """Made once: BLEU's tokenizers of some languages load a dictionary."""
    return Utility(key, lang=lang)


def posterior(log_probs: Sequence[float]) -> list[float]:
    """The probabilities of some outputs among themselves."""
    top = max(log_probs)
    return [math.exp(one - top) if top > -math.inf else 1.0 for one in log_probs]
