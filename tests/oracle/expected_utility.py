"""Expected utility, the slow and obvious way: sacreBLEU's sentence score of every pair."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


def sentence_score(metric: str, text: str, reference: str) -> float:
    scorer = CHRF() if metric == "chrf" else BLEU(effective_order=True)
    return scorer.sentence_score(text, [reference]).score


def expected_utility(metric: str, texts: Sequence[str], probabilities: Sequence[float]) -> list[float]:
    total = sum(probabilities)
    return [sum(p / total * sentence_score(metric, text, other) for other, p in zip(texts, probabilities, strict=True)) for text in texts]
