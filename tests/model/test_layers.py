"""Legend: B sentences, T positions, D width."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from mt.model.layers import FeedForward, Residual
from tests.model.untrained import by_formula

B, T, D, F = 2, 3, 4, 5


def states(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def plain_norm(x: Tensor, residual: Residual) -> Tensor:
    centred = x - x.mean(dim=-1, keepdim=True)
    scaled = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return scaled * residual.norm.weight + residual.norm.bias


@pytest.mark.parametrize("pre_norm", [True, False])
def test_residual_is_its_formula(pre_norm: bool) -> None:
    residual = by_formula(Residual(D, dropout=0.5, pre_norm=pre_norm))
    x_BTD = states(B, T, D)
    expected = x_BTD + plain_norm(x_BTD, residual).square() if pre_norm else plain_norm(x_BTD + x_BTD.square(), residual)
    torch.testing.assert_close(residual(x_BTD, torch.square), expected)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_rms_is_torchs_function_and_the_formula(pre_norm: bool) -> None:
    residual = by_formula(Residual(D, dropout=0.5, pre_norm=pre_norm, norm="rms"))
    assert [name for name, _ in residual.named_parameters()] == ["norm.weight"]

    def rms(x: Tensor) -> Tensor:
        return x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * residual.norm.weight

    x_BTD = states(B, T, D)
    expected = x_BTD + rms(x_BTD).square() if pre_norm else rms(x_BTD + x_BTD.square())
    torch.testing.assert_close(residual(x_BTD, torch.square), expected)
    torch.testing.assert_close(rms(x_BTD), functional.rms_norm(x_BTD, [D], residual.norm.weight, eps=1e-5))


@pytest.mark.parametrize("pre_norm", [True, False])
def test_dropout_falls_on_the_branch_and_never_on_the_sum(pre_norm: bool) -> None:
    """All of the branch dropped but 1 in 1000: what is left is x, or norm(x)."""
    residual = by_formula(Residual(D, dropout=0.999, pre_norm=pre_norm)).train()
    x_BTD = states(B, T, D)
    torch.manual_seed(1)
    torch.testing.assert_close(residual(x_BTD, torch.square), x_BTD if pre_norm else plain_norm(x_BTD, residual))


def test_feed_forward_is_two_products_and_a_ramp_at_each_position() -> None:
    layer = by_formula(FeedForward(D, F))
    x_BTD = states(B, T, D)
    hidden = x_BTD @ layer.inner.weight.T + layer.inner.bias
    expected = hidden.clamp(min=0) @ layer.outer.weight.T + layer.outer.bias
    assert (hidden < 0).any()
    assert (hidden > 0).any()
    torch.testing.assert_close(layer(x_BTD), expected)
    torch.testing.assert_close(layer(x_BTD[:, 1:2]), expected[:, 1:2])


def test_gelu_weighs_with_the_normal_distribution_function() -> None:
    layer = by_formula(FeedForward(D, F, activation="gelu"))
    x_BTD = states(B, T, D)
    hidden = x_BTD @ layer.inner.weight.T + layer.inner.bias
    expected = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2 @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(x_BTD), expected)


def test_swiglu_is_its_definition_with_three_matrices() -> None:
    """(silu(x·W + b) ⊙ (x·V + c))·W₂ + d."""
    layer = by_formula(FeedForward(D, F, activation="swiglu"))
    (w, v), (b, c) = layer.inner.weight.split(F), layer.inner.bias.split(F)
    x_BTD = states(B, T, D)
    gate = x_BTD @ w.T + b
    expected = gate / (1 + torch.exp(-gate)) * (x_BTD @ v.T + c) @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(x_BTD), expected)
    torch.testing.assert_close(layer(x_BTD[:, 1:2]), expected[:, 1:2])


def test_activation_dropout_falls_on_what_the_activation_gives() -> None:
    """All dropped but 1 in 1000: what is left is the bias of the second layer."""
    layer = by_formula(FeedForward(D, F, activation="swiglu", dropout=0.999)).train()
    torch.manual_seed(1)
    torch.testing.assert_close(layer(states(B, T, D)), layer.outer.bias.expand(B, T, D))
    without = by_formula(FeedForward(D, F, activation="swiglu"))
    assert torch.equal(layer.eval()(states(B, T, D)), without(states(B, T, D)))
