"""AdamW: matrices decay, biases and norms do not."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from mt.config.schema import OptimizerConfig
from mt.train.optim import build_optimizer, set_rate
from tests.model.untrained import small_transformer
from tests.train import tiny


def test_every_parameter_is_in_one_group_tied_ones_once() -> None:
    model = tiny.state().model
    optimizer = build_optimizer(model, OptimizerConfig())
    inside = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(inside) == sorted(id(p) for p in model.parameters())


def test_only_matrices_decay() -> None:
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(model, OptimizerConfig(weight_decay=0.5))
    nn.init.ones_(model.bias)
    weight, bias = model.weight.detach().clone(), model.bias.detach().clone()
    set_rate(optimizer, 0.1)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(model.weight, weight * (1 - 0.1 * 0.5))
    assert torch.equal(model.bias, bias)


@pytest.mark.parametrize(("joint", "tied", "exempt"), [(True, True, 1), (True, False, 2), (False, True, 2), (False, False, 2)])
def test_embeddings_decay_or_not_and_a_tied_output_layer_with_them(joint: bool, tied: bool, exempt: int) -> None:
    model = small_transformer(joint=joint, tied=tied)
    groups = [build_optimizer(model, OptimizerConfig(decay_embeddings=decay)).param_groups for decay in (True, False)]
    (decaying, _), (without, rest) = ([group["params"] for group in both] for both in groups)
    assert len(without) == len(decaying) - exempt
    assert {id(p) for p in rest if p.dim() == 2} == {id(model.src_embedding.weight), id(model.tgt_embedding.weight)}
    assert len(without) + len(rest) == len(list(model.parameters()))


def test_settings_arrive() -> None:
    optimizer = build_optimizer(nn.Linear(3, 2), OptimizerConfig(lr=0.2, betas=(0.5, 0.6), eps=1e-5))
    assert {(group["lr"], group["betas"], group["eps"]) for group in optimizer.param_groups} == {(0.2, (0.5, 0.6), 1e-5)}
    set_rate(optimizer, 0.7)
    assert {group["lr"] for group in optimizer.param_groups} == {0.7}


def test_it_does_what_torchs_own_does_to_the_bit_and_its_state_is_the_same() -> None:
    cfg = OptimizerConfig(lr=0.1)
    torch.manual_seed(1)
    ours, theirs = nn.Linear(5, 4), nn.Linear(5, 4)
    theirs.load_state_dict(ours.state_dict())
    optimizer = build_optimizer(ours, cfg)
    groups = [{"params": [theirs.weight], "weight_decay": cfg.weight_decay}, {"params": [theirs.bias], "weight_decay": 0.0}]
    reference = torch.optim.AdamW(groups, lr=cfg.lr, betas=cfg.betas, eps=cfg.eps, fused=True)
    for step in range(4):
        if step == 2:  # what is saved can be read by the other, both ways
            saved = optimizer.state_dict()
            optimizer.load_state_dict(reference.state_dict())
            reference.load_state_dict(saved)
        for model, chosen in ((ours, optimizer), (theirs, reference)):
            torch.manual_seed(step)
            model(torch.randn(3, 5)).square().sum().backward()
            chosen.step()
            chosen.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
    assert all(p.grad is None and p.requires_grad for p in ours.parameters())


def test_a_training_step_does_not_load_the_compiler() -> None:
    code = """if True:
        import sys
        from mt.train.update import update
        from tests.train import tiny
        state = tiny.state()
        update(state, [tiny.batch(3, 5)], cfg=tiny.cfg(), lr=0.1, start=0.0)
        state.optimizer.load_state_dict(state.optimizer.state_dict())
        assert state.optimizer.state
        print("torch._dynamo" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.stdout.strip() == "False", done.stderr
