"""Scores of translations through sacreBLEU, each with the signature that lets another person repeat it.

Text is scored as it stands, raw and detokenised: nothing here, least of all the references, passes through a tokenizer of
the run. Validation during training and `mt eval` call the same `score`. Metrics: BLEU (Papineni et al. 2002), chrF2
(Popović 2015), chrF2++ (Popović 2017) and TER (Snover et al. 2006) as in sacreBLEU (Post 2018, https://aclanthology.org/W18-6319).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean
from typing import Any, cast

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mt.errors import ConfigError, DataError
from mt.evaluate.doubts import about_lines, about_metrics, unspaced

METRICS = ("bleu", "chrf", "ter")
"""Those that are given if none are named."""
KNOWN = ("bleu", "chrf", "chrf++", "ter")
FEW_BLEU = 5.0
"""A lower BLEU is that of a model which has hardly begun to learn."""
BOOTSTRAP_SAMPLES = 1000
BOOTSTRAP_SEED = 12345

# Two-letter codes, and the three-letter ones of ISO 639-3 that FLORES and NLLB use.
TOKENIZER_OF_LANGUAGE = {
    **dict.fromkeys(("zh", "zho", "cmn", "yue"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
    **dict.fromkeys(("th", "tha", "lo", "lao", "km", "khm", "my", "mya"), "char"),
}


@dataclass(frozen=True)
class MetricScore:
    """One score: `metric` is its key (bleu, chrf, chrf++, ter), `name` and `signature` are sacreBLEU's, `interval` is 95 %."""

    metric: str
    name: str
    score: float
    signature: str
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Group:
    """Some of the lines: those with one label."""

    label: str
    lines: int
    scores: dict[str, float]


@dataclass(frozen=True)
class Scores:
    """The scores of one set of translations, in the order asked for, and what the reader must know to trust them."""

    metrics: list[MetricScore]
    warnings: list[str]
    lines: int
    groups: list[Group] = field(default_factory=list)
    """By label, in the order the labels first come; empty unless lines have any."""

    def __getitem__(self, metric: str) -> MetricScore:
        """The score of `bleu`, `chrf`, `chrf++` or `ter`; a KeyError when it was not asked for."""
        found = next((one for one in self.metrics if one.metric == metric), None)
        if found is None:
            raise KeyError(metric)
        return found

    def as_json(self) -> dict[str, Any]:
        """The object that `mt eval --json` writes, numbers unrounded."""
        fields = ("name", "score", "signature", "interval")
        metrics = [{name: getattr(one, name) for name in fields} for one in self.metrics]
        groups = {"groups": [asdict(one) for one in self.groups]} if self.groups else {}
        return {"metrics": metrics, "lines": self.lines, "warnings": self.warnings, **groups}


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lang: str | None,
    metrics: Sequence[str] = METRICS,
    tokenize: str | None = None,
    lowercase: bool = False,
    intervals: bool = False,
    labels: Sequence[str] | None = None,
) -> Scores:
    """The scores of `hypotheses` against one or more sets of references, equal to those of the sacreBLEU command line.

    `references` holds whole sets, each as long as `hypotheses`: [[ref 1 of line 1, ref 1 of line 2, …], [ref 2 of line 1, …]].
    `lang`, the target language, chooses BLEU's tokenizer unless `tokenize` names one of sacreBLEU's; None means 13a.
    `lowercase` concerns BLEU and chrF; TER ignores case anyway, as in Tercom. `intervals` adds 95 % bootstrap intervals;
    `labels`, one a line, scores of the lines with each label.
    Raises DataError when the counts differ or there is nothing to score, ConfigError for an unknown metric or tokenizer.
    """
    check_counts(hypotheses, references)
    warnings = ["case is ignored: these scores are not comparable with the usual ones (case:lc in the signature)"] if lowercase else []
    scores = []
    groups = {label: Group(label, count, {}) for label, count in Counter(labels or ()).items()}
    for key in dict.fromkeys(metrics):
        metric, said = build_metric(key, lang=lang, tokenize=tokenize, lowercase=lowercase)
        statistics = segment_statistics(metric, hypotheses, references)
        result = metric._aggregate_and_compute(statistics)
        interval = bootstrap_interval(metric, statistics) if intervals else None
        scores.append(MetricScore(key, result.name, float(result.score), str(metric.get_signature()), interval))
        for label in groups:
            inside = [one for one, own in zip(statistics, labels or (), strict=True) if own == label]
            groups[label].scores[key] = float(metric._aggregate_and_compute(inside).score)
        warnings += said
        if isinstance(result, BLEUScore) and not result.totals[-1]:
            warnings.append("BLEU is undefined, and given as 0: no hypothesis is long enough for a 4-gram; go by chrF")
    warnings += about_lines(hypotheses, references)
    if unspaced(references):
        warnings += about_metrics({one.metric for one in scores}, default_tokenizer=tokenize is None and tokenizer_for(lang) == "13a")
    return Scores(scores, warnings, len(hypotheses), list(groups.values()))


def tokenizer_for(lang: str | None) -> str:
    """The sacreBLEU tokenizer for text in `lang`, a code such as zh, zh-CN, zh_Hans or zho_Hans; 13a for all the others."""
    return TOKENIZER_OF_LANGUAGE.get(re.split("[-_]", (lang or "").strip().lower())[0], "13a")


def check_counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raise DataError unless every reference set has a line for every hypothesis, and there is at least one of each.

    sacreBLEU's own functions cut to the shorter, and take a flat list or a list per sentence without a word.
    """
    if isinstance(hypotheses, str) or any(isinstance(one, str) for one in references):
        raise TypeError("hypotheses is a list of lines, references a list of such lists, one for each set")
    if not hypotheses or not references:
        raise DataError(f"nothing to score: there are {len(hypotheses)} hypotheses and {len(references)} sets of references")
    for number, lines in enumerate(references, start=1):
        if len(lines) != len(hypotheses):
            where = f" in set {number}" if len(references) > 1 else ""
            raise DataError(
                f"{len(hypotheses)} hypotheses but {len(lines)} references{where}: line n of one must answer line n of the other"
            )


def build_metric(key: str, *, lang: str | None, tokenize: str | None, lowercase: bool) -> tuple[Metric, list[str]]:
    """The sacreBLEU metric called `key` (bleu, chrf, chrf++ or ter), and warnings about the way it had to be set up."""
    match key:
        case "bleu":
            return _bleu(lang=lang, tokenize=tokenize, lowercase=lowercase)
        case "chrf":
            return CHRF(lowercase=lowercase), []
        case "chrf++":
            return CHRF(lowercase=lowercase, word_order=2), []
        case "ter":
            return TER(), []
        case _:
            raise ConfigError(f"no metric is called `{key}` here; choose from {', '.join(KNOWN)} (mt eval has comet and comet-kiwi, too)")


def closeness_by(key: str, *, lang: str | None) -> Callable[[str, str], float]:
    """How close one line is to its reference: sacreBLEU's sentence score, `chrf`, or `bleu` with effective order."""
    metric, _ = build_metric(key, lang=lang, tokenize=None, lowercase=False)
    if isinstance(metric, BLEU):
        metric.effective_order = True
    return lambda hypothesis, reference: float(metric.sentence_score(hypothesis, [reference]).score)


def _bleu(*, lang: str | None, tokenize: str | None, lowercase: bool) -> tuple[BLEU, list[str]]:
    """BLEU with the tokenizer asked for, else that of `lang`, else (MeCab missing) on characters and with a warning."""
    name = tokenize or tokenizer_for(lang)
    if name not in BLEU.TOKENIZERS:
        raise ConfigError(f"sacreBLEU has no tokenizer `{name}`; choose from {', '.join(BLEU.TOKENIZERS)}")
    try:
        return BLEU(lowercase=lowercase, tokenize=name), []
    except (RuntimeError, OSError) as problem:
        if not name.endswith("-mecab"):
            raise ConfigError(f"the sacreBLEU tokenizer `{name}` could not be fetched ({problem}); choose another") from problem
        missing = f"the tokenizer {name} is not installed (pip install 'sacrebleu[{name[:2]}]')"
        if tokenize:
            raise ConfigError(missing) from problem
        return BLEU(lowercase=lowercase, tokenize="char"), [f"{missing}: BLEU is computed on characters instead (tok:char)"]


def segment_statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[float]]:
    """What `metric` counts in each line; their sum gives the score of the whole, the sum of a sample that of the sample.

    Line by line, not all at once: sacreBLEU would hold the n-grams of every reference, slower and without a bound, and would log
    that lines end in a tokenised period even where the references do so too.
    """
    return [
        metric._extract_corpus_statistics([hypothesis], [[line] for line in lines])[0]
        for hypothesis, *lines in zip(hypotheses, *references, strict=True)
    ]


def bootstrap_interval(metric: Metric, statistics: list[list[float]]) -> tuple[float, float]:
    """sacreBLEU's 95 % bootstrap interval (Koehn 2004), mean ± half-width over 1000 samples, noted in `metric`'s signature.

    The same draws and float32 sums as `sacrebleu --confidence`, to the last bit; but the seed is always 12345, whatever
    SACREBLEU_SEED says.
    """
    scores = sorted(bootstrap_scores(metric, statistics))
    outside = BOOTSTRAP_SAMPLES // 40
    centre, half_width = float(mean(scores)), float(0.5 * (scores[-1 - outside] - scores[outside]))
    metric.n_bootstrap, metric.seed = BOOTSTRAP_SAMPLES, str(BOOTSTRAP_SEED)
    return centre - half_width, centre + half_width


def bootstrap_scores(
    metric: Metric, statistics: list[list[float]], *, samples: int = BOOTSTRAP_SAMPLES, seed: int = BOOTSTRAP_SEED
) -> list[Any]:
    """The score of each of so many samples of the lines, the same lines for whatever statistics.

    Drawn one at a time, where sacreBLEU gathers all (7 GB for chrF on 100000 lines); the draws are the same.
    """
    rows = np.array(statistics, dtype=np.float32)
    rng = np.random.default_rng(seed)
    drawn = (rows[rng.choice(len(rows), size=len(rows), replace=True)].sum(0) for _ in range(samples))
    scores: list[Any] = [metric._compute_score_from_stats(cast("list[Any]", sample)).score for sample in drawn]
    if any(isinstance(one, np.float32) for one in scores):
        # A sample of empty references only has Python's 0.0 or 100.0 there, on which sacreBLEU 2.6.0 ends with an exception.
        scores = [np.float32(one) for one in scores]
    return scores
