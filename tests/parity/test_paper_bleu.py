"""The score papers give: that of sacreBLEU's command line for text that somebody else has lower-cased, normalised and tokenised."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REFERENCE = ["Ein Hund, der „Rex“ heißt, läuft.", "Zwei Männer gehen über die Straße.", "Das Kind isst 3,5 Äpfel."]
OUTPUT = ['ein Hund, der "Rex" heißt, rennt.', "Zwei Männer gehen über eine Straße.", "Das Kind isst 3,5 Äpfel !"]
# As tokenizer.perl -l de gives the lower-cased lines: quotation marks straight and escaped, numbers whole.
BY_HAND = {
    "reference": [
        "ein hund , der &quot; rex &quot; heißt , läuft .",
        "zwei männer gehen über die straße .",
        "das kind isst 3,5 äpfel .",
    ],
    "output": ["ein hund , der &quot; rex &quot; heißt , rennt .", "zwei männer gehen über eine straße .", "das kind isst 3,5 äpfel !"],
}


def run(*command: str | Path) -> str:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True).stdout


def test_it_is_sacrebleu_of_the_text_prepared_by_hand(tmp_path: Path) -> None:
    raw = {"reference": REFERENCE, "output": OUTPUT}
    for name in raw:
        (tmp_path / name).write_text("\n".join(raw[name]) + "\n", encoding="utf-8")
        (tmp_path / f"{name}.tok").write_text("\n".join(BY_HAND[name]) + "\n", encoding="utf-8")
    found = run("scripts/paper_bleu.py", tmp_path / "output", tmp_path / "reference")
    options = ["--tokenize", "none", "--force", "--score-only", "--width", "2"]
    expected = run("-m", "sacrebleu", tmp_path / "reference.tok", "-i", tmp_path / "output.tok", *options)
    assert found.split()[2] == expected.strip()
    assert 0 < float(expected) < 100
    assert "tok:none" in found
