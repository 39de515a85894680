"""The precision follows what the hardware can do, never a measurement."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mt.errors import ConfigError
from mt.model import device as hardware
from mt.train.precision import autocast, build_scaler, choose_precision

CPU, CUDA, MPS = map(torch.device, ("cpu", "cuda", "mps"))


@pytest.mark.parametrize(
    ("device", "has_bf16", "expected"),
    [(CPU, True, "bf16"), (CPU, False, "fp32"), (CUDA, True, "bf16"), (CUDA, False, "fp16"), (MPS, False, "fp32")],
    ids=str,
)
def test_auto(monkeypatch: pytest.MonkeyPatch, device: torch.device, has_bf16: bool, expected: str) -> None:
    monkeypatch.setattr(hardware, "multiplies_bf16", lambda _: has_bf16)
    assert choose_precision("auto", device) == expected


def test_one_key_overrides() -> None:
    assert choose_precision("fp32", CUDA) == "fp32"
    assert choose_precision("bf16", CPU) == "bf16"
    assert choose_precision("fp16", CUDA) == "fp16"


def test_fp16_needs_cuda() -> None:
    with pytest.raises(ConfigError, match="train.precision: fp16 needs a CUDA device, this is cpu; use auto, bf16 or fp32"):
        choose_precision("fp16", CPU)


@pytest.mark.parametrize(("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_products_are_made_in_it(name: Any, dtype: torch.dtype) -> None:
    one = torch.ones(2, 2)
    with autocast(name, CPU):
        assert (one @ one).dtype == dtype
        assert one.sum().dtype == torch.float32
    assert (one @ one).dtype == torch.float32


def test_the_loss_is_scaled_in_fp16_only() -> None:
    assert not build_scaler("fp32", CPU).is_enabled()
    assert not build_scaler("bf16", CPU).is_enabled()
    assert build_scaler("fp16", CPU).is_enabled()
    assert build_scaler("fp32", CPU).get_scale() == 1.0
