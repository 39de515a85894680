"""The model: three verbs, `encode`, `decode` (all positions at once, for training) and `step` (one position, with a cache).

Legend: B sentences, R decoder rows, G rows per sentence (R = B·G), S source, T target positions, H heads, D width, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, Self

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mt.config.schema import ModelConfig
from mt.model.attention import CrossAttention, SelfAttention, attend, join_heads
from mt.model.cache import DecoderCache, LayerCache
from mt.model.dropout import Dropout, WordDropout
from mt.model.layers import NORMS, Activation, DecoderLayer, EncoderLayer, FeedForward, NormKind, Residual
from mt.model.positions import Rotary, Table, sinusoids, unturned


class Transformer(nn.Module):
    """Encoder-decoder Transformer, pre-norm with final norms or post-norm, embeddings scaled by √D.

    All options are chosen here, once: what computes has no branches for them.
    """

    def __init__(
        self,
        *,
        src_vocab: int,
        tgt_vocab: int,
        dim: int,
        ffn: int,
        heads: int,
        encoder_layers: int,
        decoder_layers: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        word_dropout: float = 0.0,
        pre_norm: bool = True,
        norm_kind: NormKind = "layer",
        activation: Activation = "relu",
        positions: Literal["sinusoidal", "rope"] = "sinusoidal",
        joint: bool = True,
        tied: bool = True,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        assert not (joint and src_vocab != tgt_vocab), "a joint vocabulary has one size"
        turn = Rotary(dim // heads) if positions == "rope" else unturned

        def attention() -> SelfAttention:
            return SelfAttention(dim, heads, dropout=attention_dropout, turn=turn)

        def cross() -> CrossAttention:
            return CrossAttention(dim, heads, dropout=attention_dropout)

        def feed_forward() -> FeedForward:
            return FeedForward(dim, ffn, activation=activation, dropout=activation_dropout)

        def residual() -> Residual:
            return Residual(dim, dropout=dropout, pre_norm=pre_norm, norm=norm_kind)

        self.dim, self.ffn, self.gradient_checkpointing = dim, ffn, gradient_checkpointing
        self.src_embedding = nn.Embedding(src_vocab, dim)
        self.tgt_embedding = self.src_embedding if joint and tied else nn.Embedding(tgt_vocab, dim)
        self.output = nn.Linear(dim, tgt_vocab, bias=False)
        if tied:
            self.output.weight = self.tgt_embedding.weight
        self.positions = Table(sinusoids if positions == "sinusoidal" else torch.zeros, dim)
        self.word_dropout, self.dropout = WordDropout(word_dropout), Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderLayer(attention(), feed_forward(), residual) for _ in range(encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(attention(), cross(), feed_forward(), residual) for _ in range(decoder_layers))
        self.encoder_norm = NORMS[norm_kind](dim) if pre_norm else nn.Identity()
        self.decoder_norm = NORMS[norm_kind](dim) if pre_norm else nn.Identity()
        self.reset_parameters()

    @classmethod
    def build(cls, cfg: ModelConfig, *, src_vocab: int, tgt_vocab: int, joint: bool) -> Transformer:
        """The model a config describes; joint says that both sides have the same vocabulary."""
        return cls(
            src_vocab=src_vocab,
            tgt_vocab=tgt_vocab,
            dim=cfg.dim,
            ffn=cfg.ffn,
            heads=cfg.heads,
            encoder_layers=cfg.encoder_layers,
            decoder_layers=cfg.decoder_layers,
            dropout=cfg.dropout,
            attention_dropout=cfg.attention_dropout,
            activation_dropout=cfg.activation_dropout,
            word_dropout=cfg.word_dropout,
            pre_norm=cfg.norm == "pre",
            norm_kind=cfg.norm_kind,
            activation=cfg.activation,
            positions=cfg.positions,
            joint=joint,
            tied=cfg.tied_embeddings,
            gradient_checkpointing=cfg.gradient_checkpointing,
        )

    def reset_parameters(self) -> None:
        """Initial weights, all of them.

        embeddings, output   normal, standard deviation D^-0.5 (so that √D · embedding has unit variance)
        other matrices       Xavier uniform, each of the fused blocks (q, k, v; gate and value) by itself
        biases 0, norm weights 1
        """
        for name, parameter in self.named_parameters():
            if "embedding" in name or name == "output.weight":
                nn.init.normal_(parameter, std=self.dim**-0.5)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "norm" in name:
                nn.init.ones_(parameter)
            elif name.endswith(("qkv.weight", "kv.weight", "inner.weight")):
                for block in parameter.split(self.ffn if name.endswith("inner.weight") else self.dim):
                    nn.init.xavier_uniform_(block)
            else:
                nn.init.xavier_uniform_(parameter)

    def narrowed(self, dtype: torch.dtype) -> Self:
        """This model with its matrices in `dtype`, and what they are multiplied with rounded to it; norms and sums of residuals stay."""
        narrow = [] if dtype == self.output.weight.dtype else [*self.modules()]
        for module in narrow:
            if isinstance(module, nn.Linear | nn.Embedding):
                module.to(dtype)
            if isinstance(module, nn.Linear):
                module.register_forward_pre_hook(lambda linear, inputs: (inputs[0].to(linear.weight.dtype),))
        return self

    def embed(self, embedding: nn.Embedding, ids_BT: Tensor, start: int = 0) -> Tensor:
        """Scaled embeddings plus positions from `start` on, (B, T) → (B, T, D)."""
        positions_TD = self.positions(start, start + ids_BT.size(1))
        x_BTD = torch.add(positions_TD, self.word_dropout(embedding(ids_BT)), alpha=math.sqrt(self.dim))
        return self.dropout(x_BTD)

    def run_layer(self, layer: nn.Module, *inputs: Tensor) -> Tensor:
        """Apply a layer, keeping its activations or (gradient checkpointing) computing them again in the backward pass."""
        if self.gradient_checkpointing and self.training:
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)

    def encode(self, src_BS: Tensor, allowed_BS: Tensor) -> Tensor:
        """Source ids → memory (B, S, D)."""
        allowed_B11S = attention_mask(allowed_BS)
        x_BSD = self.embed(self.src_embedding, src_BS)
        for layer in self.encoder:
            x_BSD = self.run_layer(layer, x_BSD, allowed_B11S)
        return self.encoder_norm(x_BSD)

    def decode(self, memory_BSD: Tensor, allowed_BS: Tensor, inputs_BT: Tensor) -> Tensor:
        """States of all target positions, (B, T, D); position t sees inputs up to t only."""
        allowed_B11S = attention_mask(allowed_BS)
        y_BTD = self.embed(self.tgt_embedding, inputs_BT)
        for layer in self.decoder:
            y_BTD = self.run_layer(layer, y_BTD, memory_BSD, allowed_B11S)
        return self.decoder_norm(y_BTD)

    def attention_to_source(self, memory_BSD: Tensor, allowed_BS: Tensor, inputs_BT: Tensor, *, layer: int) -> Tensor:
        """The weights with which one decoder layer looks at the source, (B, H, T, S); the layers above it are not run."""
        allowed_B11S = attention_mask(allowed_BS)
        y_BTD = self.embed(self.tgt_embedding, inputs_BT)
        *below, chosen = self.decoder[: layer + 1]
        for one in below:
            y_BTD = one(y_BTD, memory_BSD, allowed_B11S)
        assert isinstance(chosen, DecoderLayer)
        return chosen.attention_to_source(y_BTD, memory_BSD, allowed_B11S)

    def start(self, memory_BSD: Tensor, allowed_BS: Tensor) -> DecoderCache:
        """The cache before the first step: keys and values of the source, one row for each sentence."""
        layers = tuple(LayerCache.start(layer.cross.project_memory(memory_BSD)) for layer in self.decoder)  # type: ignore[union-attr, operator]
        rows = torch.arange(memory_BSD.size(0), device=memory_BSD.device)
        return DecoderCache(layers=layers, allowed_B11S=attention_mask(allowed_BS), sentence_R=rows, length=0)

    def step(self, last_R: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """Logits (R, V) after one more input id for each row, and the cache that includes it."""
        y_R1D = self.embed(self.tgt_embedding, last_R[:, None], start=cache.length)
        layers = []
        for layer, layer_cache in zip(self.decoder, cache.layers, strict=True):
            assert isinstance(layer, DecoderLayer)
            y_R1D, layer_cache = step_layer(layer, y_R1D, layer_cache, cache)
            layers.append(layer_cache)
        logits_RV = self.output(self.decoder_norm(y_R1D)[:, 0])
        return logits_RV, replace(cache, layers=tuple(layers), length=cache.length + 1)


def attention_mask(allowed_BS: Tensor) -> Tensor:
    """(B, S) → (B, 1, 1, S). A row without any real position may look at its padding: its result is used nowhere, but must be finite."""
    return (allowed_BS | ~allowed_BS.any(dim=1, keepdim=True))[:, None, None]


def step_layer(layer: DecoderLayer, y_R1D: Tensor, own: LayerCache, cache: DecoderCache) -> tuple[Tensor, LayerCache]:
    """One decoder layer at one position; the G rows of a sentence are G queries to the same memory."""

    def self_attention(h_R1D: Tensor) -> Tensor:
        nonlocal own
        q, k, v = layer.attention.project(h_R1D, start=cache.length)
        own = own.extended(k, v)
        assert own.k_RHTE is not None
        assert own.v_RHTE is not None
        return layer.attention.out(join_heads(attend(q, own.k_RHTE, own.v_RHTE)))

    def cross_attention(h_R1D: Tensor) -> Tensor:
        h_BGD = h_R1D.view(-1, cache.group, h_R1D.size(-1))
        return layer.cross.look(h_BGD, own.memory_BHSE, allowed=cache.allowed_B11S).view_as(h_R1D)

    y_R1D = layer.attention_residual(y_R1D, self_attention)
    y_R1D = layer.cross_residual(y_R1D, cross_attention)
    y_R1D = layer.feed_forward_residual(y_R1D, layer.feed_forward)
    return y_R1D, own
