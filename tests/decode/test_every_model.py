"""What holds of a search whatever the model is: random weights, all options of the architecture. Legend: B sentences."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.decode.engine import Beam, Engine, Sampling
from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.model.transformer import Transformer
from mt.search.step import Hypothesis
from mt.tokenizer.spm import Tokenizers
from tests.decode.test_engine import CPU, IDS, log_probs, outputs, rescored
from tests.model.test_options import OPTIONS
from tests.model.untrained import EOS, VOCAB, sentences, small_transformer

SOURCES = sentences(3, 1, 8, 2, 5, 5, seed=3)
SEEDS = st.integers(0, 10**6)
CLOSE = 1e-5
"""Scores nearer than this may change places in fp32, where sums are made in another order."""
every_model = given(options=OPTIONS, seed=SEEDS)
some = settings(max_examples=20, deadline=None)


def random_model(seed: int, options: dict[str, Any]) -> Transformer:
    """In float64, with weights that are large enough for outputs to differ."""
    model, chance = small_transformer(**options), torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=chance, dtype=torch.float64)
        is_norm = "norm" in name and name.endswith("weight")
        parameter.data = 1 + 0.3 * values if is_norm else 1.5 * values / parameter.size(-1) ** 0.5
    return model


def search(
    model: Transformer, asked: Beam | Sampling, sources: list[list[int]] = SOURCES, *, most: int = 6, seeds: list[int] | None = None
) -> list[list[Hypothesis]]:
    engine = Engine(model, Tokenizers(IDS, IDS), device=CPU)
    return engine.search(sources, asked, limits=[most] * len(sources), seeds=seeds or [*range(len(sources))])


@every_model
@some
def test_width_one_is_greedy_and_so_is_no_temperature(options: dict[str, Any], seed: int) -> None:
    """Greedy by the full pass over each prefix, without a cache."""
    model = random_model(seed, options)
    found = search(model, Beam(width=1))
    for source, (best,) in zip(SOURCES[:2], found, strict=False):
        ids: list[int] = []
        while len(ids) < 5:
            following = [[*ids, i] for i in range(EOS + 1, VOCAB)]
            ends = rescored(model, [source], [ids])[0]
            likely = [prefix_log_prob(model, source, one) for one in following]
            if ends >= max(likely):
                break
            ids = following[max(range(len(likely)), key=likely.__getitem__)]
        assert best.ids == ids
    assert outputs(search(model, Sampling(temperature=0))) == outputs(found)
    assert outputs(search(model, Sampling(top_k=1))) == outputs(found)


def prefix_log_prob(model: Transformer, source: list[int], ids: list[int]) -> float:
    """That an output begins so."""
    (tokens,) = token_log_probs([model], [Given(source, ids)], Tokenizers(IDS, IDS), device=CPU, batch_tokens=100)
    return math.fsum(tokens[:-1])


@every_model
@settings(max_examples=8, deadline=None)
def test_full_width_is_brute_force(options: dict[str, Any], seed: int) -> None:
    """All outputs of up to two words, each by a full pass."""
    model, source = random_model(seed, options), SOURCES[0]
    words = range(EOS + 1, VOCAB)
    every = [list(ids) for length in range(3) for ids in itertools.product(words, repeat=length)]
    expected = sorted(zip(rescored(model, [source] * len(every), every), every, strict=True), reverse=True)
    (found,) = search(model, Beam(width=len(every), n_best=len(every), length_penalty=0.0), [source], most=3)
    assert [h.ids for h in found] == [ids for _, ids in expected]
    assert [h.log_prob for h in found] == pytest.approx([value for value, _ in expected], abs=1e-9)


@pytest.mark.parametrize("asked", [Beam(width=1), Beam(width=3, n_best=3), Sampling(temperature=1.5)], ids=["greedy", "beam", "sampling"])
@every_model
@some
def test_batches_order_and_mates_do_not_matter(asked: Beam | Sampling, options: dict[str, Any], seed: int) -> None:
    model = random_model(seed, options)
    whole = search(model, asked)
    order = random.Random(seed).sample(range(len(SOURCES)), len(SOURCES))
    for size in (1, 2, 4):
        found: dict[int, list[Hypothesis]] = {}
        for start in range(0, len(order), size):
            part = order[start : start + size]
            found |= zip(part, search(model, asked, [SOURCES[i] for i in part], seeds=part), strict=True)
        assert outputs([found[i] for i in range(len(SOURCES))]) == outputs(whole)
        assert log_probs([found[i] for i in range(len(SOURCES))]) == pytest.approx(log_probs(whole), abs=1e-9)


@every_model
@some
def test_in_fp32_only_what_is_nearly_equal_changes_places(options: dict[str, Any], seed: int) -> None:
    model = random_model(seed, options).float()
    whole, alone = search(model, Beam(width=4)), [search(model, Beam(width=4), [source])[0] for source in SOURCES]
    differing = [(one, other) for (one, *_), (other, *_) in zip(whole, alone, strict=True) if one.ids != other.ids]
    assert all(abs(one.score - other.score) < CLOSE for one, other in differing), f"{len(differing)} of {len(SOURCES)} differ"


@every_model
@some
def test_the_list_is_sorted_distinct_and_begins_with_the_best(options: dict[str, Any], seed: int) -> None:
    model = random_model(seed, options)
    five = search(model, Beam(width=5, n_best=5))
    for n in (1, 2, 4):
        assert outputs(search(model, Beam(width=5, n_best=n))) == outputs([found[:n] for found in five])
    for found in five:
        assert len({tuple(h.ids) for h in found}) == len(found) == 5
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


@every_model
@some
def test_what_was_found_is_scored_as_it_was_and_a_model_with_itself_is_the_model(options: dict[str, Any], seed: int) -> None:
    model = random_model(seed, options)
    found = search(model, Beam(width=3, n_best=3))
    pairs = [(Given(source, h.ids), h) for source, hypotheses in zip(SOURCES, found, strict=True) for h in hypotheses]
    values = token_log_probs([model], [pair for pair, _ in pairs], Tokenizers(IDS, IDS), device=CPU, batch_tokens=40)
    for (_, h), tokens in zip(pairs, values, strict=True):
        assert math.fsum(tokens) == pytest.approx(h.log_prob, abs=1e-9)
    twice = Engine(model, Tokenizers(IDS, IDS), device=CPU, others=[model])
    assert outputs(twice.search(SOURCES, Beam(width=3, n_best=3), limits=[6] * len(SOURCES))) == outputs(found)
