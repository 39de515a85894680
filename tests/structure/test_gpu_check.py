"""scripts/gpu_check.py runs whole at toy size, and its count of operations is torch's own of the real model."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mt.config.schema import ModelConfig
from mt.model.loss import LossOfBatch
from mt.model.transformer import Transformer
from tests.train import tiny

SCRIPTS = Path(__file__).parents[2] / "scripts"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def flops() -> ModuleType:
    return loaded("flops")


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
@pytest.mark.parametrize("shape", [{"encoder_layers": 1, "decoder_layers": 3}, {"encoder_layers": 4, "decoder_layers": 1, "ffn": 96}])
def test_the_formula_counts_what_torch_counts(flops: ModuleType, activation: str, shape: dict[str, int]) -> None:
    cfg = ModelConfig.model_validate({"dim": 32, "ffn": 64, "heads": 4, "activation": activation, **shape})
    model = Transformer.build(cfg, src_vocab=120, tgt_vocab=120, joint=True)
    loss, batch = LossOfBatch(model, smoothing=0.1, pad=0).train(), tiny.batch(7, 12, 3)
    in_place = {torch.ops.aten.addmm_: lambda _to, a, b, *_, **__: 2 * a[0] * a[1] * b[1]}
    with FlopCounterMode(display=False, custom_mapping=in_place) as counter:
        loss(batch.src_BS, batch.inputs_BT, batch.gold_BT)[0].backward()
    dimensions = flops.Dimensions.of(cfg, vocab=120)
    assert dimensions.of_batch(batch, pad=0, padding=True) == pytest.approx(counter.get_total_flops(), rel=0.01)
    assert dimensions.of_batch(batch, pad=0) < dimensions.of_batch(batch, pad=0, padding=True)


def test_the_count_of_a_batch_is_the_sum_over_its_pairs(flops: ModuleType) -> None:
    dimensions = flops.Dimensions.of(ModelConfig(), vocab=1000)
    parts = [tiny.batch(length) for length in (7, 12, 3)]
    assert dimensions.of_batch(tiny.batch(7, 12, 3), pad=0) == sum(dimensions.of_batch(part, pad=0) for part in parts)


@pytest.mark.parametrize(
    ("name", "tera"),
    [("NVIDIA H100 80GB HBM3", 989), ("NVIDIA H100 PCIe", 756), ("NVIDIA L40S", 362), ("NVIDIA L4", 121), ("Voodoo", None)],
)
def test_a_device_is_known_by_its_name(flops: ModuleType, name: str, tera: int | None) -> None:
    assert flops.peak_of(name) == (tera and tera * 1e12)


# ── the whole, at toy size ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("gpu") / "gpu.json"
    done = subprocess.run(
        [sys.executable, SCRIPTS / "gpu_check.py", "--tiny", "--minutes", "30", "--json", out], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all sections passed\n")
    return json.loads(out.read_text(encoding="utf-8"))


def test_every_section_has_its_figures(report: dict[str, Any]) -> None:
    sections = report["sections"]
    assert {name: section["error"] for name, section in sections.items()} == dict.fromkeys(sections)
    assert [*sections] == [
        *("device", "speed", "losses", "memory", "attention", "synchronisation", "decoding", "compilation", "ranks"),
    ]
    figures = {name: section["figures"] for name, section in sections.items()}
    assert {"fp32", "bf16"} == figures["speed"].keys() == figures["attention"].keys() == figures["decoding"].keys()
    assert {"off", "on"} == figures["compilation"].keys()
    for run in (*figures["speed"].values(), *figures["compilation"].values()):
        assert 0 < run["target tokens/s"] <= run["target tokens/s without waiting"]
        assert run["target tokens/s"] < run["source and target tokens/s"]
        assert 0 <= run["waited for data"] < 1
        assert run["skipped"] == 0
        assert math.isfinite(run["loss"])
    assert all(run["tokens/s"] > run["lines/s"] for run in figures["decoding"].values())
    assert all(kernels["products"] > 0 for kernels in figures["attention"].values())


def test_what_has_to_be_the_same_is(report: dict[str, Any]) -> None:
    """Losses in both precisions, with checkpointing and without, compiled or not, of two ranks or one."""
    figures = {name: section["figures"] for name, section in report["sections"].items()}
    losses = figures["losses"]
    assert all(losses[precision]["agrees"] for precision in ("fp32", "bf16"))
    assert losses["bf16"]["last"] < losses["bf16"]["first"]
    without, with_ = (figures["memory"][name] for name in ("without", "with checkpointing"))
    assert without["loss"] == with_["loss"]
    assert 0 < with_["peak MiB"] < without["peak MiB"]
    assert figures["compilation"]["on"]["losses, off by"] < 1e-3
    assert figures["ranks"]["losses, off by"] < 1e-3


def test_a_section_that_fails_or_hangs_costs_no_other_its_figures(tmp_path: Path) -> None:
    """The corpus is missing: every section fails, each with what it says; and one that has no time left says so."""
    out = tmp_path / "gpu.json"
    words = ["--tiny", "--src", tmp_path / "none", "--tgt", tmp_path / "none", "--only", "device", "speed", "--json", out]
    done = subprocess.run([sys.executable, SCRIPTS / "gpu_check.py", *words], capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert all("none" in section["error"] for section in json.loads(out.read_text(encoding="utf-8"))["sections"].values())
    done = subprocess.run([sys.executable, SCRIPTS / "gpu_check.py", *words, "--minutes", "0"], capture_output=True, encoding="utf-8")
    assert done.stdout.count("FAILED: no time was left") == 2
