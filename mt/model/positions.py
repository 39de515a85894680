"""Where a token stands: sinusoids added to its embedding, or queries and keys turned.

Legend: B sentences, T positions, H heads, E head size, D width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def angles(length: int, dim: int) -> Tensor:
    """pos / 10000^(2i/D), (T, D/2), in float64."""
    position_T = torch.arange(length, dtype=torch.float64)
    rate = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return torch.outer(position_T, rate)


def sinusoids(length: int, dim: int) -> Tensor:
    """Position table (T, D), sin(pos / 10000^(2i/D)) in the first half and the cosines in the second (Vaswani et al. 2017, §3.5)."""
    angle = angles(length, dim)
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def rotations(length: int, head: int) -> Tensor:
    """Table (T, 2, E): what a vector is multiplied by, [cos, cos], and what its halves, swapped, are: [-sin, sin]."""
    angle = angles(length, head)
    return torch.stack([torch.cat([angle.cos(), angle.cos()], dim=1), torch.cat([-angle.sin(), angle.sin()], dim=1)], dim=1).float()


class Table(nn.Module):
    """A row for each position, made by a function of (length, width); it grows with what is asked for, and is in no checkpoint."""

    def __init__(self, make: Callable[[int, int], Tensor], width: int) -> None:
        super().__init__()
        self.make, self.width = make, width
        self.register_buffer("rows", make(512, width), persistent=False)
        self.rows: Tensor

    def forward(self, start: int, end: int) -> Tensor:
        """The rows of positions from start up to end."""
        rows = self.rows
        if end > rows.size(0):
            with torch.inference_mode(False):  # an inference tensor could not be written to later, as DDP does with buffers
                self.rows = rows = self.make(2 * end, self.width).to(rows)
        return rows[start:end]  # not `self.rows`: another thread may have replaced them by fewer


class Rotary(nn.Module):
    """Turns pairs of numbers of a query or key by angles that grow with its position, so that products of the two see the distance alone.

    Su et al. 2021, eq. 34 (https://arxiv.org/abs/2104.09864), but number i is paired with i + E/2 instead of its neighbour:
    the same for weights whose rows are in another order.
    """

    def __init__(self, head: int) -> None:
        super().__init__()
        self.table = Table(rotations, head)

    def forward(self, x_BHTE: Tensor, start: int) -> Tensor:
        """The same shape and precision; the first of the positions is `start`."""
        cos_TE, sin_TE = self.table(start, start + x_BHTE.size(-2)).unbind(1)
        return (x_BHTE * cos_TE + x_BHTE.roll(x_BHTE.size(-1) // 2, dims=-1) * sin_TE).to(x_BHTE.dtype)


def unturned(x_BHTE: Tensor, start: int) -> Tensor:  # noqa: ARG001
    """What stands in the place of `Rotary` where embeddings know their positions."""
    return x_BHTE
