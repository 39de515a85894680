"""What a run takes of memory and disk, by arithmetic: nothing is measured here.

Legend: B sentences, S source, T target positions, D width, F inner width of the feed-forward, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from mt.config.schema import Config
from mt.model.attention import SHORT
from mt.model.loss import CHUNK
from mt.model.transformer import Transformer
from mt.train.memory import Shape
from mt.train.precision import Precision

FLOAT = 4
STATE = 1 << 20
"""Bytes of a checkpoint beside tensors, at most."""


@dataclass(frozen=True)
class Parameters:
    """How many a model has, by part; tied ones count once, where they come first."""

    embeddings: int
    encoder: int
    decoder: int
    output: int
    """0 where it is tied."""
    trained: int
    """Of all."""

    @property
    def total(self) -> int:
        """Of all parts."""
        return self.embeddings + self.encoder + self.decoder + self.output


def parameters(model: Transformer) -> Parameters:
    """Of a model, by part."""
    counted: set[int] = set()

    def count(*modules: nn.Module) -> int:
        new = {id(p): p.numel() for module in modules for p in module.parameters() if id(p) not in counted}
        counted.update(new)
        return sum(new.values())

    return Parameters(
        embeddings=count(model.src_embedding, model.tgt_embedding),
        encoder=count(model.encoder, model.encoder_norm),
        decoder=count(model.decoder, model.decoder_norm),
        output=count(model.output),
        trained=sum(p.numel() for p in model.parameters() if p.requires_grad),
    )


@dataclass(frozen=True)
class Memory:
    """Bytes that training takes, beside the program and its libraries."""

    weights: int
    """With their moving average."""
    training: int
    """Gradients, and the optimiser's two moments."""
    activations: int
    """Of the largest micro-batch, kept for its backward pass, and what the output layer works in."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.training + self.activations


def memory(config: Config, found: Parameters, shape: Shape, *, vocab: int, precision: Precision, on_cpu: bool) -> Memory:
    """Of a run whose largest micro-batch has this shape; `vocab` is that of the target."""
    halves = 0 if precision == "fp32" else 2 * found.total  # copies that autocast makes and keeps for a pass
    return Memory(
        weights=found.total * FLOAT * (1 + bool(config.train.ema)) + halves,
        training=found.trained * FLOAT * 3,
        activations=activations(config, shape, precision=precision, on_cpu=on_cpu) + output_layer(config, shape, vocab=vocab),
    )


def activations(config: Config, shape: Shape, *, precision: Precision, on_cpu: bool) -> int:
    """Bytes kept of encoder and decoder for the backward pass of a micro-batch.

    A layer keeps for each position, in units of D: for attention to itself 6 (what goes in, queries, keys, values, what comes out, twice),
    to the source 4 and for each of its positions 2, for the feed-forward 1 and F / D; for each of these the sum of the residual, its norm
    counted in what goes in. A mask of dropout is a byte for each; attention by products keeps its weights, twice with dropout.
    """
    model = config.model
    passes = 2 if config.train.r_drop else 1
    src, tgt = shape.rows * shape.src * passes, shape.rows * shape.tgt * passes
    wide = model.ffn * {"relu": 1, "gelu": 2, "swiglu": 4}[model.activation] + (2 * model.ffn if model.activation_dropout else 0)
    mask = 1 if model.dropout else 0
    turned = 2 if model.positions == "rope" else 0
    dim, whole = model.dim, FLOAT  # the residual stays in fp32
    half = FLOAT if precision == "fp32" else 2
    attended = FLOAT if on_cpu else half  # on a CPU attention is in fp32

    def weights(queries: int, keys: int) -> int:
        copies = 2 if model.attention_dropout else int(queries <= SHORT)
        return copies * FLOAT * shape.rows * passes * model.heads * queries * keys if on_cpu else 0

    residual = dim * (whole + mask)
    inner = half * (dim + wide)
    itself = dim * (half * 2 + attended * (4 + turned))
    encoder = src * (2 * residual + inner + itself) + weights(shape.src, shape.src)
    across = tgt * dim * (half * 2 + attended * 2) + src * dim * 2 * attended
    decoder = tgt * (3 * residual + inner + itself) + across + weights(shape.tgt, shape.tgt) + weights(shape.tgt, shape.src)
    layers = model.encoder_layers, model.decoder_layers
    if model.gradient_checkpointing:  # what goes into each, and one of them whole
        return (layers[0] * src + layers[1] * tgt) * dim * whole + max(encoder, decoder)
    return layers[0] * encoder + layers[1] * decoder + (src + tgt) * residual


def output_layer(config: Config, shape: Shape, *, vocab: int) -> int:
    """Bytes that the output layer and its loss work in: a chunk of logits a few times over, and the gradient of its weights."""
    rows = min(CHUNK, shape.rows * shape.tgt * (2 if config.train.r_drop else 1))
    return FLOAT * (3 * rows * vocab + vocab * config.model.dim)


def checkpoint_size(found: Parameters, *, ema: bool) -> int:
    """Bytes of a checkpoint: weights, their moving average, the optimiser's two moments."""
    return FLOAT * (found.total * (1 + ema) + 2 * found.trained) + STATE


def checkpoints_size(config: Config, found: Parameters) -> int:
    """Bytes of all that are there at once: those kept, the best, one that is being written, and the average, of weights alone."""
    average = config.train.average
    count = config.train.keep + max(1, average.best) + 1
    return count * checkpoint_size(found, ema=bool(config.train.ema)) + bool(average.wanted) * found.total * FLOAT
