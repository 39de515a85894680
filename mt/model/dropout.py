"""Dropout whose random bits are cheap on a CPU, where `bernoulli_` takes ten times as long as the rest of the operation.

In compiled layers it is torch's own, which is compiled with what is around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

STEPS = 1 << 16  # a 16-bit draw for each element: p is rounded to 1/65536 and the scale follows, so that the mean is kept exactly


def draw_kept(shape: torch.Size, dropped: int) -> Tensor:
    """False with probability dropped / 65536, for each element, on the CPU.

    The bits come from a generator seeded by torch's own, whose state is therefore all that has to be saved to resume.
    """
    count = shape.numel()
    seed = int(torch.randint(1 << 62, ()))
    bits = np.random.SFC64(seed).random_raw(-(-count // 4)).view(np.uint16)[:count]
    return torch.from_numpy(bits >= dropped).view(shape)


def factors(kept: Tensor, dropped: int, dtype: torch.dtype) -> Tensor:
    """What to multiply with: 0, or where an element is kept the factor that keeps the mean. numpy takes a third of torch's time for it."""
    factor = np.float32(STEPS / (STEPS - dropped))
    return torch.from_numpy(np.multiply(kept.flatten().numpy(), factor, dtype=np.float32)).view(kept.shape).to(dtype)


class AddDropped(torch.autograd.Function):
    """x + dropout(branch) on a CPU. A byte an element is kept for the backward pass, where autograd would keep the factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, branch: Tensor, dropped: int) -> Tensor:
        """The sum, in the numbers of x."""
        kept = draw_kept(x.shape, dropped)
        ctx.save_for_backward(kept)
        ctx.dropped, ctx.dtype = dropped, branch.dtype
        return torch.addcmul(x, branch.to(x.dtype), factors(kept, dropped, x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Of x as it comes, of the branch where it was kept."""
        (kept,) = ctx.saved_tensors
        return grad, (grad * factors(kept, ctx.dropped, grad.dtype)).to(ctx.dtype), None


class Dropout(nn.Module):
    """Zero each element with probability p and scale the others by 1 / (1 - p), only while training (Srivastava et al. 2014)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.dropped = min(round(p * STEPS), STEPS - 1)

    def forward(self, x: Tensor) -> Tensor:
        """Any shape in, the same shape out."""
        if not self.training or self.dropped == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        return x * factors(draw_kept(x.shape, self.dropped), self.dropped, x.dtype)

    def add(self, x: Tensor, branch: Tensor) -> Tensor:
        """x + dropout(branch), in one pass on a CPU; the shapes are equal."""
        if not self.training or self.dropped == 0:
            return x + branch
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return x + F.dropout(branch, self.p)
        added: Tensor = AddDropped.apply(x, branch, self.dropped)  # type: ignore[no-untyped-call]
        return added

    def extra_repr(self) -> str:
        """Shown by `print(model)`."""
        return f"p={self.p}"


class WordDropout(Dropout):
    """Dropout whose elements are whole tokens: all numbers of an embedding are zero, or none is (Gal & Ghahramani 2016, https://arxiv.org/abs/1512.05287).

    As a lever of translation: Sennrich et al. 2016, https://arxiv.org/abs/1606.02891.
    """

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        if not self.training or self.dropped == 0:
            return x_BTD
        return x_BTD * super().forward(x_BTD.new_ones(*x_BTD.shape[:-1], 1))
