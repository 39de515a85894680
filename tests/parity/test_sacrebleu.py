"""Scores, signatures, intervals and p-values are those of sacreBLEU's own command line, to all the digits it prints."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mt.evaluate.metrics import build_metric, score, segment_statistics
from mt.evaluate.significance import Resampling, paired, signature

DIGITS = 8
P = re.compile(r"\(p = ([\d.]+)\)")
MEAN = re.compile(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)")
LATIN = [
    "fox",
    "Hügel",
    "tree's",
    "table,",
    "bird",
    "cup;",
    "red-green",
    "U.S.",
    "3,5",
    "(old)",
    "“small”",
    "runs",
    "&",
    "under",
    "%s",
    "naïve",
]
HAN = "今天下雨了你带伞没有我在图书馆里看书，。！ABC"
KANA = "駅の前で友だちを待っています。東京タワー"
HANGUL = ["나는", "도서관에서", "책을", "읽고", "있습니다", "오늘은", "비가", "와요", "우산", "있어요"]


def corpus(alphabet: str | list[str], *, lines: int = 30, references: int = 1) -> tuple[list[str], list[list[str]]]:
    """Hypotheses, and reference sets that differ from them in a quarter of the words or characters."""
    rng = random.Random(7)
    glue = "" if isinstance(alphabet, str) else " "
    hypotheses = [rng.choices(alphabet, k=rng.randint(4, 15)) for _ in range(lines)]
    sets = [
        [glue.join(unit if rng.random() < 0.75 else rng.choice(alphabet) for unit in line) + "." for line in hypotheses]
        for _ in range(references)
    ]
    return [glue.join(line) + "." for line in hypotheses], sets


def sacrebleu(folder: Path, systems: list[list[str]], references: list[list[str]], *options: str, **environment: str) -> str:
    """What `sacrebleu REF… -i HYP… -w 8` prints."""
    names = [f"ref{n}.txt" for n in range(len(references))] + [f"hyp{n}.txt" for n in range(len(systems))]
    for name, lines in zip(names, [*references, *systems], strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    files = [*names[: len(references)], "-i", *names[len(references) :]]
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *files, "-w", str(DIGITS), *options],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={**{key: value for key, value in os.environ.items() if not key.startswith("SACREBLEU")}, **environment},
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("alphabet", "references", "ours", "theirs"),
    [
        (LATIN, 1, {"lang": "en"}, []),
        (LATIN, 3, {"lang": None}, []),
        (LATIN, 1, {"lang": "de", "lowercase": True}, ["--lowercase", "--chrf-lowercase"]),
        (LATIN, 2, {"lang": "de", "metrics": ("bleu", "chrf++", "ter")}, ["--chrf-word-order", "2"]),
        (HAN, 1, {"lang": "zh"}, ["--tokenize", "zh"]),
        (HAN, 2, {"lang": "th"}, ["--tokenize", "char"]),
        (KANA, 1, {"lang": "ja"}, ["--tokenize", "ja-mecab"]),
        (HANGUL, 1, {"lang": "ko"}, ["--tokenize", "ko-mecab"]),
    ],
    ids=["default", "three references", "lower case", "chrF++", "zh", "two references by characters", "ja", "ko"],
)
def test_scores_signatures_and_intervals_are_those_of_the_command_line(
    alphabet: str | list[str], references: int, ours: dict[str, Any], theirs: list[str], tmp_path: Path
) -> None:
    hypotheses, sets = corpus(alphabet, references=references)
    mine = score(hypotheses, sets, intervals=True, **ours).metrics
    yours = json.loads(sacrebleu(tmp_path, [hypotheses], sets, "-m", "bleu", "chrf", "ter", "--confidence", *theirs))
    for one, other in zip(mine, yours, strict=True):
        assert (one.name, one.signature) == (other["name"], other["signature"])
        assert f"{one.score:.{DIGITS}f}" == f"{other['score']:.{DIGITS}f}"
        assert one.interval == pytest.approx(
            (other["confidence_mean"] - other["confidence_var"], other["confidence_mean"] + other["confidence_var"]), abs=2 * 10**-DIGITS
        )


def test_intervals_are_those_of_the_library_to_the_last_bit() -> None:
    from sacrebleu.metrics import BLEU, CHRF, TER  # type: ignore[attr-defined]

    hypotheses, sets = corpus(LATIN, lines=101, references=2)
    for one, metric in zip(score(hypotheses, sets, lang="en", intervals=True).metrics, (BLEU(), CHRF(), TER()), strict=True):
        theirs = metric.corpus_score(hypotheses, sets, n_bootstrap=1000)
        mean, half_width = float(theirs._mean), float(theirs._ci)
        assert (one.score, one.interval) == (theirs.score, (mean - half_width, mean + half_width))


def systems(*, lines: int, references: int) -> tuple[list[list[str]], list[list[str]]]:
    """Three systems, each worse than the one before, and references."""
    rng = random.Random(3)
    first, sets = corpus(LATIN, lines=lines, references=references)
    second, third = ([" ".join(w for w in line.split() if rng.random() < kept) for line in first] for kept in (0.97, 0.9))
    return [first, second, third], sets


@pytest.mark.parametrize(
    ("references", "options", "metrics"),
    [(1, [], ["bleu", "chrf", "ter"]), (2, ["--chrf-word-order", "2"], ["bleu", "chrf++", "ter"])],
    ids=["BLEU, chrF, TER", "chrF++, two references"],
)
def test_p_values_and_intervals_of_pairs_are_those_of_the_command_line(
    references: int, options: list[str], metrics: list[str], tmp_path: Path
) -> None:
    outputs, sets = systems(lines=53, references=references)
    test = ["-m", "bleu", "chrf", "ter", *options, "--paired-bs-n", "300", "--paired-ar-n", "1000", "-f", "text"]
    by_bootstrap, by_randomisation = (
        sacrebleu(tmp_path, outputs, sets, kind, *test, SACREBLEU_SEED="77") for kind in ("--paired-bs", "--paired-ar")
    )
    ours = []
    for key in metrics:
        metric, _ = build_metric(key, lang="en", tokenize=None, lowercase=False)
        ours.append(
            paired(metric, [segment_statistics(metric, output, sets) for output in outputs], Resampling(samples=300, trials=1000, seed=77))
        )
        name = f"- {metric.corpus_score(outputs[0], sets).name:<10}"
        assert f"{name} {signature(metric, bs=300, seed=77)}\n" in by_bootstrap
        assert f"{name} {signature(metric, ar=1000, seed=77)}\n" in by_randomisation
    estimates = [one for row in zip(*(estimates for estimates, _ in ours), strict=True) for one in row]
    differences = [one for row in zip(*(differences for _, differences in ours), strict=True) for one in row]
    assert [f"{one.p_bootstrap:.4f}" for one in differences] == P.findall(by_bootstrap)
    assert [f"{one.p_randomisation:.4f}" for one in differences] == P.findall(by_randomisation)
    for one, printed in zip(estimates, MEAN.findall(by_bootstrap), strict=True):
        low, high = one.interval
        assert tuple(f"{value:.{DIGITS}f}" for value in (one.score, (low + high) / 2, (high - low) / 2)) == printed


def test_as_many_samples_as_sacrebleu_takes_if_none_are_asked_for(tmp_path: Path) -> None:
    outputs, sets = systems(lines=20, references=1)
    metric, _ = build_metric("bleu", lang="en", tokenize=None, lowercase=False)
    _, (second, third) = paired(metric, [segment_statistics(metric, output, sets) for output in outputs])
    for kind, ours in ("bs", (second.p_bootstrap, third.p_bootstrap)), ("ar", (second.p_randomisation, third.p_randomisation)):
        theirs = json.loads(sacrebleu(tmp_path, outputs, sets, f"--paired-{kind}", "-f", "json"))
        assert list(ours) == [one["BLEU"]["p_value"] for one in theirs[1:]]
