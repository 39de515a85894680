"""What work with tensors asks of its own process."""

from __future__ import annotations

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # from glibc's malloc.h
GIGABYTE = 1 << 30
TRAINED, SEARCHED = 8, 32
"""Compiled matrix products that are kept, by shape: in training, and where searches stand side by side, whose rows leave one by one."""


def keep_few_primitives(most: int) -> None:
    """Let oneDNN forget the products it has compiled for shapes that are gone. Has to come before the first; what a user has set stays.

    It keeps 1024, each with its scratch memory, and every batch has another shape: in bf16 a training process grew by 15 MB with each, and
    `mt translate` came to 1.1 GB instead of 0.57. To compile a product again costs nothing that could be measured.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # oneDNN's own cache, and that of its wrapper in torch
        os.environ.setdefault(name, str(most))


def keep_freed_memory() -> None:
    """Let the C library keep freed blocks below a gigabyte for the next tensors, instead of giving the pages back to the system.

    Fetching fresh pages for every activation took 5 to 9 % of a training step on two cores, and as much of a beam search. All threads share
    one store: with one each, searches side by side took up to 8 % more. Elsewhere than on Linux nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:  # musl has none
        mallopt(M_MMAP_THRESHOLD, GIGABYTE)
        mallopt(M_TRIM_THRESHOLD, 2 * GIGABYTE - 1)
        mallopt(M_ARENA_MAX, 1)
