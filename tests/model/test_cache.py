"""One step at a time is all positions at once, whatever becomes of the rows. Legend: B sentences, R rows, G rows per sentence."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mt.model.cache import DecoderCache
from mt.model.transformer import Transformer
from tests.model.untrained import BOS, PAD, VOCAB, batch, sentences, small_transformer

SRC_BS = batch(sentences(5, 2, 7), [])[0]
ALLOWED_BS = SRC_BS != PAD


class Walk:
    """A search without choices: what it does is done to a cache, and to a list of (sentence, ids so far) that is decoded whole."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.memory_BSD = model.encode(SRC_BS, ALLOWED_BS)
        self.cache: DecoderCache = model.start(self.memory_BSD, ALLOWED_BS)
        self.rows: list[tuple[int, list[int]]] = [(b, []) for b in range(SRC_BS.size(0))]

    def reorder(self, rows: list[int]) -> None:
        self.cache = self.cache.reorder(torch.tensor(rows))
        self.rows = [self.rows[row] for row in rows]

    def step(self, ids: list[int]) -> tuple[Tensor, Tensor]:
        """Logits (R, V) after one more id for each row: with the cache, and without."""
        logits_RV, self.cache = self.model.step(torch.tensor(ids), self.cache)
        self.rows = [(b, [*before, i]) for (b, before), i in zip(self.rows, ids, strict=True)]
        sentence_R = torch.tensor([b for b, _ in self.rows])
        states_RTD = self.model.decode(
            self.memory_BSD[sentence_R], ALLOWED_BS[sentence_R], torch.tensor([prefix for _, prefix in self.rows])
        )
        return logits_RV, self.model.output(states_RTD[:, -1])

    def agree(self) -> None:
        """One step with ids that differ from row to row."""
        length = len(self.rows[0][1])
        ids = [(7 * row + 5 * length) % (VOCAB - BOS) + BOS for row in range(len(self.rows))]
        torch.testing.assert_close(*self.step(ids))


def test_in_bf16_on_a_cpu_keys_and_values_are_kept_in_the_numbers_of_attention() -> None:
    model = small_transformer().to(torch.bfloat16)
    walk = Walk(model)
    for _ in range(3):
        logits_RV, expected_RV = walk.step([BOS + 1] * 3)
        assert logits_RV.dtype == torch.bfloat16
        torch.testing.assert_close(logits_RV, expected_RV, atol=0.05, rtol=0.05)
    layer = walk.cache.layers[0]
    assert {x.dtype for x in (layer.k_RHTE, layer.v_RHTE, *layer.memory_BHSE) if x is not None} == {torch.float32}


PLANS = {
    "the same rows": [[0, 1, 2], [0, 1, 2]],
    "a beam that opens and is shuffled": [[0, 0, 1, 1, 2, 2], [1, 0, 3, 3, 4, 5], [0, 0, 2, 3, 5, 4]],
    "finished sentences leave": [[0, 0, 1, 1, 2, 2], [0, 1, 4, 5], [3, 2], [0]],
    "greedy rows leave": [[0, 2], [1]],
    "unequal rows per sentence": [[0, 0, 0, 1, 2, 2], [2, 1, 3, 4], [0, 2, 3], [0, 0, 1, 1, 2, 2]],
    "rows of a sentence apart": [[0, 1, 0], [2, 0, 1, 1]],
    "sentences in another order": [[2, 0, 1], [2, 2, 0, 0], [3, 2, 1, 0]],
}


@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
@torch.no_grad()
def test_cached_is_uncached(plan: list[list[int]], pre_norm: bool) -> None:
    walk = Walk(small_transformer(pre_norm=pre_norm))
    walk.agree()
    for rows in plan:
        walk.reorder(rows)
        walk.agree()


@given(data=st.data())
@settings(max_examples=40)
@torch.no_grad()
def test_cached_is_uncached_after_any_reordering(data: st.DataObject) -> None:
    walk = Walk(MODEL)
    for _ in range(4):
        walk.reorder(data.draw(st.lists(st.integers(0, len(walk.rows) - 1), min_size=1, max_size=6)))
        walk.agree()


MODEL = small_transformer()


@torch.no_grad()
def test_rows_of_a_sentence_share_its_memory_as_long_as_they_are_equally_many() -> None:
    walk = Walk(MODEL)
    start = walk.cache
    assert start.reorder(torch.arange(3)) is start
    walk.reorder([0, 0, 1, 1, 2, 2])
    assert walk.cache.group == 2
    assert walk.cache.layers[0].memory_BHSE[0] is start.layers[0].memory_BHSE[0]
    walk.reorder([2, 3, 4, 5])
    assert (walk.cache.group, walk.cache.allowed_B11S.size(0)) == (2, 2)
    walk.reorder([0, 1, 2])
    assert (walk.cache.group, walk.cache.allowed_B11S.size(0)) == (1, 3)


@torch.no_grad()
def test_a_cache_is_a_value() -> None:
    """Stepping and reordering make new ones: two searches may go on from the same place."""
    walk = Walk(MODEL)
    walk.agree()
    before, last_R = walk.cache, torch.tensor([4, 5, 6])
    first, after = MODEL.step(last_R, before)
    after.reorder(torch.tensor([2, 0]))
    again, _ = MODEL.step(last_R, before)
    assert (before.length, after.length) == (1, 2)
    assert torch.equal(first, again)


@torch.no_grad()
def test_a_state_can_go_on_in_several_ways() -> None:
    """What is written after it for one is not seen by the other, nor by what went before."""
    walk = Walk(small_transformer())
    for _ in range(3):
        walk.agree()
    cache, rows = walk.cache, walk.rows
    first, expected = walk.step([BOS + 1] * 3)
    torch.testing.assert_close(first, expected)
    again = (walk.cache, walk.rows)
    walk.cache, walk.rows = cache, rows
    torch.testing.assert_close(*walk.step([BOS + 2] * 3))
    walk.agree()
    walk.cache, walk.rows = again
    walk.agree()
