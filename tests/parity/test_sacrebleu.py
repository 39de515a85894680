"""Scores, signatures and intervals are those of sacreBLEU's own command line, to all the digits it prints."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mt.evaluate.metrics import score

DIGITS = 8
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


def sacrebleu(folder: Path, hypotheses: list[str], references: list[list[str]], *options: str) -> list[dict[str, Any]]:
    """What `sacrebleu REF… -i HYP -m bleu chrf ter --confidence` prints."""
    files = [folder / f"{number}.txt" for number in range(len(references) + 1)]
    for file, lines in zip(files, [hypotheses, *references], strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    paths = [*map(str, files[1:]), "-i", str(files[0])]
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *paths, "-m", "bleu", "chrf", "ter", "--confidence", "-w", str(DIGITS), *options],
        capture_output=True,
        encoding="utf-8",
        env={key: value for key, value in os.environ.items() if not key.startswith("SACREBLEU")},
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("alphabet", "references", "ours", "theirs"),
    [
        (LATIN, 1, {"lang": "en"}, []),
        (LATIN, 3, {"lang": None}, []),
        (LATIN, 1, {"lang": "de", "lowercase": True}, ["--lowercase", "--chrf-lowercase"]),
        (HAN, 1, {"lang": "zh"}, ["--tokenize", "zh"]),
        (HAN, 2, {"lang": "th"}, ["--tokenize", "char"]),
        (KANA, 1, {"lang": "ja"}, ["--tokenize", "ja-mecab"]),
        (HANGUL, 1, {"lang": "ko"}, ["--tokenize", "ko-mecab"]),
    ],
    ids=["default", "three references", "lower case", "zh", "two references by characters", "ja", "ko"],
)
def test_scores_signatures_and_intervals_are_those_of_the_command_line(
    alphabet: str | list[str], references: int, ours: dict[str, Any], theirs: list[str], tmp_path: Path
) -> None:
    hypotheses, sets = corpus(alphabet, references=references)
    mine = score(hypotheses, sets, intervals=True, **ours).metrics
    yours = sacrebleu(tmp_path, hypotheses, sets, *theirs)
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
