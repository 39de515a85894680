"""Batches: what the model is given, and the position in the data that is all one needs to go on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config.schema import AugmentConfig, BpeDropout, Sample
from mt.data.augment import Augmenter
from mt.data.batches import Batch, TrainingData, collate, padded
from mt.data.pairs import Pair
from mt.data.plan import Cursor
from mt.data.store import Example, Span
from tests import toy


class Corpus:
    """Stands in for a store: toy sentences, encoded."""

    def __init__(self, sources: list[str]) -> None:
        tokenizer = toy.tokenizers().src
        pairs = [Pair(source, toy.translation(source), f"train.src:{n}") for n, source in enumerate(sources, 1)]
        self.examples = [Example(pair, tokenizer.encode(pair.src), tokenizer.encode(pair.tgt)) for pair in pairs]
        self.lengths_N2 = np.array([(len(example.src_ids), len(example.tgt_ids)) for example in self.examples])
        self.spans = [Span(0, len(pairs))]

    def take(self, indices: Iterable[int]) -> list[Example]:
        return [self.examples[i] for i in indices]


def training_data(
    count: int = 40, *, sample: Sample | None = None, noise: AugmentConfig | None = None, max_pieces: int | None = None, **settings: Any
) -> TrainingData:
    store: Any = Corpus(toy.sentences(count))
    given = {"budget": 150, "seed": 1, **settings}
    of, seed = toy.tokenizers(), given["seed"]
    augment = Augmenter(noise or AugmentConfig(), sample=sample, tokenizers=of, max_pieces=max_pieces, seed=seed)
    return TrainingData(store, of, augment=augment, **given)


def rows(batch: Batch) -> dict[str, tuple[list[int], list[int], list[int]]]:
    """Source, inputs and gold of each pair, by where it comes from."""
    columns = (batch.src_BS.tolist(), batch.inputs_BT.tolist(), batch.gold_BT.tolist())
    return {origin: row for origin, *row in zip(batch.origins, *columns, strict=True)}


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


@pytest.mark.parametrize("size", [1, 3])
def test_an_epoch_of_groups_holds_every_pair_once(size: int) -> None:
    data = training_data()
    seen: list[str] = []
    batches = len(data.plan(0))
    for micro, after in data.groups(Cursor(), size=size):
        seen += [origin for batch in micro for origin in batch.origins]
        assert len(micro) == size or (len(micro) == batches % size and after == Cursor(1, 0))  # no group spans two epochs
        if after.epoch == 1:
            break
    assert sorted(seen) == sorted(f"train.src:{n}" for n in range(1, 41))


def drawn(data: TrainingData, cursor: Cursor, *, size: int, count: int) -> list[tuple[Any, Cursor]]:
    """So many groups from there on, in a form that can be compared."""
    return [([rows(batch) for batch in micro], after) for micro, after in islice(data.groups(cursor, size=size), count)]


@settings(max_examples=20)
@given(size=st.integers(1, 4), resumed_at=st.integers(0, 8), sampled=st.booleans())
def test_going_on_from_any_cursor_gives_the_rest(size: int, resumed_at: int, sampled: bool) -> None:
    sample = BpeDropout(bpe_dropout=0.2) if sampled else None
    every = drawn(training_data(12, sample=sample), Cursor(), size=size, count=9)
    cursor = every[resumed_at - 1][1] if resumed_at else Cursor()
    assert drawn(training_data(12, sample=sample), cursor, size=size, count=9 - resumed_at) == every[resumed_at:]
    assert every[-1][1].epoch >= 1, "the test should see the end of an epoch"


def unpadded(ids: list[int]) -> list[int]:
    return [i for i in ids if i != toy.tokenizers().src.pad]


def test_another_seed_gives_other_batches() -> None:
    one, other = (drawn(training_data(seed=seed), Cursor(), size=1, count=3) for seed in (1, 2))
    assert one != other


# ── sub-word sampling ───────────────────────────────────────────────────────────────────────────────────────────────


def sampled(data: TrainingData, *, epoch: int = 0) -> dict[str, Any]:
    return rows(data.batch(np.arange(40), epoch=epoch))


def test_sampled_pieces_spell_the_same_text() -> None:
    data = training_data(sample=BpeDropout(bpe_dropout=0.3))
    found = sampled(data)
    plain = sampled(training_data())
    tokenizer = toy.tokenizers().src
    for number, one in enumerate(data.store.take(range(40)), 1):
        src, inputs, gold = found[f"train.src:{number}"]
        assert (tokenizer.decode(src), tokenizer.decode(inputs), tokenizer.decode(gold)) == (one.pair.src, one.pair.tgt, one.pair.tgt)
    assert sum(found[origin] != plain[origin] for origin in plain) > 30


def test_sampling_is_a_function_of_seed_and_epoch() -> None:
    data = training_data(sample=BpeDropout(bpe_dropout=0.3))
    assert sampled(data) == sampled(training_data(sample=BpeDropout(bpe_dropout=0.3)))
    others = [sampled(data, epoch=1), sampled(training_data(sample=BpeDropout(bpe_dropout=0.3), seed=2))]
    assert all(other != sampled(data) for other in others)


def test_noise_does_not_depend_on_the_batch() -> None:
    noise = AugmentConfig(token_drop=0.2, token_mask=0.1)
    whole = training_data(noise=noise).examples(np.arange(40), epoch=2)
    for batch in training_data(noise=noise).plan(2):
        assert training_data(noise=noise).examples(batch, epoch=2) == [whole[i] for i in batch]


# ── target languages ────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_corpus_has_its_tag_before_the_source() -> None:
    plain = training_data()
    tagged = training_data(tags=[7, 8])
    tagged.store.spans = [Span(0, 15), Span(15, 25)]
    before, after = (rows(data.batch(np.arange(40), epoch=0)) for data in (plain, tagged))
    for number, example in enumerate(plain.store.take(range(40))):
        origin = example.pair.origin
        assert unpadded(after[origin][0]) == [7 if number < 15 else 8, *unpadded(before[origin][0])]
        assert after[origin][1:] == before[origin][1:]
    assert tagged.batch(np.arange(40), epoch=0).src_tokens == plain.batch(np.arange(40), epoch=0).src_tokens + 40


def test_the_budget_counts_end_mark_and_tag() -> None:
    tagged = training_data(tags=[7], budget=60)
    for indices in tagged.plan(0):
        batch = tagged.batch(indices, epoch=0)
        assert max(batch.src_BS.numel(), batch.gold_BT.numel()) <= 60
    sizes = [len(indices) for indices in tagged.plan(0)]
    assert sizes != [len(indices) for indices in training_data(budget=60).plan(0)]


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_only_the_sides_asked_for_are_sampled(side: Any) -> None:
    plain, found = sampled(training_data()), sampled(training_data(sample=BpeDropout(bpe_dropout=0.3, sides=[side])))

    def changed(column: int) -> list[str]:
        return [origin for origin in plain if unpadded(plain[origin][column]) != unpadded(found[origin][column])]

    source, inputs, gold = map(changed, range(3))
    assert (len(source) > 30, len(gold) > 30) == (side == "src", side == "tgt")
    assert gold == inputs
    assert gold == [] if side == "src" else source == []


def test_where_sampled_pieces_would_be_too_many_the_usual_ones_stay() -> None:
    longest = int(training_data().store.lengths_N2.max())
    free = sampled(training_data(sample=BpeDropout(bpe_dropout=0.9)))
    held = sampled(training_data(sample=BpeDropout(bpe_dropout=0.9), max_pieces=longest))
    assert max(len(row[0]) for row in free.values()) > longest + 1  # an end mark is not counted
    assert max(len(unpadded(ids)) for row in held.values() for ids in row) <= longest + 1
    assert any(unpadded(held[origin][0]) == unpadded(free[origin][0]) for origin in free)  # where there is room, it is sampled
