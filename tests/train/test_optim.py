"""AdamW: matrices decay, biases and norms do not."""

from __future__ import annotations

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
