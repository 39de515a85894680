"""The order of the data: a pure function of (seed, epoch), so that a position in it is two integers and resuming is a jump.

A permutation of the epoch is cut into windows, each window sorted by length and cut into batches of a token budget, and the batches
shuffled. Every pair is seen exactly once per epoch (a corpus of weight w: w times). Legend: N pairs, M places of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mt.data.store import Span

WINDOW = 1 << 17  # places sorted together: enough for batches of equal length, little enough to sort in a moment

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Cursor:
    """The next batch to be trained on."""

    epoch: int = 0
    batch: int = 0


def epoch_order(spans: Sequence[Span], *, seed: int, epoch: int) -> Indices:
    """The pairs of an epoch in random order, (M,); a corpus of weight 2.5 has two whole passes and half of a third, at least one pair."""
    rng = np.random.default_rng([seed, epoch])
    passes = [
        rng.permutation(span.count)[: max(1, round(share * span.count))] + span.start for span in spans for share in shares(span.weight)
    ]
    return rng.permutation(np.concatenate(passes))


def shares(weight: float) -> Iterator[float]:
    """2.5 → 1, 1, 0.5."""
    while weight > 1e-9:
        yield min(weight, 1.0)
        weight -= 1.0


def cut(order: Indices, sizes_N2: NDArray[np.int64], *, budget: int) -> Iterator[Indices]:
    """Cut places that are sorted by length into batches of at most `budget` = rows × longest side; a longer pair is a batch by itself."""
    longest, begin = 0, 0
    for end, size in enumerate(sizes_N2.max(axis=1).tolist()):
        if end > begin and max(longest, size) * (end + 1 - begin) > budget:
            yield order[begin:end]
            longest, begin = 0, end
        longest = max(longest, size)
    yield order[begin:]


def sizes(lengths_N2: NDArray[np.int64], *, tagged: bool) -> NDArray[np.int64]:
    """Places that the two sides take, (N, 2): their pieces, the end mark, and before the source a tag if there are tags."""
    return lengths_N2 + np.array([2 if tagged else 1, 1])


def epoch_batches(
    lengths_N2: NDArray[np.int64], spans: Sequence[Span], *, budget: int, seed: int, epoch: int, tagged: bool = False
) -> list[Indices]:
    """All batches of an epoch, in the order they are trained on; lengths are in pieces, end mark and tag are added here."""
    order = epoch_order(spans, seed=seed, epoch=epoch)
    batches: list[Indices] = []
    for start in range(0, len(order), WINDOW):
        window = order[start : start + WINDOW]
        sizes_N2 = sizes(lengths_N2[window], tagged=tagged)
        by_length = np.lexsort((sizes_N2[:, 0], sizes_N2[:, 1]))  # target first, source among equals; stable, so equals stay shuffled
        batches.extend(cut(window[by_length], sizes_N2[by_length], budget=budget))
    shuffle = np.random.default_rng([seed, epoch, 1]).permutation(len(batches))
    return [batches[i] for i in shuffle]
