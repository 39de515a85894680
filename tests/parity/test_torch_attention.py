"""Attention, layers and the whole model are torch's own, given the same weights.

Legend: B sentences, S source, T target positions, D width, H heads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mt.model.attention import CrossAttention, SelfAttention
from mt.model.layers import DecoderLayer, EncoderLayer
from mt.model.transformer import Transformer
from tests.model.untrained import DIM, FFN, PAD, batch, by_formula, sentences, small_transformer

B, T, S, H = 3, 4, 5, 2
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()


def states(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def allowed_up_to(*lengths: int, longest: int) -> Tensor:
    """(B, longest)."""
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


def copy(pairs: Iterable[tuple[nn.Parameter, Tensor]]) -> None:
    with torch.no_grad():
        for theirs, ours in pairs:
            theirs.copy_(ours)


def torchs_attention(layer: SelfAttention | CrossAttention, theirs: nn.MultiheadAttention) -> nn.MultiheadAttention:
    fused = [layer.qkv] if isinstance(layer, SelfAttention) else [layer.q, layer.kv]
    weights = [(theirs.in_proj_weight, torch.cat([f.weight for f in fused])), (theirs.in_proj_bias, torch.cat([f.bias for f in fused]))]
    copy([*weights, (theirs.out_proj.weight, layer.out.weight), (theirs.out_proj.bias, layer.out.bias)])
    return theirs


def torchs_encoder_layer(layer: EncoderLayer, **kind: Any) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(DIM, H, FFN, dropout=0.0, batch_first=True, dtype=torch.float64, **kind)
    torchs_attention(layer.attention, theirs.self_attn)
    copy_others(theirs, layer, [layer.attention_residual.norm, layer.feed_forward_residual.norm])
    return theirs


def torchs_decoder_layer(layer: DecoderLayer, **kind: Any) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(DIM, H, FFN, dropout=0.0, batch_first=True, dtype=torch.float64, **kind)
    torchs_attention(layer.attention, theirs.self_attn)
    torchs_attention(layer.cross, theirs.multihead_attn)
    copy_others(theirs, layer, [layer.attention_residual.norm, layer.cross_residual.norm, layer.feed_forward_residual.norm])
    return theirs


def copy_others(theirs: nn.Module, layer: EncoderLayer | DecoderLayer, norms: list[nn.LayerNorm]) -> None:
    ours = {"linear1": layer.feed_forward.inner, "linear2": layer.feed_forward.outer}
    ours |= {f"norm{i}": norm for i, norm in enumerate(norms, start=1)}
    for name, module in ours.items():
        copy(zip(theirs.get_submodule(name).parameters(), module.parameters(), strict=True))


def plain_positions(length: int) -> Tensor:
    """(T, D); the model keeps its table in float32."""
    table = torch.zeros(length, DIM)
    for position in range(length):
        for i in range(DIM // 2):
            angle = position / 10000 ** (2 * i / DIM)
            table[position, i], table[position, DIM // 2 + i] = math.sin(angle), math.cos(angle)
    return table.double()


def torchs_states(model: Transformer, src_BS: Tensor, inputs_BT: Tensor, *, pre_norm: bool, activation: str) -> Tensor:
    """What the decoder gives, made of torch's layers."""
    kind = {"norm_first": pre_norm, "activation": activation}
    allowed_BS = src_BS != PAD
    causal_TT = torch.ones(inputs_BT.size(1), inputs_BT.size(1), dtype=torch.bool).tril()
    x_BSD = model.src_embedding.weight[src_BS] * DIM**0.5 + plain_positions(src_BS.size(1))
    for layer in model.encoder:
        assert isinstance(layer, EncoderLayer)
        x_BSD = torchs_encoder_layer(layer, **kind)(x_BSD, src_key_padding_mask=~allowed_BS)
    memory_BSD = nn.functional.layer_norm(x_BSD, [DIM], *model.encoder_norm.parameters()) if pre_norm else x_BSD
    y_BTD = model.tgt_embedding.weight[inputs_BT] * DIM**0.5 + plain_positions(inputs_BT.size(1))
    for layer in model.decoder:
        assert isinstance(layer, DecoderLayer)
        theirs = torchs_decoder_layer(layer, **kind)
        y_BTD = theirs(y_BTD, memory_BSD, tgt_mask=~causal_TT, memory_key_padding_mask=~allowed_BS)
    return nn.functional.layer_norm(y_BTD, [DIM], *model.decoder_norm.parameters()) if pre_norm else y_BTD


@pytest.mark.parametrize("heads", [1, H])
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention(heads: int, causal: bool) -> None:
    layer = by_formula(SelfAttention(DIM, heads))
    theirs = torchs_attention(layer, nn.MultiheadAttention(DIM, heads, batch_first=True, dtype=torch.float64))
    x_BTD = states(B, T, DIM, seed=1)
    expected, _ = theirs(x_BTD, x_BTD, x_BTD, attn_mask=~CAUSAL if causal else None)
    torch.testing.assert_close(layer(x_BTD, causal=causal), expected)


def test_self_attention_with_padding_and_with_any_mask() -> None:
    layer = by_formula(SelfAttention(DIM, H))
    theirs = torchs_attention(layer, nn.MultiheadAttention(DIM, H, batch_first=True, dtype=torch.float64))
    x_BTD, allowed_BT = states(B, T, DIM, seed=1), allowed_up_to(2, 4, 1, longest=T)
    expected, _ = theirs(x_BTD, x_BTD, x_BTD, key_padding_mask=~allowed_BT)
    torch.testing.assert_close(layer(x_BTD, allowed=allowed_BT[:, None, None]), expected)
    expected, _ = theirs(x_BTD, x_BTD, x_BTD, key_padding_mask=~allowed_BT, attn_mask=~CAUSAL)
    torch.testing.assert_close(layer(x_BTD, allowed=allowed_BT[:, None, None] & CAUSAL), expected)


@pytest.mark.parametrize("heads", [1, H])
def test_cross_attention(heads: int) -> None:
    layer = by_formula(CrossAttention(DIM, heads))
    theirs = torchs_attention(layer, nn.MultiheadAttention(DIM, heads, batch_first=True, dtype=torch.float64))
    y_BTD, memory_BSD, allowed_BS = states(B, T, DIM, seed=1), states(B, S, DIM, seed=2), allowed_up_to(2, 5, 1, longest=S)
    expected, _ = theirs(y_BTD, memory_BSD, memory_BSD, key_padding_mask=~allowed_BS)
    torch.testing.assert_close(layer(y_BTD, memory_BSD, allowed=allowed_BS[:, None, None]), expected)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize(("activation", "encoder_layers", "decoder_layers"), [("relu", 1, 2), ("gelu", 1, 2), ("gelu", 4, 1)])
def test_the_whole_model(pre_norm: bool, joint: bool, activation: str, encoder_layers: int, decoder_layers: int) -> None:
    """At real positions: what torch leaves at padding is used nowhere, as ours is."""
    kind = {"activation": activation, "encoder_layers": encoder_layers, "decoder_layers": decoder_layers}
    model = small_transformer(pre_norm=pre_norm, joint=joint, **kind)
    ids = batch(sentences(2, 6, 4, seed=1), sentences(5, 1, 3, seed=2))
    allowed_BS, real_BT = ids.src_BS != PAD, ids.gold_BT != PAD
    found = model.decode(model.encode(ids.src_BS, allowed_BS), allowed_BS, ids.inputs_BT)
    expected = torchs_states(model, ids.src_BS, ids.inputs_BT, pre_norm=pre_norm, activation=activation)
    torch.testing.assert_close(found[real_BT], expected[real_BT])
    torch.testing.assert_close(model.output(found)[real_BT], expected[real_BT] @ model.tgt_embedding.weight.T)
