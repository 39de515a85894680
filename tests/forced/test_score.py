"""Log-probabilities of given outputs are those of a full pass, whatever the batches, and those of the search that gave the outputs."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from mt.decode.engine import Beam, Engine, Sampling
from mt.errors import DecodeError
from mt.forced.given import Given, batches
from mt.forced.score import token_log_probs
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests.model.untrained import BOS, EOS, PAD, UNK, batch, lively_transformer, sentences

IDS = cast("Tokenizer", SimpleNamespace(pad=PAD, unk=UNK, bos=BOS, eos=EOS, prefixes=()))
CPU = torch.device("cpu")
PAIRS = [
    Given(source, target) for source, target in zip(sentences(3, 1, 8, 2, 0, 13, 4), sentences(2, 9, 1, 0, 4, 11, 5, seed=1), strict=True)
]


def scores(pairs: list[Given], batch_tokens: int = 1000) -> list[list[float]]:
    return token_log_probs([lively_transformer()], pairs, Tokenizers(IDS, IDS), device=CPU, batch_tokens=batch_tokens)


def by_hand(pair: Given) -> list[float]:
    """One pair alone, all at once."""
    model, ids = lively_transformer(), batch([pair.source], [pair.target])
    allowed_BS = torch.ones_like(ids.src_BS, dtype=torch.bool)
    with torch.no_grad():
        logits_TV = model.output(model.decode(model.encode(ids.src_BS, allowed_BS), allowed_BS, ids.inputs_BT))[0]
    return logits_TV.log_softmax(dim=1).gather(1, ids.gold_BT[0, :, None])[:, 0].tolist()


@pytest.mark.parametrize("batch_tokens", [1, 12, 30, 1000])
def test_each_id_and_end_has_the_log_probability_of_a_full_pass(batch_tokens: int) -> None:
    order = random.Random(batch_tokens).sample(PAIRS, len(PAIRS))
    for pair, found in zip(order, scores(order, batch_tokens), strict=True):
        assert found == pytest.approx(by_hand(pair), abs=1e-10)


@pytest.mark.parametrize(
    "settings", [Beam(width=1), Beam(width=3, n_best=3), Sampling(temperature=1.3)], ids=["greedy", "beam", "sampling"]
)
def test_outputs_of_a_search_have_what_it_reported(settings: Beam | Sampling) -> None:
    sources = [pair.source for pair in PAIRS]
    engine = Engine(lively_transformer(), Tokenizers(IDS, IDS), device=CPU)
    found = engine.search(sources, settings, limits=[9] * len(sources), seeds=range(len(sources)))
    outputs = [(source, h) for source, hypotheses in zip(sources, found, strict=True) for h in hypotheses]
    for (_, h), values in zip(outputs, scores([Given(source, h.ids) for source, h in outputs]), strict=True):
        assert h.tokens == pytest.approx(values, abs=1e-9)
        assert sum(values) == pytest.approx(h.log_prob, abs=1e-9)
    assert any(h.truncated for _, h in outputs)


def test_what_a_search_never_gives_has_its_probability_too() -> None:
    """Padding as an id is an id: only the places beyond the end are padding."""
    pair = Given([5, 6], [PAD, UNK, BOS, 7, PAD])
    assert scores([pair, Given([5] * 9, [8] * 9)])[0] == pytest.approx(by_hand(pair), abs=1e-10)


def test_no_pairs_have_no_scores() -> None:
    assert scores([]) == []


def test_batches_hold_all_places_once_within_the_budget() -> None:
    lengths = [3, 9, 1, 4, 4, 20, 2]
    pairs = [Given([5] * (length - 1), [5] * (place % 2)) for place, length in enumerate(lengths)]
    found = list(batches(pairs, budget=12))
    assert sorted(place for places in found for place in places) == [*range(7)]
    assert all(len(places) == 1 or len(places) * max(lengths[place] for place in places) <= 12 for places in found)


def test_broken_weights_are_an_error() -> None:
    model = lively_transformer()
    with torch.no_grad():
        next(model.decoder.parameters()).fill_(torch.nan)
    with pytest.raises(DecodeError, match="NaN"):
        token_log_probs([model], PAIRS, Tokenizers(IDS, IDS), device=CPU, batch_tokens=100)
