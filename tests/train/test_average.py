"""Averages of weights against the obvious slow way."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mt.train.average import MovingAverage, mean


def walk(model: nn.Module, *, seed: int) -> None:
    """Change all weights somehow."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=rng)


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.999])
def test_moving_average_equals_the_formula(decay: float) -> None:
    model = nn.Linear(3, 2)
    moving = MovingAverage(model, decay=decay)
    slow = {name: p.tolist() for name, p in model.named_parameters()}
    slow = {"weight": [x for row in slow["weight"] for x in row], "bias": slow["bias"]}
    for n in range(1, 31):
        walk(model, seed=n)
        moving.update(model, updates=n, unless=torch.tensor(False))
        d = min(decay, (1 + n) / (10 + n))
        for name, p in model.named_parameters():
            slow[name] = [d * old + (1 - d) * new for old, new in zip(slow[name], p.flatten().tolist(), strict=True)]
    for name, average in moving.average.items():
        assert average.flatten().tolist() == pytest.approx(slow[name], abs=1e-5)


def test_it_stands_in_for_the_weights_and_gives_them_back() -> None:
    model = nn.Linear(3, 2)
    moving = MovingAverage(model, decay=0.9)
    walk(model, seed=1)
    raw, average = model.weight.detach().clone(), moving.average["weight"].clone()
    parameter = model.weight

    def look_and_fail() -> None:
        with moving.in_place_of(model):
            assert torch.equal(model.weight, average)
            assert model.weight is parameter  # the optimiser holds it
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        look_and_fail()
    assert torch.equal(model.weight, raw)
    assert torch.equal(moving.average["weight"], average)


def test_the_average_is_no_view_of_the_weights() -> None:
    model = nn.Linear(3, 2)
    moving = MovingAverage(model, decay=0.9)
    before = moving.average["bias"].clone()
    walk(model, seed=1)
    assert torch.equal(moving.average["bias"], before)
    assert not any(tensor.requires_grad for tensor in moving.average.values())


def test_mean_of_several_is_taken_in_double_precision() -> None:
    weights = [{"a": torch.tensor([x, 1.0])} for x in (1e8, 1.0, -1e8)]
    (value,) = mean(weights).values()
    assert value.dtype == torch.float32
    assert value.tolist() == pytest.approx([1 / 3, 1.0])
