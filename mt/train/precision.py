"""In which numbers to compute, chosen by what the hardware can do, never by timing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from mt.errors import ConfigError
from mt.model.device import multiplies_bf16

Precision = Literal["fp32", "bf16", "fp16"]


def choose_precision(wanted: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """auto: bf16 where the hardware multiplies it, else fp16 on CUDA, else fp32. Raises ConfigError for fp16 without CUDA."""
    if wanted == "fp16" and device.type != "cuda":
        raise ConfigError(f"train.precision: fp16 needs a CUDA device, this is {device.type}; use auto, bf16 or fp32")
    if wanted != "auto":
        return wanted
    if multiplies_bf16(device):
        return "bf16"
    return "fp16" if device.type == "cuda" else "fp32"


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Within, matrix products are made in `precision`; sums and norms stay in fp32."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype={"bf16": torch.bfloat16, "fp16": torch.float16}[precision])


def build_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler:
    """The loss scaler: it does something for fp16 only."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
