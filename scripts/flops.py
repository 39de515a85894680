"""What an update costs in floating-point operations, and how many a device makes in a second.

A product of an (m, k) and a (k, n) matrix counts 2·m·k·n. Of a pair with S source and T target positions (end mark included), a model of
width D, inner width F and vocabulary V, with k matrices in a feed-forward (2, of swiglu 3), makes in the forward pass

    S · 2 · (encoder layers · (4·D² + k·D·F) + decoder layers · 2·D²)        the latter: keys and values of the source in each decoder layer
    T · 2 · (decoder layers · (6·D² + k·D·F) + D·V)
    4·D · (encoder layers · S² + decoder layers · (T² + T·S))                attention, both products; the causal half is counted as well

and in training three times as many: two more products, as large, for the gradients of both factors. What is computed twice, in attention
kernels or for gradient checkpointing, counts once. Utilisation is that of the real tokens: padding is time, but no use.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from mt.config.schema import ModelConfig
from mt.data.batches import Batch

PEAKS = {
    "B200": 2250e12,
    "H200": 989e12,
    "GH200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L4": 121e12,
    "A10": 125e12,
}
"""bf16 operations a second, dense, by what the device calls itself: data sheets of NVIDIA; the first name that is part of it."""


def peak_of(device: str) -> float | None:
    """Operations a second that a device promises in bf16; None where that is unknown."""
    return next((peak for name, peak in PEAKS.items() if name in device), None)


@dataclass(frozen=True)
class Dimensions:
    """What the cost of a model depends on."""

    dim: int
    feed_forward: int
    encoder_layers: int
    decoder_layers: int
    vocab: int

    @classmethod
    def of(cls, cfg: ModelConfig, *, vocab: int) -> Dimensions:
        """Those of a config, with the pieces of the target side."""
        matrices = 3 if cfg.activation == "swiglu" else 2
        return cls(cfg.dim, matrices * cfg.dim * cfg.ffn, cfg.encoder_layers, cfg.decoder_layers, vocab)

    def training_flops(self, src_N: Tensor, tgt_N: Tensor, *, projected: int | None = None) -> int:
        """Of N pairs with these lengths; `projected`: positions that go through the output layer, if not all of the target."""
        square, encoder, decoder = self.dim**2, self.encoder_layers, self.decoder_layers
        source = int(src_N.sum()) * 2 * (encoder * (4 * square + self.feed_forward) + decoder * 2 * square)
        target = int(tgt_N.sum()) * 2 * decoder * (6 * square + self.feed_forward)
        output = (int(tgt_N.sum()) if projected is None else projected) * 2 * self.dim * self.vocab
        attention = 4 * self.dim * int((encoder * src_N**2 + decoder * (tgt_N**2 + tgt_N * src_N)).sum())
        return 3 * (source + target + output + attention)

    def of_batch(self, batch: Batch, *, pad: int, padding: bool = False) -> int:
        """Of its real tokens, or of what is computed, padding included."""
        src_BS, gold_BT = batch.src_BS, batch.gold_BT
        src_B, tgt_B = (src_BS != pad).sum(dim=1), (gold_BT != pad).sum(dim=1)
        if padding:
            whole = (src_B * 0 + src_BS.size(1), tgt_B * 0 + gold_BT.size(1))
            return self.training_flops(*whole, projected=int(tgt_B.sum()))
        return self.training_flops(src_B, tgt_B)
