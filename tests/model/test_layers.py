"""Legend: B sentences, T positions, D width."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

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
