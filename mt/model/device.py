"""Which device to compute on, and what it can do."""

from __future__ import annotations

import re
from typing import Literal

import torch

from mt.errors import ConfigError

Precision = Literal["fp32", "bf16", "fp16"]

OUT_OF_MEMORY = re.compile("out of memory|can't allocate memory|not enough memory")
"""What torch says where it has no exception of its own for that, as on a CPU."""


def choose_device(wanted: str) -> torch.device:
    """auto: cuda, else mps, else cpu. Raises ConfigError if the one asked for is not there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return torch.device(next(name for name, is_there in there.items() if is_there))
    if not there.get(wanted):
        usable = ", ".join(name for name, is_there in there.items() if is_there)
        what = "not on this machine, or not in this build of torch" if wanted in there else "no such device, a GPU is cuda (mps on a Mac)"
        raise ConfigError(f"device {wanted}: {what}; there are: {usable}")
    return torch.device(wanted)


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that a device, or the machine, has too little memory."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and bool(OUT_OF_MEMORY.search(str(error)))


def multiplies_bf16(device: torch.device) -> bool:
    """Whether the hardware has bf16 products: on a CPU AVX512-BF16 or AMX."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def fastest(device: torch.device) -> Precision:
    """bf16 where the hardware multiplies it, else fp16 on CUDA, else fp32; never by timing."""
    if multiplies_bf16(device):
        return "bf16"
    return "fp16" if device.type == "cuda" else "fp32"


def imitates(device: torch.device, precision: str) -> bool:
    """Whether the hardware has no products in these numbers (fp16 is taken for something that no CPU has)."""
    return (precision == "bf16" and not multiplies_bf16(device)) or (precision == "fp16" and device.type == "cpu")
