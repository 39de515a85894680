"""Batches: what the model is given."""

from __future__ import annotations

import torch

from mt.data.batches import collate, padded
from mt.data.store import Example
from mt.formats.pairs import Pair
from tests import toy
from tests.train import tiny


def example(src_ids: list[int], tgt_ids: list[int]) -> Example:
    return Example(Pair("", "", "x:1"), src_ids, tgt_ids)


def test_padded_fills_up_at_the_end() -> None:
    assert padded([[5, 6, 7], [8]], pad=0).tolist() == [[5, 6, 7], [8, 0, 0]]
    assert padded([], pad=0).shape == (0, 0)
    assert padded([[5]], pad=0).dtype == torch.int64


def test_source_ends_with_eos_and_the_target_is_shifted_by_bos() -> None:
    batch = collate([example([10, 11], [20, 21, 22]), example([12], [23])], toy.tokenizers())
    pad, bos, eos = 0, 2, 3
    assert batch.src_BS.tolist() == [[10, 11, eos], [12, eos, pad]]
    assert batch.inputs_BT.tolist() == [[bos, 20, 21, 22], [bos, 23, pad, pad]]
    assert batch.gold_BT.tolist() == [[20, 21, 22, eos], [23, eos, pad, pad]]
    assert (batch.tokens, batch.src_tokens) == (6, 5)
    assert batch.tokens == int((batch.gold_BT != pad).sum())


def test_on_a_device_everything_is_the_same() -> None:
    batch = collate([example([10, 11], [20])], toy.tokenizers())
    moved = batch.to(torch.device("meta"))
    assert moved.src_BS.device.type == moved.inputs_BT.device.type == moved.gold_BT.device.type == "meta"
    assert (moved.tokens, moved.src_tokens, moved.origins) == (batch.tokens, batch.src_tokens, batch.origins)
    assert batch.to(torch.device("cpu")) is batch


def test_an_empty_batch_has_no_loss_and_no_gradient() -> None:
    """What a rank is given that has no pairs left in an update."""
    nothing = collate([], toy.tokenizers())
    assert (nothing.tokens, nothing.src_tokens, nothing.origins) == (0, 0, ())
    state = tiny.state()
    loss, count = state.loss(nothing.src_BS, nothing.inputs_BT, nothing.gold_BT)
    loss.backward()
    assert (loss.item(), int(count)) == (0.0, 0)
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in state.model.parameters())
