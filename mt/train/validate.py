"""Validation: the loss on the dev set, and BLEU and chrF of its real, decoded, detokenised translations, as `mt eval` computes them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch

from mt.clean.filters import drop_reason
from mt.config.directions import tag_of, target_of
from mt.config.schema import Config, Corpus
from mt.data.batches import Batch, collate
from mt.data.plan import cut, sizes
from mt.data.store import Example
from mt.evaluate.metrics import score
from mt.focus import Attention, attention_of
from mt.formats.pairs import Pair
from mt.model.loss import LossOfBatch
from mt.model.packed import packed
from mt.tokenizer.spm import Tokenizers
from mt.train.events import Sample
from mt.translator import Translator


@dataclass(frozen=True)
class Validation:
    """What one validation found."""

    loss: float
    tokens: int
    scores: dict[str, float]
    signatures: dict[str, str]
    samples: list[Sample]
    seconds: float
    to: str | None = None
    """The language that was asked for with a tag, if there are tags."""
    sets: dict[str, dict[str, float]] = field(default_factory=dict)
    """The scores of each dev set, where there are several: then those above are their means."""
    attention: list[Attention] = field(default_factory=list)
    """What the model looked at for the first samples."""


class Validator:
    """Knows a dev set, and measures a model on it."""

    def __init__(
        self, pairs: Sequence[Pair], corpus: Corpus, tokenizers: Tokenizers, *, config: Config, device: torch.device, name: str
    ) -> None:
        """The first `max_lines` pairs count. The loss leaves out those with an empty side (`report` says how many), BLEU and chrF none."""
        cfg = config.train.validation
        self.pairs = list(pairs[: cfg.max_lines])
        whole = [pair for pair in self.pairs if not drop_reason(pair)]
        self.config, self.tokenizers, self.device = config, tokenizers, device
        self.to, self.lang = tag_of(config, corpus), target_of(config, corpus)
        self.report = f"{name}: {len(self.pairs)} of {len(pairs)} pairs" + (
            f", the loss without {len(self.pairs) - len(whole)} that have an empty side" if len(whole) < len(self.pairs) else ""
        )
        prefix = () if self.to is None else (tokenizers.src.tag(self.to),)
        self.batches = list(dev_batches(whole, tokenizers, budget=config.train.budget, prefix=prefix))

    def ids(self, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
        """The pieces of both sides."""
        src, tgt = self.tokenizers
        return src.encode_batch([pair.src for pair in pairs]), tgt.encode_batch([pair.tgt for pair in pairs])

    def __call__(self, loss: LossOfBatch) -> Validation:
        """Measure the model as it is now; it is in training mode again afterwards."""
        began, cfg = time.perf_counter(), self.config.train.validation
        loss.eval()
        with torch.inference_mode():
            sums = [loss(batch.src_BS, batch.inputs_BT, batch.gold_BT) for batch in (b.to(self.device) for b in self.batches)]
        tokens = sum(batch.tokens for batch in self.batches)
        per_token = sum(total.item() for total, _ in sums) / tokens
        translator = Translator(loss.model, self.tokenizers, config=self.config, device=self.device)
        with packed(loss.model):
            found = translator.translate([pair.src for pair in self.pairs], to=self.to, beam=cfg.beam)
        translations = [one.text for one in found]
        attention = attention_of(translator, found[: min(cfg.attention, cfg.samples)], to=self.to)
        loss.train()
        scores = score(translations, [[pair.tgt for pair in self.pairs]], metrics=("bleu", "chrf"), lang=self.lang)
        samples = [Sample(pair.src, pair.tgt, text, self.to) for pair, text in zip(self.pairs, translations, strict=True)]
        return Validation(
            loss=per_token,
            tokens=tokens,
            scores={"loss": per_token, "bleu": scores["bleu"].score, "chrf": scores["chrf"].score},
            signatures={metric: scores[metric].signature for metric in ("bleu", "chrf")},
            samples=samples[: cfg.samples],
            seconds=time.perf_counter() - began,
            to=self.to,
            attention=attention,
        )


class Validators:
    """All dev sets of a run: measured one after the other, judged together."""

    def __init__(self, each: dict[str, Validator]) -> None:
        self.each = each
        self.pairs = [pair for one in each.values() for pair in one.pairs]
        self.report = "; ".join(one.report for one in each.values())

    @classmethod
    def build(cls, dev: dict[str, list[Pair]], tokenizers: Tokenizers, *, config: Config, device: torch.device) -> Self:
        """Of the pairs of each set."""
        sets = config.data.dev_sets()
        return cls({name: Validator(dev[name], sets[name], tokenizers, config=config, device=device, name=name) for name in sets})

    def __call__(self, loss: LossOfBatch) -> Validation:
        """Measure the model as it is now; of several sets each counts the same, however long it is."""
        found = {name: validator(loss) for name, validator in self.each.items()}
        if len(found) == 1:
            return next(iter(found.values()))
        scores = {metric: sum(one.scores[metric] for one in found.values()) / len(found) for metric in ("loss", "bleu", "chrf")}
        return Validation(
            loss=scores["loss"],
            tokens=sum(one.tokens for one in found.values()),
            scores=scores,
            signatures={f"{name} {metric}": text for name, one in found.items() for metric, text in one.signatures.items()},
            samples=[sample for one in found.values() for sample in one.samples],
            seconds=sum(one.seconds for one in found.values()),
            sets={name: one.scores for name, one in found.items()},
            attention=[shown for one in found.values() for shown in one.attention],
        )


def dev_batches(pairs: Sequence[Pair], tokenizers: Tokenizers, *, budget: int, prefix: tuple[int, ...] = ()) -> list[Batch]:
    """Batches of the pairs, sorted by length; `prefix` goes before each source."""
    src_ids = tokenizers.src.encode_batch([pair.src for pair in pairs])
    tgt_ids = tokenizers.tgt.encode_batch([pair.tgt for pair in pairs])
    examples = [Example(*whole, prefix=prefix) for whole in zip(pairs, src_ids, tgt_ids, strict=True)]
    examples.sort(key=lambda example: (len(example.tgt_ids), len(example.src_ids)))
    sizes_N2 = sizes(np.array([(len(example.src_ids), len(example.tgt_ids)) for example in examples]), before=len(prefix))
    return [collate([examples[i] for i in indices], tokenizers) for indices in cut(np.arange(len(examples)), sizes_N2, budget=budget)]


def better(metric: str, new: float, best: float | None) -> bool:
    """Whether a score beats the best so far: higher for bleu and chrf, lower for loss; not a number never does."""
    if math.isnan(new):
        return False
    return best is None or (new < best if metric == "loss" else new > best)
