"""Many to many from one config: two made-up languages and back, and only the tag says which way."""

from __future__ import annotations

import json

import pytest

from mt.config.load import load
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.runs import train

WORDS = list(toy.lexicon(12))
FRENCH = {word: other[::-1] for word, other in toy.lexicon(12).items()} | {".": "."}
"""Of another language: no word of it is in the first."""

CONFIG = """\
data:
  train:
  - {src: ende.en, tgt: ende.de}
  - {src: enfr.en, tgt: enfr.fr}
  - {src: ende.de, tgt: ende.en, weight: 0.5}
  dev:
    french: {src: dev.en, tgt: dev.fr}
    back: {src: dev.de, tgt: dev.en}
  test:
    german: {src: dev.en, tgt: dev.de}
    french: {src: dev.en, tgt: dev.fr}
    back: {src: dev.de, tgt: dev.en}
tokenizer: {vocab_size: 200, byte_fallback: false}
model: {dim: 64, ffn: 128, heads: 4, encoder_layers: 2, decoder_layers: 2, dropout: 0.0}
train:
  max_updates: 400
  batch_tokens: 640
  optimizer: {lr: 4e-3}
  schedule: {kind: cosine, warmup: 50}
  precision: fp32
  validation: {every: 200}
"""


def in_french(sentence: str) -> str:
    return " ".join(FRENCH[word] for word in sentence.split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    folder = tmp_path_factory.mktemp("many")
    for name, count, seed in ("ende", 2000, 1), ("enfr", 2000, 2), ("dev", 30, 3):
        sources = [line for line in toy.sentences(12 * count, seed=seed, shortest=1, longest=5) if set(line.split()) <= {*WORDS, "."}][
            :count
        ]
        for lang, way in ("en", str), ("de", toy.translation), ("fr", in_french):
            toy.write_lines(folder / f"{name}.{lang}", map(way, sources))
    (folder / "many.yaml").write_text(CONFIG, encoding="utf-8", newline="\n")
    done = train(load(folder / "many.yaml", [f"run_dir={folder / 'run'}"]).config)
    assert (done.code, done.lines[-1]) == (0, f"translate with: mt translate --model {folder / 'run'} --to LANG --input FILE")
    return RunDir(folder / "run")


@pytest.mark.parametrize(("src", "to"), [("en", "de"), ("en", "fr"), ("de", "en")])
def test_the_tag_decides_the_output(run: RunDir, src: str, to: str) -> None:
    lines, expected = (run.path.with_name(f"dev.{lang}").read_text(encoding="utf-8").splitlines() for lang in (src, to))
    found = [one.text for one in Translator.load(run.path).translate(lines, to=to)]
    right = sum(one == other for one, other in zip(found, expected, strict=True))
    assert right >= 0.9 * len(lines), list(zip(found, expected, strict=True))[:5]


def test_validation_and_test_sets_have_their_own_tags(run: RunDir) -> None:
    events = [json.loads(line) for line in run.journal.read_text(encoding="utf-8").splitlines()]
    validated = [event for event in events if event["event"] == "validated"]
    assert validated[-1]["sets"].keys() == {"french", "back"}
    assert min(scores["bleu"] for scores in validated[-1]["sets"].values()) > 80
    assert validated[-1]["scores"]["bleu"] == pytest.approx(sum(scores["bleu"] for scores in validated[-1]["sets"].values()) / 2)
    reports = json.loads((run.reports / "test.json").read_text(encoding="utf-8"))
    assert set(reports) == {"german", "french", "back"}
    assert min(report["metrics"][0]["score"] for report in reports.values()) > 80
