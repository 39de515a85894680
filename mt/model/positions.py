"""Sinusoidal positions. Legend: T positions, D model width."""

from __future__ import annotations

import torch
from torch import Tensor


def sinusoids(length: int, dim: int) -> Tensor:
    """Position table (T, D), sin(pos / 10000^(2i/D)) in the first half and the cosines in the second (Vaswani et al. 2017, §3.5)."""
    position_T = torch.arange(length, dtype=torch.float64)
    rate = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.outer(position_T, rate)
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()
