"""Attention as the paper writes it, softmax(Q Kᵀ / √d_k) V (Vaswani et al. 2017, §3.2), in loops over Python floats (float64)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

Vector = list[float]
Matrix = list[Vector]
Allowed = Sequence[Sequence[bool]]
"""allowed[t][s]: query t may look at key s."""


class Affine(NamedTuple):
    """x → weight · x + bias."""

    weight: Matrix
    bias: Vector

    def __call__(self, xs: Matrix) -> Matrix:
        return [[dot(row, x) + b for row, b in zip(self.weight, self.bias, strict=True)] for x in xs]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def attention(queries: Matrix, keys: Matrix, values: Matrix, *, allowed: Allowed) -> Matrix:
    """One head: for each query the mean of the values, weighted by the softmax of query · key / √d_k."""
    means = []
    for t, query in enumerate(queries):
        weights = [math.exp(dot(query, key) / math.sqrt(len(query))) if allowed[t][s] else 0.0 for s, key in enumerate(keys)]
        means.append([dot(weights, [value[e] for value in values]) / sum(weights) for e in range(len(values[0]))])
    return means


def multi_head(
    asking: Matrix,
    asked: Matrix,
    *,
    heads: int,
    q: Affine,
    k: Affine,
    v: Affine,
    out: Affine,
    allowed: Allowed,
    turn: Callable[[Matrix], Matrix] = lambda xs: xs,
) -> Matrix:
    """Each head has its own equal share of the columns; what they find is put side by side again. `turn`: what positions do to q and k."""
    queries, keys, values = q(asking), k(asked), v(asked)
    size = len(queries[0]) // heads
    found: Matrix = [[] for _ in asking]
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        turned = (turn([x[own] for x in side]) for side in (queries, keys))
        rows = attention(*turned, [x[own] for x in values], allowed=allowed)
        found = [left + right for left, right in zip(found, rows, strict=True)]
    return out(found)
