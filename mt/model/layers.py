"""Encoder and decoder layers (Vaswani et al. 2017, §3.1), pre-norm or post-norm, and what they can be made of.

Legend: B sentences, S source, T target positions, H heads, D width, F inner width of the feed-forward.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from mt.model.attention import CrossAttention, SelfAttention
from mt.model.dropout import Dropout

Activation = Literal["relu", "gelu", "swiglu"]
NormKind = Literal["layer", "rms"]

NORMS: dict[NormKind, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "rms": partial(nn.RMSNorm, eps=1e-5)}
"""layer: (x - mean) / deviation (Ba et al. 2016, https://arxiv.org/abs/1607.06450), with weights and biases.
rms: x / root of the mean square (Zhang & Sennrich 2019, eq. 4, https://arxiv.org/abs/1910.07467), with weights alone."""


def swiglu(x_BT2F: Tensor) -> Tensor:
    """silu(a) · b of the halves a and b, (B, T, F) (Shazeer 2020, eq. 5, https://arxiv.org/abs/2002.05202)."""
    gate_BTF, value_BTF = x_BT2F.chunk(2, dim=-1)
    return F.silu(gate_BTF) * value_BTF


ACTIVATIONS: dict[Activation, tuple[Callable[[Tensor], Tensor], int]] = {"relu": (F.relu, 1), "gelu": (F.gelu, 1), "swiglu": (swiglu, 2)}
"""The function, and how many times as much as it gives goes in. gelu: x · Φ(x), exactly (Hendrycks & Gimpel 2016, https://arxiv.org/abs/1606.08415)."""


class Residual(nn.Module):
    """x + dropout(f(norm(x))) (pre-norm), or norm(x + dropout(f(x))) (post-norm)."""

    def __init__(self, dim: int, *, dropout: float, pre_norm: bool, norm: NormKind = "layer") -> None:
        super().__init__()
        self.norm = NORMS[norm](dim)
        self.dropout = Dropout(dropout)
        self.pre_norm = pre_norm

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        if self.pre_norm:
            return self.dropout.add(x_BTD, sublayer(self.norm(x_BTD)))
        return self.norm(self.dropout.add(x_BTD, sublayer(x_BTD)))

    def entering(self, x_BTD: Tensor) -> Tensor:
        """What the sublayer is given."""
        return self.norm(x_BTD) if self.pre_norm else x_BTD


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, the same at each position."""

    def __init__(self, dim: int, ffn: int, *, activation: Activation = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        self.activation, wider = ACTIVATIONS[activation]
        self.inner = nn.Linear(dim, wider * ffn)
        self.dropout = Dropout(dropout)
        self.outer = nn.Linear(ffn, dim)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        inner_BTF = self.activation(self.inner(x_BTD))  # not in place: the gradient of that, on a view, copies it three times
        return self.outer(self.dropout(inner_BTF))


class EncoderLayer(nn.Module):
    """Self-attention, feed-forward, each within a residual."""

    def __init__(self, attention: SelfAttention, feed_forward: FeedForward, residual: Callable[[], Residual]) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_residual, self.feed_forward_residual = residual(), residual()

    def forward(self, x_BSD: Tensor, allowed_B11S: Tensor) -> Tensor:
        """(B, S, D) → (B, S, D)."""
        x_BSD = self.attention_residual(x_BSD, lambda h: self.attention(h, allowed=allowed_B11S))
        return self.feed_forward_residual(x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward, each within a residual."""

    def __init__(
        self, attention: SelfAttention, cross: CrossAttention, feed_forward: FeedForward, residual: Callable[[], Residual]
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.attention_residual, self.cross_residual, self.feed_forward_residual = residual(), residual(), residual()

    def forward(self, y_BTD: Tensor, memory_BSD: Tensor, allowed_B11S: Tensor) -> Tensor:
        """All target positions at once, (B, T, D) → (B, T, D). Padding is last, so causality alone keeps it out of real positions."""
        y_BTD = self.attention_residual(y_BTD, lambda h: self.attention(h, causal=True))
        y_BTD = self.cross_residual(y_BTD, lambda h: self.cross(h, memory_BSD, allowed=allowed_B11S))
        return self.feed_forward_residual(y_BTD, self.feed_forward)

    def attention_to_source(self, y_BTD: Tensor, memory_BSD: Tensor, allowed_B11S: Tensor) -> Tensor:
        """The weights with which `forward` looks at the source, (B, H, T, S)."""
        y_BTD = self.attention_residual(y_BTD, lambda h: self.attention(h, causal=True))
        return self.cross.weights(self.cross_residual.entering(y_BTD), self.cross.project_memory(memory_BSD), allowed=allowed_B11S)
