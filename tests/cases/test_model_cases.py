"""Trouble cases of the model and its loss: one test for each row, named after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from mt.data.batches import padded
from mt.decode.engine import Beam, Engine
from mt.model.loss import LossOfBatch
from mt.model.transformer import Transformer
from mt.search.step import Hypothesis
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests.model.untrained import BOS, EOS, PAD, UNK, Ids, batch, gradients, lively_transformer, sentences, small_transformer


def loss_and_gradients(model: Transformer, *batches: Ids) -> tuple[list[float], int, dict[str, Tensor]]:
    """The loss of each batch, their tokens together, and the gradients of the sum of losses over all tokens."""
    module = LossOfBatch(model, smoothing=0.1, pad=PAD)
    model.zero_grad()
    found = [module(*ids) for ids in batches]
    tokens = sum(int(count) for _, count in found)
    for total, _ in found:
        (total / max(tokens, 1)).backward()
    return [total.tolist() for total, _ in found], tokens, gradients(model)


def with_empty_row(ids: Ids, *, source_too: bool) -> Ids:
    """One more row, of nothing but padding; or with a source, whose target alone is padding."""
    src_BS = torch.cat([ids.src_BS, torch.full_like(ids.src_BS[:1], PAD) if source_too else ids.src_BS[:1]])
    inputs_BT, gold_BT = (torch.cat([x, torch.full_like(x[:1], PAD)]) for x in (ids.inputs_BT, ids.gold_BT))
    return Ids(src_BS, inputs_BT, gold_BT)


@pytest.mark.parametrize("source_too", [True, False], ids=["no source", "no target"])
@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
def test_41_row_of_padding(pre_norm: bool, source_too: bool) -> None:
    model = small_transformer(pre_norm=pre_norm)
    first = batch(sentences(4), sentences(3, seed=1))
    alone, tokens, expected = loss_and_gradients(model, first)
    both, tokens_of_both, found = loss_and_gradients(model, with_empty_row(first, source_too=source_too))
    assert math.isfinite(alone[0])
    assert both == pytest.approx(alone, abs=1e-12)
    assert tokens_of_both == tokens == 4
    torch.testing.assert_close(found, expected)  # NaN equals nothing, so they are finite too


@pytest.mark.parametrize("source_too", [True, False], ids=["no source", "no target"])
def test_41_batch_without_target(source_too: bool) -> None:
    model = small_transformer()
    nothing = Ids(*(x[1:] for x in with_empty_row(batch(sentences(4), sentences(3, seed=1)), source_too=source_too)))
    losses, tokens, found = loss_and_gradients(model, nothing)
    assert (losses, tokens) == ([0.0], 0)
    assert all((grad == 0).all() for grad in found.values())


class Written(nn.Module):
    """In the place of a model: its distributions are those written down."""

    def __init__(self, probs_BTV: Tensor) -> None:
        super().__init__()
        self.logits_BTV = probs_BTV.log()
        self.output = nn.Linear(probs_BTV.size(-1), probs_BTV.size(-1), bias=False)
        nn.init.eye_(self.output.weight)
        self.double()

    def encode(self, src_BS: Tensor, _allowed_BS: Tensor) -> Tensor:
        return src_BS

    def decode(self, _memory_BSD: Tensor, _allowed_BS: Tensor, _inputs_BT: Tensor) -> Tensor:
        return self.logits_BTV


def test_46_label_smoothing() -> None:
    """Padding (class 0) shares in the smoothing as any class does, but padded positions in nothing."""
    rows = [[0.1, 0.2, 0.4, 0.2, 0.1], [0.3, 0.3, 0.2, 0.1, 0.1], [0.05, 0.05, 0.1, 0.7, 0.1]]

    def loss(gold: list[int], *, smoothing: float) -> tuple[float, int]:
        probs_BTV = torch.tensor([rows[:2] + [rows[2]] * (len(gold) - 2)], dtype=torch.float64)
        module = LossOfBatch(cast("Transformer", Written(probs_BTV)), smoothing=smoothing, pad=PAD)
        ids = torch.tensor([gold])
        total, count = module(ids, ids, ids)
        return total.tolist(), int(count)

    for padding in (0, 1, 2, 7):
        total, count = loss([2, 4] + [PAD] * padding, smoothing=0.1)
        assert total == pytest.approx(3.244246, abs=5e-7)
        assert total / count == pytest.approx(1.622123, abs=5e-7)
        plain, count = loss([2, 4] + [PAD] * padding, smoothing=0.0)
        assert plain == pytest.approx(3.218876, abs=5e-7)
        assert count == 2


def test_47_accumulation() -> None:
    """Two pairs of 8 and 1 words, together and one after the other; the third group is a last one that came out shorter."""
    model = small_transformer()
    sources, targets = sentences(8, 1, seed=1), sentences(8, 1, seed=2)
    whole, tokens, expected = loss_and_gradients(model, batch(sources, targets))
    first, second = (batch([source], [target]) for source, target in zip(sources, targets, strict=True))
    parts, tokens_of_parts, found = loss_and_gradients(model, first, second)
    assert tokens_of_parts == tokens == 11
    assert sum(parts) == pytest.approx(whole[0], abs=1e-12)
    torch.testing.assert_close(found, expected)

    _, own_tokens, last = loss_and_gradients(model, second)
    assert own_tokens == 2
    _, _, long = loss_and_gradients(model, first)
    mean_of_means = {name: (long[name] + last[name]) / 2 for name in last}
    apart = [(mean_of_means[name] - expected[name]).norm() / expected[name].norm() for name in last]
    assert max(apart) > 0.1  # the mistake would be seen
    weighted = {name: (9 * long[name] + 2 * last[name]) / 11 for name in last}
    torch.testing.assert_close(weighted, expected)


@pytest.mark.parametrize("width", [1, 4])
def test_66_neighbours_in_the_batch_untrained_float64(width: int) -> None:
    sources = sentences(8, 5, 7, 5, 4, 8, 6, 8, 8, 8, 5, 8, 8, 6, 5, 7, 4, seed=5)
    ids = cast("Tokenizer", SimpleNamespace(pad=PAD, unk=UNK, bos=BOS, eos=EOS, prefixes=()))
    engine = Engine(lively_transformer(), Tokenizers(ids, ids), device=torch.device("cpu"))

    def translate(batches: Sequence[Sequence[int]]) -> list[Hypothesis]:
        found: dict[int, Hypothesis] = {}
        for part in batches:
            chosen = [sources[i] for i in part]
            best = engine.search(chosen, Beam(width=width), limits=[2 * len(source) + 4 for source in chosen])
            found |= {i: hypotheses[0] for i, hypotheses in zip(part, best, strict=True)}
        return [found[i] for i in range(len(sources))]

    def cut(order: Sequence[int], size: int) -> list[Sequence[int]]:
        return [order[start : start + size] for start in range(0, len(order), size)]

    in_order = range(len(sources))
    by_length = sorted(in_order, key=lambda i: -len(sources[i]))
    alone = translate(cut(in_order, 1))
    assert padded(sources, pad=PAD).eq(PAD).any()
    assert len({tuple(h.ids) for h in alone}) > 10
    for batches in (cut(in_order, 2), cut(in_order, 7), cut(in_order, 17), cut(by_length, 5)):
        found = translate(batches)
        assert [(h.ids, h.truncated) for h in found] == [(h.ids, h.truncated) for h in alone]
        assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in alone], abs=1e-10)
        assert [h.score for h in found] == pytest.approx([h.score for h in alone], abs=1e-10)
