"""Chance as a function: seeds made from numbers, and permutations that are computed place by place instead of being kept as a list.

Both depend on nothing but their arguments, neither on what was drawn before nor on the version of a library.
"""

from __future__ import annotations

from hashlib import blake2b
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

ROUNDS = 6
"""Of the network. Luby and Rackoff (1988) need 4 with perfect round functions; two more cost little."""


def seed_of(*numbers: int) -> int:
    """A seed, 64 bits, that is another one for any other numbers."""
    return int.from_bytes(blake2b(repr(numbers).encode("ascii"), digest_size=8).digest(), "little")


class Permutation:
    """A pseudo-random bijection of 0 … count - 1, chosen by a key of numbers; it takes no memory whatever the count.

    A Feistel network over pairs of digits of base √count, whose few values above the count are sent through it again until they are
    below (cycle walking; Black and Rogaway 2002).
    """

    def __init__(self, count: int, *key: int) -> None:
        self.count = count
        self._side = np.uint64(isqrt(max(count, 1) - 1) + 1)
        self._keys = [np.uint64(seed_of(*key, number)) for number in range(ROUNDS)]

    def __call__(self, places: Indices) -> Indices:
        """Where each place is sent."""
        values = self._network(places.astype(np.uint64))
        while (outside := values >= self.count).any():
            values[outside] = self._network(values[outside])
        return values.astype(np.int64)

    def _network(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        side = self._side
        left, right = values // side, values % side
        for key in self._keys:
            shift = ((_mixed(right ^ key) >> np.uint64(32)) * side) >> np.uint64(32)  # 0 … side - 1
            left += shift
            left -= side * (left >= side)
            left, right = right, left
        return left * side + right


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the result depends on every bit of the value (the finaliser of MurmurHash3)."""
    values = values ^ (values >> np.uint64(33))
    values *= np.uint64(0xFF51AFD7ED558CCD)
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xC4CEB9FE1A85EC53)
    values ^= values >> np.uint64(33)
    return values
