"""Attention of short sequences on a CPU by plain products, from what a linear layer gives to what the next one takes.

Each tensor is laid out head by head, and brought to fp32, in one pass, and its gradient back in one: autograd took two or three for each.
Legend as in `attention`: B sentences, T queries, S keys, H heads, E head size, D = H·E, P parts of a packed tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def by_heads(x_BTD: Tensor, heads: int) -> Tensor:
    """(B, T, D) → (B, H, T, E), a copy in fp32 (or fp64)."""
    x_BHTE = x_BTD.unflatten(-1, (heads, -1)).transpose(1, 2)
    return x_BHTE.to(torch.promote_types(x_BTD.dtype, torch.float32), memory_format=torch.contiguous_format)


def packed(parts_BHTE: list[Tensor], dtype: torch.dtype) -> Tensor:
    """P times (B, H, T, E) → (B, T, P·D)."""
    B, H, T, E = parts_BHTE[0].shape
    x_BTPHE = parts_BHTE[0].new_empty(B, T, len(parts_BHTE), H, E, dtype=dtype)
    for place, part in enumerate(parts_BHTE):
        x_BTPHE[:, :, place].copy_(part.transpose(1, 2))
    return x_BTPHE.flatten(2)


class AttentionByProducts(torch.autograd.Function):
    """softmax(q kᵀ / √E) v for each head (Vaswani et al. 2017, eq. 1), in fp32 or better."""

    @staticmethod
    def forward(ctx: Any, heads: int, allowed: Tensor | None, *projected: Tensor) -> Tensor:
        """(B, T, D); `projected` are queries, keys and values, packed in one or more tensors; `allowed` is (B, 1, 1 or T, S) or (T, S)."""
        dim = sum(x.size(-1) for x in projected) // 3
        ctx.heads, ctx.parts, ctx.dtype = heads, [x.size(-1) // dim for x in projected], projected[0].dtype
        with torch.autocast("cpu", enabled=False):
            q, k, v = (by_heads(part, heads) for x in projected for part in x.split(dim, dim=-1))
            scores_BHTS = (q @ k.mT).mul_(q.size(-1) ** -0.5)
            if allowed is not None:
                scores_BHTS.masked_fill_(~allowed, -torch.inf)
            probs_BHTS = scores_BHTS.softmax(dim=-1)
            ctx.save_for_backward(q, k, v, probs_BHTS)
            return packed([probs_BHTS @ v], ctx.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BTD: Tensor) -> tuple[Tensor | None, ...]:
        """Of each projected tensor."""
        q, k, v, probs_BHTS = ctx.saved_tensors
        with torch.autocast("cpu", enabled=False):
            grad_BHTE = by_heads(grad_BTD, ctx.heads)
            pull_BHTS = (grad_BHTE @ v.mT).mul_(probs_BHTS)
            pull_BHTS.addcmul_(probs_BHTS, pull_BHTS.sum(dim=-1, keepdim=True), value=-1).mul_(q.size(-1) ** -0.5)
            grads = [pull_BHTS @ k, pull_BHTS.mT @ q, probs_BHTS.mT @ grad_BHTE]
        return None, None, *(packed([grads.pop(0) for _ in range(parts)], ctx.dtype) for parts in ctx.parts)
