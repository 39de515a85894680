"""Rotary positions as the paper derives them (Su et al. 2021, §3.2.1, https://arxiv.org/abs/2104.09864): complex numbers, turned."""

from __future__ import annotations

import cmath

from tests.oracle.attention import Matrix


def rotated(xs: Matrix, *, start: int = 0) -> Matrix:
    """Vector n stands at position start + n: its pair (i, i + E/2), as a complex number, is turned by position / 10000^(2i/E)."""
    half = len(xs[0]) // 2
    turned = []
    for position, x in enumerate(xs, start):
        pairs = [complex(x[i], x[i + half]) * cmath.exp(1j * position / 10000 ** (2 * i / (2 * half))) for i in range(half)]
        turned.append([*(z.real for z in pairs), *(z.imag for z in pairs)])
    return turned
