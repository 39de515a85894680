"""Minimum Bayes risk: of several outputs the one that is, in the mean, nearest to all of them (Eikema & Aziz 2022, 2108.04718).

The utility of a candidate is its expected sentence score, with the candidates as references, each as probable as it is: samples count
as often as they came, the n-best of a beam by their probabilities among themselves. A candidate is a reference of itself, too.

What a candidate has of n-grams is counted once, what two have in common by one minimum over all of them; sacreBLEU's own formula then
makes the score of a pair, so that it is `sacrebleu`'s sentence score. COMET, a neural model, reads the source beside each pair
(Freitag et al. 2022, 2111.09388; Fernandes et al. 2022, 2205.00978): N² times a line, which is slow on a CPU.

Legend: N candidates that differ, G n-grams of all of them, O orders of n-grams.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from mt.errors import DecodeError
from mt.evaluate.metrics import build_metric
from mt.evaluate.neural import MODELS, Judge, judge_of, require
from mt.search.step import Hypothesis

UtilityKey = Literal["chrf", "bleu", "comet"]
PAIRS = 65_536
"""At most so many pairs are put to a neural model at once, but for a line that has more."""


@dataclass(frozen=True)
class Mbr:
    """Choose by expected utility. Raises DecodeError for settings that cannot be met."""

    utility: UtilityKey = "chrf"
    n_best: int = 1
    """How many are kept, best first."""
    model: str | None = None
    """For comet: a checkpoint, or a name on the hub; left out, that of `mt eval --metrics comet`."""

    def __post_init__(self) -> None:
        if self.n_best < 1:
            raise DecodeError(f"n-best {self.n_best}: give a number from 1 upwards")


class Utility(Protocol):
    """Scores the candidates of lines against each other."""

    def of_lines(self, candidates: Sequence[Sequence[str]], sources: Sequence[str]) -> list[NDArray[np.float64]]:
        """For each line (N, N): the score of each of its candidates, which all differ, with each as its reference."""
        ...


class Counted:
    """Sentence scores of texts against each other: sacreBLEU's chrF, or BLEU with effective order and the tokenizer of the language."""

    def __init__(self, key: Literal["chrf", "bleu"], *, lang: str | None) -> None:
        metric, _ = build_metric(key, lang=lang, tokenize=None, lowercase=False)
        assert isinstance(metric, BLEU | CHRF)
        self._metric = metric
        if isinstance(metric, BLEU):
            metric.effective_order = True
        self._orders = metric.max_ngram_order if isinstance(metric, BLEU) else metric.char_order

    def of_lines(self, candidates: Sequence[Sequence[str]], sources: Sequence[str]) -> list[NDArray[np.float64]]:
        """The scores of each line's candidates by themselves: no source is read."""
        del sources
        return [self.between(texts) for texts in candidates]

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


class Neural:
    """Scores of COMET: how good a text is as a translation of the line, if another of its candidates is the reference."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def of_lines(self, candidates: Sequence[Sequence[str]], sources: Sequence[str]) -> list[NDArray[np.float64]]:
        """All pairs of many lines are put to the model at once, as each call of it has a cost of its own."""
        found: list[NDArray[np.float64]] = []
        for lot in lots([len(texts) ** 2 for texts in candidates], most=PAIRS):
            pairs = [(one, other, sources[line]) for line in lot for one in candidates[line] for other in candidates[line]]
            texts, references, read = ([pair[place] for pair in pairs] for place in range(3))
            scores = iter(self._judge.scores(texts, references, read))
            for line in lot:
                n = len(candidates[line])
                found.append(np.fromiter(scores, np.float64, count=n * n).reshape(n, n))
        return found


def lots(sizes: Sequence[int], *, most: int) -> list[range]:
    """Consecutive places cut so that the sizes of each lot add up to at most so many; a larger one is alone."""
    cuts, total = [0], 0
    for place, size in enumerate(sizes):
        if place > cuts[-1] and total + size > most:
            cuts.append(place)
            total = 0
        total += size
    return [range(*ends) for ends in itertools.pairwise([*cuts, len(sizes)])]


def utility_of(mbr: Mbr, lang: str | None) -> Utility:
    """What scores candidates. Raises ConfigError where COMET cannot be had."""
    if mbr.utility == "comet":
        require("comet", sources=True)
        return Neural(judge_of(mbr.model or MODELS["comet"]))
    return counted(mbr.utility, lang)


@functools.cache
def counted(key: Literal["chrf", "bleu"], lang: str | None) -> Counted:
    """Made once: BLEU's tokenizers of some languages load a dictionary."""
    return Counted(key, lang=lang)


Candidates = list[tuple[str, Hypothesis]]
"""The hypotheses of a line, with their texts."""
Choice = Callable[[Sequence[Candidates], Sequence[str]], list[tuple[Candidates, list[float]]]]
"""Given candidates and the lines they translate: what is kept of each line, and its expected utility."""


def choice(mbr: Mbr, lang: str | None, *, sampled: bool) -> Choice:
    """How to choose. Raises ConfigError where COMET cannot be had."""
    return functools.partial(by_utility, utility=utility_of(mbr, lang), n_best=mbr.n_best, sampled=sampled)


def by_utility(
    found: Sequence[Candidates], sources: Sequence[str], *, utility: Utility, n_best: int, sampled: bool
) -> list[tuple[Candidates, list[float]]]:
    """Of each line the hypotheses with different texts that have the highest expected utility, and that utility.

    Of equals the first stays first. `sources` are the lines.
    """
    differ = [[*dict.fromkeys(text for text, _ in line)] for line in found]  # in the order in which they first come
    chosen = []
    for line, texts, scores_NN in zip(found, differ, utility.of_lines(differ, sources), strict=True):
        places = [texts.index(text) for text, _ in line]
        probabilities = [1.0] * len(line) if sampled else posterior([one.log_prob for _, one in line])
        utilities = expected(scores_NN, places, probabilities)
        best = sorted(range(len(texts)), key=lambda i: -utilities[i])[:n_best]
        chosen.append(([line[places.index(i)] for i in best], [utilities[i] for i in best]))
    return chosen


def expected(scores_NN: NDArray[np.float64], places: Sequence[int], probabilities: Sequence[float]) -> list[float]:
    """The expected score of each text, when the reference is the one at one of these places, each with its probability."""
    weight_N = np.bincount(places, probabilities, minlength=len(scores_NN))
    return (scores_NN @ weight_N / weight_N.sum()).tolist() if len(scores_NN) else []


def posterior(log_probs: Sequence[float]) -> list[float]:
    """The probabilities of some outputs among themselves."""
    top = max(log_probs, default=0.0)
    return [math.exp(one - top) if top > -math.inf else 1.0 for one in log_probs]
