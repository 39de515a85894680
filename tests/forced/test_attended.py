"""What is looked at in a source is what the fused attention of a full pass weights, whatever the batches."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from mt.forced.attended import attended, telling_layer
from mt.forced.given import Given
from mt.model.attention import split_heads
from mt.model.transformer import Transformer
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests.model.untrained import BOS, EOS, PAD, UNK, batch, lively_transformer, sentences, small_transformer
from tests.oracle.attention import attention

IDS = cast("Tokenizer", SimpleNamespace(pad=PAD, unk=UNK, bos=BOS, eos=EOS, prefixes=()))
CPU = torch.device("cpu")
PAIRS = [Given(source, target) for source, target in zip(sentences(3, 1, 8, 2, 13, 4), sentences(2, 9, 1, 0, 11, 30, seed=1), strict=True)]


def looks(models: list[Transformer], pairs: list[Given], batch_tokens: int = 1000) -> list[Tensor]:
    found = dict(attended(models, pairs, Tokenizers(IDS, IDS), device=CPU, batch_tokens=batch_tokens))
    return [found[place] for place in range(len(pairs))]


def by_hand(model: Transformer, pair: Given) -> list[list[float]]:
    """One pair alone: what a full pass gives to the cross-attention, and the oracle's weights of it, mean of the heads."""
    ids, asked = batch([pair.source], [pair.target]), {}

    def note(_module: Any, inputs: tuple[Any, ...], _output: Any) -> None:
        asked["y"], asked["memory"] = inputs

    cross = model.decoder[telling_layer(model)].cross
    allowed_BS = torch.ones_like(ids.src_BS, dtype=torch.bool)
    handle = cross.register_forward_hook(note)
    with torch.no_grad():
        model.decode(model.encode(ids.src_BS, allowed_BS), allowed_BS, ids.inputs_BT)
        projected = cross.q(asked["y"]), cross.kv(asked["memory"]).chunk(2, dim=-1)[0]
        q_HTE, k_HSE = (split_heads(one, cross.heads)[0].tolist() for one in projected)
    handle.remove()
    size = ids.src_BS.size(1)
    each = [[float(s == place) for s in range(size)] for place in range(size)]  # whose mean is the weights themselves
    may = [[True] * size] * ids.inputs_BT.size(1)
    heads = [attention(queries, keys, each, allowed=may) for queries, keys in zip(q_HTE, k_HSE, strict=True)]
    return torch.tensor(heads).mean(dim=0)[:, :-1].tolist()


@pytest.mark.parametrize("batch_tokens", [1, 40, 1000])
@pytest.mark.parametrize(
    "options", [{}, {"pre_norm": False}, {"decoder_layers": 1}, {"decoder_layers": 4, "heads": 4}, {"positions": "rope"}]
)
def test_weights_are_those_of_a_full_pass(options: dict[str, Any], batch_tokens: int) -> None:
    model = small_transformer(**options)
    order = random.Random(batch_tokens).sample(PAIRS, len(PAIRS))
    for pair, found in zip(order, looks([model], order, batch_tokens), strict=True):
        assert found.shape == (len(pair.target) + 1, len(pair.source))
        torch.testing.assert_close(found, torch.tensor(by_hand(model, pair), dtype=torch.float64), rtol=0, atol=1e-6)
        assert (found.sum(dim=1) < 1).all()  # the end has the rest


def test_several_models_look_as_they_do_in_the_mean() -> None:
    one, other = lively_transformer(), small_transformer(joint=False, tied=False, decoder_layers=3)
    for both, a, b in zip(looks([one, other], PAIRS), looks([one], PAIRS), looks([other], PAIRS), strict=True):
        torch.testing.assert_close(both, (a + b) / 2)
        assert not torch.allclose(a, b)


def test_no_pairs_have_none() -> None:
    assert looks([lively_transformer()], []) == []
