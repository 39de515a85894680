"""Dropout whose random bits are cheap on a CPU, where `bernoulli_` takes ten times as long as the rest of the operation.

In compiled layers it is torch's own, which is compiled with what is around it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

STEPS = 1 << 16  # a 16-bit draw for each element: p is rounded to 1/65536 and the scale follows, so that the mean is kept exactly


def scaled_mask(like: Tensor, dropped: int) -> Tensor:
    """Mask for a CPU tensor: 0 with probability dropped / 65536, else the factor that keeps the mean.

    The bits come from a generator seeded by torch's own, whose state is therefore all that has to be saved to resume.
    """
    count = like.numel()
    seed = int(torch.randint(1 << 62, ()))
    bits = np.random.SFC64(seed).random_raw(-(-count // 4)).view(np.uint16)[:count]
    mask = np.multiply(bits >= dropped, np.float32(STEPS / (STEPS - dropped)), dtype=np.float32)
    return torch.from_numpy(mask).view(like.shape).to(like.dtype)


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
        return x * scaled_mask(x, self.dropped)

    def add(self, x: Tensor, branch: Tensor) -> Tensor:
        """x + dropout(branch), in one pass on a CPU; the shapes are equal."""
        if not self.training or self.dropped == 0:
            return x + branch
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return x + F.dropout(branch, self.p)
        return torch.addcmul(x, branch.to(x.dtype), scaled_mask(x, self.dropped))

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
