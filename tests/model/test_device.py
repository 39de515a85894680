from __future__ import annotations

import pytest
import torch

from mt.errors import ConfigError
from mt.model import device as hardware
from mt.model.device import choose_device, fastest, imitates, multiplies_bf16


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(True, True, "cuda"), (True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_auto_is_cuda_else_mps_else_cpu(monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, expected: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device("auto").type == expected
    assert choose_device("cpu").type == "cpu"


@pytest.mark.parametrize("wanted", ["cuda", "tpu", "gpu"])
def test_what_is_not_there_is_refused_with_what_is(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(ConfigError, match=f"device {wanted}: .*there are: mps, cpu"):
        choose_device(wanted)


def test_a_gpu_is_called_cuda() -> None:
    with pytest.raises(ConfigError, match=r"^device gpu: no such device, a GPU is cuda \(mps on a Mac\); there are: "):
        choose_device("gpu")


def test_an_emulated_bf16_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch says yes by default where a GPU only imitates it."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert not multiplies_bf16(torch.device("cuda"))


@pytest.mark.parametrize(("avx512", "amx", "expected"), [(False, False, False), (True, False, True), (False, True, True)])
def test_a_cpu_multiplies_bf16_with_either_extension(monkeypatch: pytest.MonkeyPatch, avx512: bool, amx: bool, expected: bool) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    assert multiplies_bf16(torch.device("cpu")) is expected


@pytest.mark.parametrize(("name", "has_bf16", "expected"), [("cpu", False, "fp32"), ("cpu", True, "bf16"), ("cuda", False, "fp16")])
def test_the_fastest_numbers(monkeypatch: pytest.MonkeyPatch, name: str, has_bf16: bool, expected: str) -> None:
    monkeypatch.setattr("mt.model.device.multiplies_bf16", lambda _: has_bf16)
    assert fastest(torch.device(name)) == expected


@pytest.mark.parametrize("has_bf16", [True, False])
def test_what_is_imitated(monkeypatch: pytest.MonkeyPatch, has_bf16: bool) -> None:
    monkeypatch.setattr(hardware, "multiplies_bf16", lambda _: has_bf16)
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert [imitates(cpu, precision) for precision in ("fp32", "bf16", "fp16")] == [False, not has_bf16, True]
    assert [imitates(cuda, precision) for precision in ("fp32", "bf16", "fp16")] == [False, not has_bf16, False]
