"""Several translations of one test set side by side: scores, whether they differ by more than chance, and where."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEUScore

from mt.errors import DataError
from mt.evaluate.buckets import Division, by_difficulty, useful
from mt.evaluate.doubts import about_lines, about_sources
from mt.evaluate.metrics import METRICS, build_metric, check_counts, segment_statistics
from mt.evaluate.significance import USUAL, Difference, Estimate, Resampling, Statistics, difference_intervals, paired, signature

EXAMPLES = 20
"""Lines that differ most, either way."""
FEWEST = 10
"""Lines of a bucket for which there is an interval."""


@dataclass(frozen=True)
class Ngrams:
    """What BLEU is made of: precisions of 1-grams to 4-grams and the brevity penalty; lengths in BLEU's tokens."""

    precisions: tuple[float, ...]
    brevity: float
    length: int
    reference_length: int


@dataclass(frozen=True)
class System:
    """One system: what it scores by each metric."""

    name: str
    scores: dict[str, Estimate]
    ngrams: Ngrams | None


@dataclass(frozen=True)
class Example:
    """A line that two systems translate differently, with the chrF2 of either."""

    line: int
    source: str | None
    references: tuple[str, ...]
    baseline: str
    other: str
    chrf: tuple[float, float]


@dataclass(frozen=True)
class Rival:
    """A system against the baseline; lines are counted, and examples chosen, by sentence chrF2."""

    name: str
    differences: dict[str, Difference]
    wins: int
    ties: int
    losses: int
    same: int
    """Lines translated alike, to the letter; all of them are ties."""
    by_precision: float | None
    by_brevity: float | None
    """The difference of BLEU in two parts, which add up to it."""
    better: list[Example]
    worse: list[Example]


@dataclass(frozen=True)
class Bucket:
    """Some of the lines: chrF2 of each system, and the 95 % interval of each rival's difference unless the lines are too few."""

    label: str
    lines: int
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float] | None]


@dataclass(frozen=True)
class Comparison:
    """All there is to say; the first system is the baseline."""

    lines: int
    references: int
    resampling: Resampling
    metrics: dict[str, str]
    """sacreBLEU's names of the metrics, by ours."""
    signatures: dict[str, dict[str, str]]
    """Of both tests, for each metric."""
    systems: list[System]
    rivals: list[Rival]
    buckets: dict[str, list[Bucket]]
    warnings: list[str]

    def as_json(self) -> dict[str, Any]:
        """The object that `mt compare --json` writes, numbers unrounded."""
        found = asdict(self) | {"baseline": self.systems[0].name}
        for rival, own in zip(found["rivals"], self.rivals, strict=True):
            for key, one in own.differences.items():
                rival["differences"][key]["significant"] = one.significant
        return found


def compare(
    outputs: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    lang: str | None,
    sources: Sequence[str] | None = None,
    metrics: Sequence[str] = METRICS,
    tokenize: str | None = None,
    lowercase: bool = False,
    resampling: Resampling = USUAL,
    divisions: Iterable[Division] = (),
) -> Comparison:
    """Compare the outputs of two systems or more, by name; the first is the baseline. References and options are those of `score`.

    Raises DataError where there is only one, or line counts differ, and ConfigError for an unknown metric or tokenizer.
    """
    if len(outputs) < 2:
        raise DataError("one system alone cannot be compared: give another")
    for lines in (*outputs.values(), *([sources] if sources is not None else ())):
        check_counts(lines, references)
    names = list(outputs)
    warnings = ["case is ignored: these scores are not comparable with the usual ones (case:lc in the signature)"] if lowercase else []
    measured: dict[str, tuple[Metric, list[Statistics]]] = {}
    for key in dict.fromkeys((*metrics, "chrf")):  # by chrF lines are sorted, asked for or not
        metric, said = build_metric(key, lang=lang, tokenize=tokenize, lowercase=lowercase)
        measured[key] = metric, [segment_statistics(metric, lines, references) for lines in outputs.values()]
        warnings += said
    pairs = {key: paired(*measured[key], resampling) for key in dict.fromkeys(metrics)}
    ngrams: list[Ngrams | None] = (
        [_ngrams(*measured["bleu"], place) for place in range(len(names))] if "bleu" in measured else [None] * len(names)
    )
    chrf, of_lines = measured["chrf"]
    sentences = [[float(chrf._compute_score_from_stats(line).score) for line in one] for one in of_lines]
    systems = [System(name, {key: found[0][place] for key, found in pairs.items()}, ngrams[place]) for place, name in enumerate(names)]
    rivals = []
    for place, name in enumerate(names[1:], start=1):
        ranked = _examples(sources, references, outputs[names[0]], outputs[name], sentences[0], sentences[place])
        split = _split(ngrams[0], ngrams[place])
        counts = _counts(sentences[0], sentences[place], outputs[names[0]], outputs[name])
        rivals.append(Rival(name, {key: found[1][place - 1] for key, found in pairs.items()}, *counts, *split, *ranked))
        if outputs[name] == outputs[names[0]]:
            warnings.append(f"{name} and {names[0]} are the same, line for line: was one file given for the other?")
    everything = useful([*divisions, by_difficulty(np.mean(sentences, axis=0).tolist())])
    return Comparison(
        lines=len(references[0]),
        references=len(references),
        resampling=resampling,
        metrics={key: str(measured[key][0]._aggregate_and_compute(measured[key][1][0]).name) for key in pairs},
        signatures={
            key: {
                "bootstrap": signature(measured[key][0], bs=resampling.samples, seed=resampling.seed),
                "randomisation": signature(measured[key][0], ar=resampling.trials, seed=resampling.seed),
            }
            for key in pairs
        },
        systems=systems,
        rivals=rivals,
        buckets={one.title: _buckets(one, names, chrf, of_lines, resampling) for one in everything},
        warnings=[*dict.fromkeys(warnings), *_doubts(outputs, references, sources)],
    )


def _doubts(outputs: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]], sources: Sequence[str] | None) -> list[str]:
    """Warnings about each output; said once where they hold for all."""
    found = [
        [*about_lines(lines, references), *(about_sources(lines, references, sources) if sources else [])] for lines in outputs.values()
    ]
    common = [text for text in found[0] if all(text in one for one in found)]
    return common + [f"{name}: {text}" for name, one in zip(outputs, found, strict=True) for text in one if text not in common]


def _ngrams(metric: Metric, statistics: Sequence[Statistics], place: int) -> Ngrams:
    """What the BLEU of a system is made of."""
    found = metric._aggregate_and_compute(statistics[place])
    assert isinstance(found, BLEUScore)
    return Ngrams(tuple(map(float, found.precisions)), float(found.bp), int(found.sys_len), int(found.ref_len))


def _split(baseline: Ngrams | None, other: Ngrams | None) -> tuple[float | None, float | None]:
    """A difference of BLEU as a part by precision and a part by brevity.

    BLEU is a product, so its logarithm is a sum: the difference is shared out as that of the logarithms is.
    """
    if baseline is None or other is None or not all((*baseline.precisions, baseline.brevity, *other.precisions, other.brevity)):
        return None, None
    logs = [(sum(map(math.log, one.precisions)) / len(one.precisions), math.log(one.brevity)) for one in (baseline, other)]
    precision, brevity = (theirs - ours for ours, theirs in zip(*logs, strict=True))
    scores = [math.exp(sum(one)) for one in logs]
    per_log = (scores[1] - scores[0]) / (precision + brevity) if abs(precision + brevity) > 1e-12 else scores[0]
    return per_log * precision, per_log * brevity


def _counts(baseline: Sequence[float], other: Sequence[float], ours: Sequence[str], theirs: Sequence[str]) -> tuple[int, int, int, int]:
    """Wins, ties and losses of the other by sentence, and how many are the same text."""
    wins = sum(there > here for here, there in zip(baseline, other, strict=True))
    losses = sum(there < here for here, there in zip(baseline, other, strict=True))
    same = sum(here == there for here, there in zip(ours, theirs, strict=True))
    return wins, len(baseline) - wins - losses, losses, same


def _examples(
    sources: Sequence[str] | None,
    references: Sequence[Sequence[str]],
    ours: Sequence[str],
    theirs: Sequence[str],
    baseline: Sequence[float],
    other: Sequence[float],
) -> tuple[list[Example], list[Example]]:
    """The lines at which the other is most of all better, and worse."""
    order = sorted(range(len(ours)), key=lambda line: baseline[line] - other[line])
    better = [line for line in order[:EXAMPLES] if other[line] > baseline[line]]
    worse = [line for line in order[: -EXAMPLES - 1 : -1] if other[line] < baseline[line]]

    def example(line: int) -> Example:
        texts = tuple(one[line] for one in references)
        return Example(line + 1, sources[line] if sources else None, texts, ours[line], theirs[line], (baseline[line], other[line]))

    return [example(line) for line in better], [example(line) for line in worse]


def _buckets(
    division: Division, names: Sequence[str], chrf: Metric, statistics: Sequence[Statistics], resampling: Resampling
) -> list[Bucket]:
    """Scores and intervals for each bucket of a division."""
    found = []
    for number, label in enumerate(division.labels):
        lines = division.lines(number)
        inside = [[one[line] for line in lines] for one in statistics]
        scores = {name: float(chrf._aggregate_and_compute(one).score) for name, one in zip(names, inside, strict=True)}
        intervals = difference_intervals(chrf, inside, resampling) if len(lines) >= FEWEST else [None] * (len(names) - 1)
        found.append(Bucket(label, len(lines), scores, dict(zip(names[1:], intervals, strict=True))))
    return found
