"""Batches side by side: a CPU is better used by several searches with a share of its threads each than by one after the other with all.

Products of few rows share out badly, what lies between them not at all. Python's own part of a step, a tenth, is for one worker at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Batch = TypeVar("Batch")
Found = TypeVar("Found")

MOST = 4
"""More would wait for Python."""


def workers_on(device: torch.device) -> int:
    """How many batches are searched at a time."""
    return min(torch.get_num_threads(), MOST) if device.type == "cpu" else 1


def abreast(search: Callable[[Batch], Found], batches: Sequence[Batch], device: torch.device) -> Iterator[Found]:
    """What the search finds for each batch, in order."""
    workers = min(workers_on(device), len(batches))
    if workers <= 1:
        yield from map(search, batches)
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(threads // workers)
    try:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(search, batches)
    finally:
        torch.set_num_threads(threads)
