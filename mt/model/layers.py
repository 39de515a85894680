"""Encoder and decoder layers (Vaswani et al. 2017, §3.1), pre-norm or post-norm.

Legend: B sentences, S source, T target positions, D width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from mt.model.attention import CrossAttention, SelfAttention
from mt.model.dropout import Dropout


class Residual(nn.Module):
    """x + dropout(f(norm(x))) (pre-norm), or norm(x + dropout(f(x))) (post-norm)."""

    def __init__(self, dim: int, *, dropout: float, pre_norm: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.dropout = Dropout(dropout)
        self.pre_norm = pre_norm

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        if self.pre_norm:
            return self.dropout.add(x_BTD, sublayer(self.norm(x_BTD)))
        return self.norm(self.dropout.add(x_BTD, sublayer(x_BTD)))


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them, the same at each position."""

    def __init__(self, dim: int, ffn: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, ffn)
        self.outer = nn.Linear(ffn, dim)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        return self.outer(F.relu(self.inner(x_BTD)))  # not in place: the gradient of that, on a view, copies it three times


class EncoderLayer(nn.Module):
    """Self-attention, feed-forward."""

    def __init__(self, dim: int, ffn: int, heads: int, *, dropout: float, attention_dropout: float, pre_norm: bool) -> None:
        super().__init__()
        self.attention = SelfAttention(dim, heads, dropout=attention_dropout)
        self.feed_forward = FeedForward(dim, ffn)
        self.attention_residual = Residual(dim, dropout=dropout, pre_norm=pre_norm)
        self.feed_forward_residual = Residual(dim, dropout=dropout, pre_norm=pre_norm)

    def forward(self, x_BSD: Tensor, allowed_B11S: Tensor) -> Tensor:
        """(B, S, D) → (B, S, D)."""
        x_BSD = self.attention_residual(x_BSD, lambda h: self.attention(h, allowed=allowed_B11S))
        return self.feed_forward_residual(x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward."""

    def __init__(self, dim: int, ffn: int, heads: int, *, dropout: float, attention_dropout: float, pre_norm: bool) -> None:
        super().__init__()
        self.attention = SelfAttention(dim, heads, dropout=attention_dropout)
        self.cross = CrossAttention(dim, heads, dropout=attention_dropout)
        self.feed_forward = FeedForward(dim, ffn)
        self.attention_residual = Residual(dim, dropout=dropout, pre_norm=pre_norm)
        self.cross_residual = Residual(dim, dropout=dropout, pre_norm=pre_norm)
        self.feed_forward_residual = Residual(dim, dropout=dropout, pre_norm=pre_norm)

    def forward(self, y_BTD: Tensor, memory_BSD: Tensor, allowed_B11S: Tensor) -> Tensor:
        """All target positions at once, (B, T, D) → (B, T, D). Padding is last, so causality alone keeps it out of real positions."""
        y_BTD = self.attention_residual(y_BTD, lambda h: self.attention(h, causal=True))
        y_BTD = self.cross_residual(y_BTD, lambda h: self.cross(h, self.cross.project_memory(memory_BSD), allowed=allowed_B11S))
        return self.feed_forward_residual(y_BTD, self.feed_forward)
