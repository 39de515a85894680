"""Corpora for the doctor: good ones of any size, whose sides are as long as each other's, to be made ill in one way at a time."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from mt.config.load import load
from mt.doctor.doctor import Doctor
from mt.doctor.findings import Diagnosis, Finding

LEXICON = re.findall(
    r"(\w+)/(\w+)",
    """
the/der old/alte river/fluss walks/geht bread/brot into/in green/grünen garden/garten stones/steine winter/winter
letter/brief slowly/langsam carries/trägt morning/morgen window/fenster under/unter bright/hellem harbour/hafen
music/musik table/tisch
""",
)
START = "Yesterday", "Gestern"


def pairs(count: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """Different pairs of sentences of 4 to 14 words, with a capital and a full stop, each with a number on both sides."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        words = rng.choices(LEXICON, k=rng.randint(3, 13))
        src, tgt = (" ".join((start, *(word[side] for word in words), f"{seed}{number:06d}.")) for side, start in enumerate(START))
        found.append((src, tgt))
    return found


def write(folder: Path, name: str, lines: Sequence[tuple[str | bytes, str | bytes]]) -> str:
    """Two files of these lines, name.en and name.de; what a config says to read them."""
    for side, suffix in enumerate(("en", "de")):
        (folder / f"{name}.{suffix}").write_bytes(b"".join(_bytes(line[side]) + b"\n" for line in lines))
    return f"{{src: {name}.en, tgt: {name}.de}}"


def _bytes(line: str | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.encode()


def config(folder: Path, *, train: str, dev: str = "none", test: str = "{}", more: str = "") -> Path:
    """A config file of such corpora, with a small vocabulary."""
    path = folder / "x.yaml"
    path.write_text(
        f"data:\n  train: [{train}]\n  dev: {dev}\n  test: {test}\n{more}tokenizer: {{vocab_size: 400}}\n", encoding="utf-8", newline="\n"
    )
    return path


def diagnosis(path: Path, *overrides: str) -> Diagnosis:
    """What the doctor says of a config."""
    return Doctor(load(path, overrides).config).examine()


def examine(folder: Path, lines: Sequence[tuple[str | bytes, str | bytes]], *overrides: str) -> Diagnosis:
    """What the doctor says of one training corpus, called train.en."""
    return diagnosis(config(folder, train=write(folder, "train", lines)), *overrides)


def of_kind(found: Diagnosis, kind: str) -> list[Finding]:
    """The findings of a kind."""
    return [finding for finding in found.findings if finding.kind == kind]


def places(findings: Iterable[Finding]) -> list[str]:
    """Where their examples are."""
    return [example["origin"] for finding in findings for example in finding.examples]
