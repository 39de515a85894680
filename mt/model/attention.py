"""Multi-head attention over `scaled_dot_product_attention` (Vaswani et al. 2017, §3.2, https://arxiv.org/abs/1706.03762).

Legend: B sentences, R decoder rows, G rows per sentence (R = B·G), T queries, S keys, H heads, E head size, D = H·E.
Masks are bool and named `allowed_*`: True = may be attended to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mt.model.positions import unturned
from mt.model.products import AttentionByProducts

SHORT = 64
"""Positions up to which whole sequences are attended by products on a CPU, in 0.5 to 0.9 of the time of the fused kernel (docs/log.md)."""
FEW = 24
"""Queries up to which it is so where each tensor is laid out by itself."""


def split_heads(x_BTD: Tensor, heads: int) -> Tensor:
    """(B, T, D) → (B, H, T, E), a view."""
    return x_BTD.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x_BHTE: Tensor) -> Tensor:
    """(B, H, T, E) → (B, T, D)."""
    return x_BHTE.transpose(1, 2).flatten(2)


def attendable(x: Tensor) -> Tensor:
    """In the numbers of attention: on a CPU fp32 or better, as the backward pass of the bf16 kernel takes 4.5 times as long there."""
    return x.float() if x.device.type == "cpu" and x.dtype in (torch.bfloat16, torch.float16) else x


def attend(
    q_BHTE: Tensor, k_BHSE: Tensor, v_BHSE: Tensor, *, allowed: Tensor | None = None, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """softmax(q kᵀ / √E) v for each head, (B, H, T, E) in the numbers of q; allowed is (B, 1, 1 or T, S)."""
    on_cpu, dtype = q_BHTE.device.type == "cpu", q_BHTE.dtype
    if on_cpu and dtype not in (torch.float32, torch.float64):
        with torch.autocast("cpu", enabled=False):
            q, k, v = attendable(q_BHTE), attendable(k_BHSE), attendable(v_BHSE)
            return attend(q, k, v, allowed=allowed, causal=causal, dropout=dropout).to(dtype)
    if on_cpu and q_BHTE.size(-2) <= FEW and not dropout:
        return attend_by_products(q_BHTE, k_BHSE, v_BHSE, allowed=triangle(q_BHTE.size(-2)) if causal else allowed)
    return F.scaled_dot_product_attention(q_BHTE, k_BHSE, v_BHSE, attn_mask=allowed, is_causal=causal, dropout_p=dropout)


def triangle(positions: int) -> Tensor:
    """What each position of a sequence may attend to: itself and those before it, (T, T), on the CPU."""
    return torch.ones(positions, positions, dtype=torch.bool).tril()


def attend_by_products(q_BHTE: Tensor, k_BHSE: Tensor, v_BHSE: Tensor, *, allowed: Tensor | None) -> Tensor:
    """softmax(q kᵀ / √E) v with all weights in memory."""
    return weights(q_BHTE, k_BHSE, allowed=allowed) @ v_BHSE


def weights(q_BHTE: Tensor, k_BHSE: Tensor, *, allowed: Tensor | None) -> Tensor:
    """softmax(q kᵀ / √E), how much of each value a query takes: (B, H, T, S)."""
    scores_BHTS = q_BHTE * q_BHTE.size(-1) ** -0.5 @ k_BHSE.transpose(-1, -2)
    if allowed is not None:
        scores_BHTS = scores_BHTS.masked_fill(~allowed, -torch.inf)
    return scores_BHTS.softmax(dim=-1)


def attend_whole(
    projected: Sequence[Tensor],
    heads: int,
    *,
    turn: Callable[[Tensor, int], Tensor] = unturned,
    allowed: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Attention of whole sequences, (B, T, D), from queries, keys and values as linear layers give them, packed in one tensor or two."""
    T, width = projected[0].size(1), sum(x.size(-1) for x in projected)
    by_products = T <= SHORT and turn is unturned and not dropout and not torch.compiler.is_compiling()
    if by_products and projected[0].device.type == "cpu":
        mask = triangle(T) if causal else allowed
        joined: Tensor = AttentionByProducts.apply(heads, mask, *projected)  # type: ignore[no-untyped-call]
        return joined
    q, k, v = (split_heads(part, heads) for x in projected for part in x.split(width // 3, dim=-1))
    return join_heads(attend(turn(q, 0), turn(k, 0), v, allowed=allowed, causal=causal, dropout=dropout))


class SelfAttention(nn.Module):
    """Attention of a sequence to itself; one matrix product gives queries, keys and values.

    `turn` is what positions do to queries and keys, given the first position: nothing, or `Rotary`.
    """

    def __init__(self, dim: int, heads: int, *, dropout: float = 0.0, turn: Callable[[Tensor, int], Tensor] = unturned) -> None:
        super().__init__()
        self.heads, self.dropout, self.turn = heads, dropout, turn
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def project(self, x_BTD: Tensor, *, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of positions from `start` on, each (B, H, T, E)."""
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(x_BTD).chunk(3, dim=-1))
        return self.turn(q, start), self.turn(k, start), v

    def forward(self, x_BTD: Tensor, *, allowed: Tensor | None = None, causal: bool = False) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        dropout = self.dropout if self.training else 0.0
        return self.out(attend_whole([self.qkv(x_BTD)], self.heads, turn=self.turn, allowed=allowed, causal=causal, dropout=dropout))


class CrossAttention(nn.Module):
    """Attention of the decoder to the encoder's output."""

    def __init__(self, dim: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)

    def project_memory(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, each (B, H, S, E)."""
        k, v = self.kv(memory_BSD).chunk(2, dim=-1)
        return split_heads(k, self.heads), split_heads(v, self.heads)

    def forward(self, y_BTD: Tensor, memory_BSD: Tensor, *, allowed: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        dropout = self.dropout if self.training else 0.0
        return self.out(attend_whole([self.q(y_BTD), self.kv(memory_BSD)], self.heads, allowed=allowed, dropout=dropout))

    def look(self, y_BTD: Tensor, memory: tuple[Tensor, Tensor], *, allowed: Tensor) -> Tensor:
        """The same, in evaluation, with a memory that `project_memory` has given."""
        q = split_heads(self.q(y_BTD), self.heads)
        return self.out(join_heads(attend(q, *memory, allowed=allowed)))

    def weights(self, y_BTD: Tensor, memory: tuple[Tensor, Tensor], *, allowed: Tensor) -> Tensor:
        """How much of each source position `forward` takes, (B, H, T, S), in fp32 or better."""
        q, (k, _) = split_heads(self.q(y_BTD), self.heads), memory
        exact = torch.promote_types(q.dtype, torch.float32)
        return weights(q.to(exact), k.to(exact), allowed=allowed)
