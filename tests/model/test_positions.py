from __future__ import annotations

import math

import torch

from mt.model.positions import sinusoids


def test_table_is_the_formula_to_the_nearest_float32() -> None:
    length, dim = 40, 10
    angles = [[position / 10000 ** (2 * i / dim) for i in range(dim // 2)] for position in range(length)]
    expected = [[*map(math.sin, row), *map(math.cos, row)] for row in angles]
    assert torch.equal(sinusoids(length, dim), torch.tensor(expected, dtype=torch.float64).float())


def test_a_longer_table_begins_with_the_shorter() -> None:
    assert torch.equal(sinusoids(50, 6)[:20], sinusoids(20, 6))
