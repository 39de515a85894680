"""A run as a model of CTranslate2: the same weights, laid out as its Transformer has them, with the tokenizer beside them.

What is fused here is fused there (queries, keys and values; keys and values of the source), so each matrix goes over as it is. The table of
positions goes along, for its own differs; that of an export ends where the longest output of the run does.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from mt.checkpoint import Weights
from mt.config.schema import Config, ModelConfig
from mt.decode.ct2_engine import PROGRAM, Ct2Engine, library
from mt.decode.engine import Beam
from mt.errors import RunError
from mt.export.folder import load, losses, made_in, positions, put_beside, write_facts
from mt.export.proof import Prove, Say
from mt.files import fingerprint
from mt.model.attention import CrossAttention, SelfAttention
from mt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from mt.model.transformer import Transformer
from mt.rundir import ExportDir
from mt.tokenizer.spm import Tokenizers
from mt.translator import Translator

Quantization = Literal["int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"]

TOLERANCES = {"float32": 1.0, "float16": 2.0, "int16": 5.0, "bfloat16": 10.0, "int8": 40.0}
"""Per cent of the lines that may come out otherwise: two to ten times what docs/results.md has. In float32 only ties do."""


def export(
    run: str | Path,
    folder: str | Path,
    checkpoint: str = "best",
    *,
    average: int | None = None,
    weights: Weights | None = None,
    quantization: Quantization | None = None,
    prove: Prove | None = None,
    say: Say = lambda _: None,
) -> None:
    """Write a checkpoint of a run, or the mean of its `average` newest, as a folder that `ctranslate2.Translator` opens, and mt too.

    It appears whole or not at all, and only where `prove` finds it good. mt.json says how to ask it for what `mt translate` gives. Raises
    ConfigError without the library, RunError where there is something already, and for what the disk refuses.
    """
    specs = layouts()
    with made_in(Path(folder), run) as partial:
        exporting = load(run, checkpoint, average=average, weights=weights)
        translator = exporting.translator
        spec = build(specs, translator.model, translator.tokenizers, translator.config)
        spec.validate()
        spec.optimize(quantization=quantization)
        spec.save(str(partial))
        files = {path.name: fingerprint(path) for path in sorted(partial.iterdir())}
        facts = {"quantization": quantization or "float32", **conventions(translator.tokenizers, translator.config), "files": files}
        put_beside(partial, exporting)
        write_facts(partial, exporting, PROGRAM, facts)
        for line in losses(translator.config):
            say(line)
        proof = prove(translator, Ct2Other(partial, quantization or "float32")) if prove else None
        write_facts(partial, exporting, PROGRAM, {**facts, "proof": proof})
    say(f"written: {folder}; to use it: mt translate --model {shlex.quote(str(folder))} --input FILE")


def layouts() -> Any:
    """The modules of CTranslate2 that know how its models are laid out. Raises ConfigError, with the cure, where it is not installed."""
    library()
    from ctranslate2 import specs

    return specs


class Ct2Other:
    """An export as the proof sees it."""

    def __init__(self, folder: Path, quantization: str) -> None:
        self.translator = Translator.exported(ExportDir(folder), device="cpu")
        engine = self.translator.engine
        assert isinstance(engine, Ct2Engine)
        self.engine = engine
        numbers = (engine.precision if engine.precision != "float32" else quantization).split("_")[0]  # rounded, whatever it is computed in
        self.exact, self.tolerance = numbers == "float32", TOLERANCES[numbers]
        self.called = f"CTranslate2 {engine.version}, {quantization}" + f" as {engine.precision}" * (engine.precision != quantization)

    def translate(self, lines: Sequence[str], search: Beam, *, to: str | None) -> list[str]:
        """One text a line."""
        return [one.text for one in self.translator.translate(lines, settings=search, to=to)]

    def first_step(self, lines: Sequence[str], *, to: str | None) -> NDArray[np.float32]:
        """Log-probabilities (B, V) of the first piece."""
        prefix = self.translator.target(to).prefix
        return self.engine.first_step([prefix + parts[0] for parts in self.translator.encoded(lines)])


def conventions(tokenizers: Tokenizers, config: Config) -> dict[str, Any]:
    """What a caller has to know beside the model: how a source is put to it, and with which options it is searched."""
    src, tgt = tokenizers
    never = [tgt.pad, tgt.bos, *tgt.prefixes]
    decode = config.decode
    return {
        "source": {
            "before": dict(zip(src.tags, [src.pieces([i])[0] for i in src.tags.values()], strict=True)),
            "after": "nothing: the model appends the end itself",
            "longest": config.data.max_pieces,
        },
        "longest_output": {"factor": decode.max_length_factor, "extra": decode.max_length_extra},
        "translate_batch": {
            "beam_size": decode.beam,
            "length_penalty": decode.length_penalty,
            "patience": decode.patience,
            "num_hypotheses": decode.n_best,
            "min_decoding_length": 0,
            "disable_unk": True,
            "suppress_sequences": [[piece] for piece in tgt.pieces(never)],
        },
    }


# ── the model ───────────────────────────────────────────────────────────────────────────────────────────────────────


def build(specs: Any, model: Transformer, tokenizers: Tokenizers, config: Config) -> Any:
    """The weights and the vocabulary as a specification of the library; what it holds are copies."""
    spec = specs.TransformerSpec(*sides(specs, config.model))
    for side, embedding, layers, norm in (
        (spec.encoder, model.src_embedding, model.encoder, model.encoder_norm),
        (spec.decoder, model.tgt_embedding, model.decoder, model.decoder_norm),
    ):
        embeddings = side.embeddings[0] if side is spec.encoder else side.embeddings
        embeddings.weight = values(embedding.weight)
        if config.model.positions == "sinusoidal":
            side.position_encodings.encodings = values(model.positions(0, positions(config)))
        if config.model.norm == "pre":
            set_norm(side.layer_norm, norm)
        for theirs, ours in zip(side.layer, layers, strict=True):
            set_layer(theirs, ours)
    spec.decoder.projection.weight = values(model.output.weight)
    src, tgt = tokenizers
    spec.register_source_vocabulary(src.pieces(range(src.size)))
    spec.register_target_vocabulary(tgt.pieces(range(tgt.size)))
    spec.config.unk_token, spec.config.eos_token = tgt.pieces([tgt.unk, tgt.eos])
    spec.config.bos_token = spec.config.decoder_start_token = tgt.pieces([tgt.bos])[0]
    spec.config.add_source_eos, spec.config.layer_norm_epsilon = True, 1e-5
    return spec


def sides(specs: Any, cfg: ModelConfig) -> tuple[Any, Any]:
    """Encoder and decoder without weights. Raises RunError where the library is too old for rotary positions in an encoder."""
    activations = specs.common_spec.Activation
    options: dict[str, Any] = {
        "pre_norm": cfg.norm == "pre",
        "activation": {"relu": activations.RELU, "gelu": activations.GELU, "swiglu": activations.SWISH}[cfg.activation],
        "ffn_glu": cfg.activation == "swiglu",
        "rms_norm": cfg.norm_kind == "rms",
    }
    if cfg.positions == "rope":
        options |= {"rotary_dim": 0, "rotary_interleave": False}  # of all numbers of a head, the halves turned against each other
    try:
        encoder = specs.TransformerEncoderSpec(cfg.encoder_layers, cfg.heads, **options)
        return encoder, specs.TransformerDecoderSpec(cfg.decoder_layers, cfg.heads, **options)
    except TypeError:
        raise RunError("model.positions rope: this version of ctranslate2 has none in its encoder; pip install -U ctranslate2") from None


def set_layer(theirs: Any, ours: nn.Module) -> None:
    """One layer of the encoder or the decoder; a norm belongs there to what it stands before, or after."""
    assert isinstance(ours, EncoderLayer | DecoderLayer)
    set_attention(theirs.self_attention, ours.attention, ours.attention_residual)
    if isinstance(ours, DecoderLayer):
        set_attention(theirs.attention, ours.cross, ours.cross_residual)
    set_feed_forward(theirs.ffn, ours.feed_forward, ours.feed_forward_residual)


def set_attention(theirs: Any, ours: SelfAttention | CrossAttention, residual: Residual) -> None:
    """Its projections in order, fused as they are."""
    projections = (ours.qkv, ours.out) if isinstance(ours, SelfAttention) else (ours.q, ours.kv, ours.out)
    for linear, projection in zip(theirs.linear, projections, strict=True):
        linear.weight, linear.bias = values(projection.weight), values(projection.bias)
    set_norm(theirs.layer_norm, residual.norm)


def set_feed_forward(theirs: Any, ours: FeedForward, residual: Residual) -> None:
    """The two layers; what SwiGLU has as one matrix are two there: gate, then value."""
    inner = [theirs.linear_0, theirs.linear_0_noact] if hasattr(theirs, "linear_0_noact") else [theirs.linear_0]
    for linear, weight, bias in zip(inner, ours.inner.weight.chunk(len(inner)), ours.inner.bias.chunk(len(inner)), strict=True):
        linear.weight, linear.bias = values(weight), values(bias)
    theirs.linear_1.weight, theirs.linear_1.bias = values(ours.outer.weight), values(ours.outer.bias)
    set_norm(theirs.layer_norm, residual.norm)


def set_norm(theirs: Any, ours: nn.Module) -> None:
    """Weights, and biases unless it is RMSNorm."""
    theirs.gamma = values(ours.weight)
    if hasattr(theirs, "beta"):
        theirs.beta = values(ours.bias)


def values(tensor: Any) -> NDArray[np.float32]:
    """A copy in float32: the library rounds what it is given in place."""
    assert isinstance(tensor, Tensor)
    return tensor.detach().float().cpu().numpy().copy()
