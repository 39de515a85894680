"""In which numbers to compute, chosen by what the hardware can do, never by timing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from mt.errors import ConfigError
from mt.model.device import Precision, fastest

__all__ = ["Precision", "autocast", "build_scaler", "choose_precision"]


def choose_precision(wanted: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """auto: what is fastest on the device. Raises ConfigError for fp16 without CUDA."""
    if wanted == "fp16" and device.type != "cuda":
        raise ConfigError(f"train.precision: fp16 needs a CUDA device, this is {device.type}; use auto, bf16 or fp32")
    return fastest(device) if wanted == "auto" else wanted


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Within, matrix products are made in `precision`; sums and norms stay in fp32."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype={"bf16": torch.bfloat16, "fp16": torch.float16}[precision])


def build_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler:
    """The loss scaler: it does something for fp16 only."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
