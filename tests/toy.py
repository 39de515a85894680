"""A toy language pair whose every right translation is known: invented words, one to one, in order; the full stop stays."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mt.config.load import load
from mt.config.schema import Config, TokenizerConfig
from mt.tokenizer.fit import fit
from mt.tokenizer.spm import Tokenizer, Tokenizers

CONSONANTS, VOWELS = "bdfgklmnprst", "aeiou"

TINY = (
    *("model.dim=16", "model.ffn=32", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1", "train.batch_tokens=200"),
    *("train.report=false", "train.validation.attention=0"),
)
"""Overrides for a model too small to learn anything, quick to train, and without pictures."""


def lexicon(words: int = 24) -> dict[str, str]:
    """So many source words (60 at most) with their translation; the sides share letters and no word."""

    def c(i: int) -> str:
        return CONSONANTS[i % 12]

    def v(i: int) -> str:
        return VOWELS[i % 5]

    return {
        c(i) + v(i) + c(5 * i + 3) + v(i // 5 + 1): c(7 * i + 1) + v(3 * i + 2) + "rlns"[i % 4] + c(i + 4) + v(i) + "nrtl"[i // 2 % 4]
        for i in range(words)
    }


def translation(sentence: str) -> str:
    """The right one."""
    words = lexicon() | {".": "."}
    return " ".join(words[word] for word in sentence.split())


def sentences(count: int, *, seed: int = 0, shortest: int = 3, longest: int = 8) -> list[str]:
    """Random source sentences of 3 to 8 words and a full stop."""
    rng, words = random.Random(seed), list(lexicon())
    return [" ".join([*rng.choices(words, k=rng.randint(shortest, longest)), "."]) for _ in range(count)]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """One line each."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def write_corpus(folder: Path, *, train: int = 1000, dev: int = 40, test: int = 41, seed: int = 0) -> None:
    """train.src and train.trg, valid.src and valid.trg, test.src and test.trg, with so many pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, (name, count) in enumerate({"train": train, "valid": dev, "test": test}.items()):
        sources = sentences(count, seed=3 * seed + part)
        write_lines(folder / f"{name}.src", sources)
        write_lines(folder / f"{name}.trg", map(translation, sources))


def config_text(*, train: str = "{src: train.src, tgt: train.trg}", dev: str = "{src: valid.src, tgt: valid.trg}") -> str:
    """Settings of a model that learns the toy language in about 200 updates; corpora are relative to the file. Change others with --set."""
    return f"""\
data:
  train: [{train}]
  dev: {dev}
tokenizer: {{vocab_size: 120}}
model: {{dim: 64, ffn: 128, heads: 4, encoder_layers: 2, decoder_layers: 2, dropout: 0.0}}
train:
  max_updates: 200
  batch_tokens: 640
  optimizer: {{lr: 2e-3}}
  schedule: {{warmup: 50}}
  precision: fp32
  validation: {{every: 100, attention: 0}}
  report: false
"""


def config_file(folder: Path) -> Path:
    """Write the settings beside the corpus, as toy.yaml."""
    path = folder / "toy.yaml"
    path.write_text(config_text(), encoding="utf-8", newline="\n")
    return path


def config(folder: Path, *overrides: str) -> Config:
    """The settings with some changed, as in `train.max_updates=20`; the run is kept in `run` beside the corpus."""
    return load(config_file(folder), [f"run_dir={folder / 'run'}", *overrides]).config


@cache
def tokenizers(*, joint: bool = True) -> Tokenizers:
    """BPE of 120 pieces for the toy language: one for both sides, or one each."""
    pairs = [(source, translation(source)) for source in sentences(300)]
    sides = [pairs, pairs] if joint else [[(source,) for source, _ in pairs], [(target,) for _, target in pairs]]
    models = []
    for texts in sides[joint:]:
        with TemporaryDirectory() as folder:
            path = Path(folder, "tokenizer.model")
            fit(texts, path, TokenizerConfig(vocab_size=120), seed=1)
            models.append(Tokenizer.load(path))
    return Tokenizers(models[0], models[-1])
