"""CTranslate2, by itself and as an engine of mt, against mt's own searches: every kind of model, greedy search and a beam of 4."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from mt.decode.ct2_engine import Ct2Engine
from mt.decode.engine import Beam, ModelStep
from mt.export.ct2 import export
from mt.export.proof import first_step
from mt.model.cache import DecoderCache
from mt.search.beam import beam_search
from mt.search.step import Step, Suppress
from mt.translator import Translator
from tests import toy
from tests.translating import taught_run

pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")

MODELS = {
    "pre-norm, untied": ("model.tied_embeddings=false",),
    "pre-norm, tied, deep encoder and shallow decoder": ("model.tied_embeddings=true", "model.encoder_layers=3"),
    "post-norm, tied": ("model.norm=post", "model.tied_embeddings=true"),
    "separate vocabularies": ("tokenizer.joint=false", "model.decoder_layers=2"),
    "rope, swiglu, rms": ("model.positions=rope", "model.activation=swiglu", "model.norm_kind=rms"),
}
LINES = 60
CPU = torch.device("cpu")


class Pair(NamedTuple):
    """One model, run by torch and by CTranslate2."""

    native: Translator
    exported: Translator


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("taught")
    run = taught_run(folder, *request.param)
    export(run.path, folder / "exported")
    return Pair(Translator.load(run.path, device="cpu", precision="fp32"), Translator.load(folder / "exported", device="cpu"))


def test_first_steps_are_as_probable(pair: Pair) -> None:
    lines = toy.sentences(32, seed=7)
    engine = pair.exported.engine
    assert isinstance(engine, Ct2Engine)
    ours, theirs = first_step(pair.native, lines), engine.first_step([parts[0] for parts in pair.exported.encoded(lines)])
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 1e-4
    assert np.abs(np.diff(ours, axis=0)).max() > 1e-2, "the lines begin alike, so that nothing was compared"


@pytest.mark.parametrize("width", [1, 4])
def test_the_same_translations(pair: Pair, width: int) -> None:
    lines = toy.sentences(LINES, seed=5)
    ours, theirs = (one.translate(lines, beam=width) for one in pair)
    same = sum(one.text == other.text for one, other in zip(ours, theirs, strict=True))
    assert len({one.text for one in ours}) > LINES / 2
    assert same >= LINES - (0 if width == 1 else 4), "but for beams in which the softmax decides who lives on"
    for one, other in zip(ours, theirs, strict=True):
        (_, mine), (_, its) = one.hypotheses[0], other.hypotheses[0]
        if mine.ids == its.ids:
            assert its.log_prob == pytest.approx(mine.log_prob, abs=1e-4)
            assert its.score == pytest.approx(mine.score, abs=1e-4)
            assert its.tokens == pytest.approx(mine.tokens, abs=1e-4)
            assert one.flags == other.flags


class Renormalized(Step[DecoderCache]):
    """As CTranslate2 searches: what is never given has no share of the probabilities."""

    def __init__(self, translator: Translator) -> None:
        tgt = translator.tokenizers.tgt
        self.step = Suppress(ModelStep(translator.model, CPU), (tgt.pad, tgt.bos, tgt.unk))

    def __call__(self, last_R: Tensor, state: DecoderCache) -> tuple[Tensor, DecoderCache]:
        logp_RV, state = self.step(last_R, state)
        return torch.log_softmax(logp_RV, dim=-1), state

    def reorder(self, state: DecoderCache, rows_R: Tensor) -> DecoderCache:
        return self.step.reorder(state, rows_R)


def test_a_beam_is_the_same_but_for_the_softmax(pair: Pair) -> None:
    src, tgt = pair.native.tokenizers
    sources = src.encode_batch(toy.sentences(LINES, seed=5))
    limits = [40] * LINES
    with torch.inference_mode():
        begun = ModelStep(pair.native.model, CPU).start([[*ids, src.eos] for ids in sources], pad=src.pad)
        ours = beam_search(Renormalized(pair.native), begun, bos=tgt.bos, eos=tgt.eos, limits=limits, width=4)
    theirs = pair.exported.engine.search(sources, Beam(4), limits=limits)
    assert sum(one[0].ids == other[0].ids for one, other in zip(ours, theirs, strict=True)) >= LINES - 1, "but for a near tie"


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_the_same_n_best(pair: Pair, alpha: float) -> None:
    settings = Beam(4, length_penalty=alpha, n_best=4)
    ours, theirs = (one.translate(toy.sentences(LINES, seed=5), settings=settings) for one in pair)
    found = [[[text for text, _ in one.hypotheses] for one in side] for side in (ours, theirs)]
    assert sum(one == other for one, other in zip(*found, strict=True)) >= 0.8 * LINES
    for one in theirs:
        assert len({tuple(hypothesis.ids) for _, hypothesis in one.hypotheses}) == 4
        assert all(better.score >= worse.score for (_, better), (_, worse) in pairwise(one.hypotheses))


def test_an_export_is_found_whole(pair: Pair, tmp_path: Path) -> None:
    engine = pair.exported.engine
    assert isinstance(engine, Ct2Engine)
    assert pair.exported.precision == "float32"
    assert list(tmp_path.iterdir()) == []
    assert {"model.bin", "mt.json", "mt.yaml"} < {path.name for path in engine.folder.iterdir()}
    assert [one.fingerprint for one in pair.exported.tokenizers] == [one.fingerprint for one in pair.native.tokenizers]
