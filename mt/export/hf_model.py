"""A model as the `transformers` library has it: pre-norm as Pegasus, post-norm as Marian; its weights and its search.

Both are this Transformer with other names: the same table of positions, the same norms, embeddings scaled by √D, padding 0. What is fused
here (queries, keys and values; keys and values of the source) is cut apart there. The table of positions goes along; it ends where the
longest output of the run does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from mt.config.schema import Config
from mt.export.folder import longest_output, positions
from mt.model.attention import CrossAttention, SelfAttention
from mt.model.layers import DecoderLayer, EncoderLayer
from mt.model.transformer import Transformer
from mt.tokenizer.spm import Tokenizers

SIDES = "source", "target"
"""Folders of the tokenizers where each side has its own."""


def architecture(transformers: Any, config: Config, tokenizers: Tokenizers) -> Any:
    """The configuration of the model, with everything that it computes by."""
    model, (src, tgt) = config.model, tokenizers
    values = {
        "vocab_size": src.size,
        "d_model": model.dim,
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "encoder_attention_heads": model.heads,
        "decoder_attention_heads": model.heads,
        "encoder_ffn_dim": model.ffn,
        "decoder_ffn_dim": model.ffn,
        "activation_function": model.activation,
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.activation_dropout,
        "scale_embedding": True,
        "max_position_embeddings": positions(config),
        "pad_token_id": tgt.pad,
        "bos_token_id": tgt.bos,
        "eos_token_id": tgt.eos,
        "decoder_start_token_id": tgt.bos,
        "forced_eos_token_id": tgt.eos,
        "tie_word_embeddings": model.tied_embeddings,
        "dtype": "float32",
    }
    if model.norm == "pre":
        return transformers.PegasusConfig(architectures=["PegasusForConditionalGeneration"], **values)
    values |= {"decoder_vocab_size": tgt.size, "share_encoder_decoder_embeddings": shared(config)}
    return transformers.MarianConfig(architectures=["MarianMTModel"], **values)


def shared(config: Config) -> bool:
    """Whether one matrix is the embedding of both sides, and the output."""
    return config.tokenizer.joint and config.model.tied_embeddings


def tensors(model: Transformer, config: Config) -> dict[str, Tensor]:
    """The weights by their names there, those that are tied once."""
    found = {"final_logits_bias": torch.zeros(1, model.output.out_features)}
    if shared(config):
        found["model.shared.weight"] = model.src_embedding.weight
    for side, embedding, layers, norm in (
        ("model.encoder", model.src_embedding, model.encoder, model.encoder_norm),
        ("model.decoder", model.tgt_embedding, model.decoder, model.decoder_norm),
    ):
        if not shared(config):
            found[f"{side}.embed_tokens.weight"] = embedding.weight
        found[f"{side}.embed_positions.weight"] = model.positions(0, positions(config))
        for number, layer in enumerate(layers):
            found |= {f"{side}.layers.{number}.{name}": value for name, value in of_layer(layer)}
        if config.model.norm == "pre":
            found |= {f"{side}.layer_norm.{name}": value for name, value in norm.named_parameters()}
    if not config.model.tied_embeddings:
        found["lm_head.weight"] = model.output.weight
    return {name: value.detach().float().cpu().clone().contiguous() for name, value in found.items()}


def of_layer(layer: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The weights of a layer of the encoder or the decoder."""
    assert isinstance(layer, EncoderLayer | DecoderLayer)
    parts: list[tuple[str, nn.Module]] = [
        ("self_attn_layer_norm", layer.attention_residual.norm),
        ("fc1", layer.feed_forward.inner),
        ("fc2", layer.feed_forward.outer),
        ("final_layer_norm", layer.feed_forward_residual.norm),
    ]
    yield from of_attention("self_attn", layer.attention)
    if isinstance(layer, DecoderLayer):
        parts.append(("encoder_attn_layer_norm", layer.cross_residual.norm))
        yield from of_attention("encoder_attn", layer.cross)
    for part, module in parts:
        yield from ((f"{part}.{name}", value) for name, value in module.named_parameters())


def of_attention(part: str, attention: SelfAttention | CrossAttention) -> Iterator[tuple[str, Tensor]]:
    """Its projections, each by itself."""
    fused = [(attention.qkv, "qkv")] if isinstance(attention, SelfAttention) else [(attention.q, "q"), (attention.kv, "kv")]
    for linear, letters in fused:
        for name, value in linear.named_parameters():
            yield from ((f"{part}.{letter}_proj.{name}", one) for letter, one in zip(letters, value.chunk(len(letters)), strict=True))
    yield from ((f"{part}.out_proj.{name}", value) for name, value in attention.out.named_parameters())


# ── how it is asked ─────────────────────────────────────────────────────────────────────────────────────────────────


def generation(config: Config, tokenizers: Tokenizers) -> dict[str, Any]:
    """How outputs are searched unless the caller says otherwise: as the run does it.

    Their scores are ours, log-probability / length^α with the end counted, over probabilities that are not renormalised once what is never
    given is left out; with `early_stopping` a search ends as ours does, when as many outputs are finished as the beam is wide, an end
    counting among the best of them alone. One limit, `max_new_tokens`, the end counted, is for all lines of a batch.
    """
    tgt, decode = tokenizers.tgt, config.decode
    beam = {"early_stopping": True, "length_penalty": decode.length_penalty} if decode.beam > 1 else {}
    return {
        "decoder_start_token_id": tgt.bos,
        "bos_token_id": tgt.bos,
        "eos_token_id": tgt.eos,
        "pad_token_id": tgt.pad,
        "forced_eos_token_id": tgt.eos,
        "suppress_tokens": sorted((tgt.pad, tgt.unk, tgt.bos, *tgt.prefixes)),
        "max_new_tokens": longest_output(config),
        "do_sample": False,
        "num_beams": decode.beam,
        **beam,
    }


def around(tokenizers: Tokenizers) -> int:
    """Ids of a source that are no pieces of its text: the end, and the tag."""
    return 1 + bool(tokenizers.src.tags)


def several(tokenizers: Tokenizers) -> bool:
    """Whether a caller has to say which target language."""
    return len(tokenizers.src.tags) > 1
