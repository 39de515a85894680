"""Validation measures what the model is: the loss for each token of the dev set, and the scores of its real translations."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from mt.config.schema import Config
from mt.evaluate.metrics import score
from mt.formats.pairs import Pair
from mt.model.loss import LossOfBatch
from mt.model.transformer import Transformer
from mt.train.validate import Validator, Validators, better, dev_batches
from mt.translator import Translator
from tests import toy
from tests.train import tiny


def config(**train: Any) -> Config:
    corpus = {"src": "a", "tgt": "b"}
    return Config.model_validate({"data": {"train": [corpus], "dev": corpus}, "train": {"batch_tokens": 60, **train}})


def pairs(count: int = 6) -> list[Pair]:
    return [Pair(source, toy.translation(source), f"valid.src:{n}") for n, source in enumerate(toy.sentences(count, seed=5, longest=4), 1)]


def loss_of_batch(*, dropout: float = 0.0) -> LossOfBatch:
    torch.manual_seed(1)
    size = toy.tokenizers().src.size
    model = Transformer(src_vocab=size, tgt_vocab=size, dim=8, ffn=16, heads=2, encoder_layers=1, decoder_layers=1, dropout=dropout)
    return LossOfBatch(model, smoothing=0.0, pad=0).train()


def validator(dev: list[Pair], settings: Config | None = None) -> Validator:
    settings = settings or config()
    (corpus,) = settings.data.dev_sets().values()
    return Validator(dev, corpus, toy.tokenizers(), config=settings, device=tiny.CPU, name="valid.src")


def one_by_one(model: Transformer, dev: list[Pair]) -> tuple[float, int]:
    """Sum of the cross-entropy and number of tokens, a sentence at a time."""
    tokenizer, total, tokens = toy.tokenizers().src, 0.0, 0
    for pair in dev:
        src = torch.tensor([[*tokenizer.encode(pair.src), 3]])
        gold = torch.tensor([*tokenizer.encode(pair.tgt), 3])
        inputs = torch.tensor([[2, *tokenizer.encode(pair.tgt)]])
        allowed = torch.ones_like(src, dtype=torch.bool)
        with torch.no_grad():
            logits = model.output(model.decode(model.encode(src, allowed), allowed, inputs))[0]
        total += float(F.cross_entropy(logits, gold, reduction="sum"))
        tokens += len(gold)
    return total, tokens


@pytest.mark.parametrize(
    ("metric", "scores", "expected"),
    [
        ("bleu", [2.0, 6.0, 4.0, 6.0], [True, True, False, False]),
        ("chrf", [2.0, 6.0, 4.0, 6.0], [True, True, False, False]),
        ("loss", [5.0, 3.0, 4.0, 3.0], [True, True, False, False]),
        ("loss", [math.nan, 3.0, math.nan, math.inf], [False, True, False, False]),
        ("bleu", [math.nan, 0.0], [False, True]),
    ],
)
def test_better_goes_up_for_scores_and_down_for_the_loss(metric: str, scores: list[float], expected: list[bool]) -> None:
    best: float | None = None
    found = []
    for new in scores:
        found.append(better(metric, new, best))
        best = new if found[-1] else best
    assert found == expected


def test_dev_batches_hold_each_pair_once_within_the_budget() -> None:
    dev = pairs(20)
    batches = dev_batches(dev, toy.tokenizers(), budget=60)
    assert sorted(origin for batch in batches for origin in batch.origins) == sorted(pair.origin for pair in dev)
    assert len(batches) > 3
    for batch in batches:
        assert max(batch.src_BS.numel(), batch.gold_BT.numel()) <= 60 or len(batch.origins) == 1


def test_the_loss_is_that_of_the_sentences_one_by_one() -> None:
    loss, dev = loss_of_batch(dropout=0.5), pairs()
    found = validator(dev)(loss)
    total, tokens = one_by_one(loss.model.eval(), dev)
    assert found.tokens == tokens
    assert found.loss == found.scores["loss"] == pytest.approx(total / tokens, rel=1e-5)


def test_the_loss_is_without_label_smoothing() -> None:
    dev, plain, smoothed = pairs(), loss_of_batch(), loss_of_batch()
    smoothed.smoothing = 0.1
    assert validator(dev)(smoothed).loss == pytest.approx(validator(dev)(plain).loss, rel=1e-6)
    assert smoothed.smoothing == 0.1


def test_the_scores_are_those_of_real_translations() -> None:
    loss, dev = loss_of_batch(), pairs()
    found = validator(dev)(loss)
    translator = Translator(loss.model.eval(), toy.tokenizers(), config=config(), device=tiny.CPU)
    translations = [one.text for one in translator.translate([pair.src for pair in dev], beam=1)]
    expected = score(translations, [[pair.tgt for pair in dev]], metrics=("bleu", "chrf"), lang=None)
    for metric in ("bleu", "chrf"):
        assert found.scores[metric] == expected[metric].score
        assert found.signatures[metric] == expected[metric].signature
    assert [(one.source, one.reference) for one in found.samples] == [(pair.src, pair.tgt) for pair in dev[:5]]
    assert [one.translation for one in found.samples] == translations[:5]


def test_several_dev_sets_are_measured_each_and_judged_by_their_means() -> None:
    """However long they are."""
    loss, dev = loss_of_batch(), {"long": pairs(6), "short": pairs(2)[1:]}
    data = {"train": [{"src": "a", "tgt": "b"}], "dev": {name: {"src": name, "tgt": "b"} for name in dev}}
    settings = Config.model_validate({"data": data, "train": {"batch_tokens": 60, "validation": {"samples": 2}}})
    together = Validators.build(dev, toy.tokenizers(), config=settings, device=tiny.CPU)
    found, alone = together(loss), {name: validator(some)(loss) for name, some in dev.items()}
    assert found.sets == {name: one.scores for name, one in alone.items()}
    for metric in ("loss", "bleu", "chrf"):
        assert found.scores[metric] == pytest.approx((alone["long"].scores[metric] + alone["short"].scores[metric]) / 2)
    assert (found.loss, found.tokens) == (found.scores["loss"], alone["long"].tokens + alone["short"].tokens)
    assert set(found.signatures) == {"long bleu", "long chrf", "short bleu", "short chrf"}
    assert [one.source for one in found.samples] == [pair.src for pair in (*dev["long"][:2], *dev["short"])]
    assert (len(together.pairs), together.report) == (7, "long: 6 of 6 pairs; short: 1 of 1 pairs")


def test_one_dev_set_is_its_own_mean() -> None:
    loss, one = loss_of_batch(), validator(pairs())
    found, alone = Validators({"x": one})(loss), one(loss)
    assert (found.scores, found.signatures, found.sets) == (alone.scores, alone.signatures, {})


def test_the_model_trains_on_as_before() -> None:
    loss = loss_of_batch(dropout=0.3)
    generator = torch.get_rng_state()
    validator(pairs(2))(loss)
    assert all(module.training for module in loss.modules())
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(p.grad is None for p in loss.parameters())


def test_only_the_first_lines_count() -> None:
    dev = pairs(6)
    found = validator(dev, config(validation={"max_lines": 2, "samples": 1}))
    assert found.pairs == dev[:2]
    assert found.report == "valid.src: 2 of 6 pairs"
    assert len(found(loss_of_batch()).samples) == 1


def test_an_empty_side_is_left_out_of_the_loss_but_not_of_the_scores() -> None:
    dev = pairs(3)
    dev[1] = dev[1]._replace(tgt=" ")
    found = validator(dev)
    assert found.report == "valid.src: 3 of 3 pairs, the loss without 1 that have an empty side"
    assert found.pairs == dev
    loss = loss_of_batch()
    assert found(loss).loss == pytest.approx(validator([dev[0], dev[2]])(loss).loss, rel=1e-6)


def test_a_line_longer_than_max_pieces_does_not_stop_validation() -> None:
    long = "bage depe fide gome " * 4 + "."
    dev = [*pairs(2), Pair(long, toy.translation(long), "valid.src:3")]
    settings = config()
    settings = settings.model_copy(update={"data": settings.data.model_copy(update={"max_pieces": 10})})
    assert math.isfinite(validator(dev, settings)(loss_of_batch()).loss)
