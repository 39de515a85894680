"""Compiled layers: the same numbers, and no harm where nothing can be compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mt.train.compiled import compile_layers
from mt.train.state import State
from mt.train.update import update
from tests import toy
from tests.runs import contents, differences, train
from tests.train import tiny

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


def losses(state: State) -> list[float]:
    """Of four updates with batches of different shapes."""
    batches = [tiny.batch(3, 5), tiny.batch(8, 1, 3), tiny.batch(4), tiny.batch(9, 9, 2, 7)]
    return [update(state, [one], cfg=tiny.cfg(), lr=1e-2, start=0.0).loss for one in batches]


def gradients(state: State) -> list[torch.Tensor]:
    """Of one batch."""
    batch = tiny.batch(8, 1, 3)
    state.loss(batch.src_BS, batch.inputs_BT, batch.gold_BT)[0].backward()
    found = [p.grad.clone() for p in state.model.parameters() if p.grad is not None]
    state.optimizer.zero_grad()
    return found


def test_compiled_layers_train_as_plain_ones_do() -> None:
    plain, compiled, said = tiny.state(), tiny.state(), list[str]()
    before = torch.get_rng_state()
    compile_layers(compiled, cfg=tiny.cfg(), say=said.append)
    assert said == []
    assert all(layer._compiled_call_impl for layer in (*compiled.model.encoder, *compiled.model.decoder))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(p.grad is None for p in compiled.model.parameters())
    for one, other in zip(gradients(compiled), gradients(plain), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-5)


def test_compiled_layers_drop_out_anew_each_time() -> None:
    state = tiny.state(dropout=0.3)
    compile_layers(state, cfg=tiny.cfg(), say=pytest.fail)
    batch = tiny.batch(8, 4)
    with torch.no_grad():
        first, second = (state.loss(batch.src_BS, batch.inputs_BT, batch.gold_BT)[0] for _ in range(2))
    assert first != second


def test_training_goes_on_where_nothing_can_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config

    torch.compiler.reset()
    monkeypatch.setattr(config.cpp, "cxx", (str(tmp_path / "no-compiler"),))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))  # or what was compiled before is found
    toy.write_corpus(tmp_path, train=20, dev=2, test=1)
    settings = (*toy.TINY, "train.max_updates=3", "model.dropout=0.1", "train.precision=fp32")
    done = train(toy.config(tmp_path, *settings, "train.compile=true", f"run_dir={tmp_path / 'compiled'}"))
    assert done.code == 0
    assert [line for line in done.lines if "train.compile" in line and "goes on without" in line]
    plain = train(toy.config(tmp_path, *settings, f"run_dir={tmp_path / 'plain'}"))
    assert not plain.says("train.compile")
    runs = (tmp_path / name / "checkpoints" / "step-00000003" for name in ("compiled", "plain"))
    assert differences(*map(contents, runs)) == []
