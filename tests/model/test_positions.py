"""Legend: B sentences, H heads, T positions, E head size."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mt.model.positions import Rotary, Table, sinusoids
from tests.oracle.rotary import rotated

T, E = 40, 10


def states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_table_is_the_formula_to_the_nearest_float32() -> None:
    angles = [[position / 10000 ** (2 * i / E) for i in range(E // 2)] for position in range(T)]
    expected = [[*map(math.sin, row), *map(math.cos, row)] for row in angles]
    assert torch.equal(sinusoids(T, E), torch.tensor(expected, dtype=torch.float64).float())


def test_a_longer_table_begins_with_the_shorter() -> None:
    assert torch.equal(sinusoids(50, 6)[:20], sinusoids(20, 6))


def test_a_table_grows_with_what_is_asked_for_and_is_in_no_checkpoint() -> None:
    table = Table(sinusoids, E).double()
    with torch.inference_mode():
        assert torch.equal(table(1290, 1300), sinusoids(1300, E)[1290:].double())
    assert not table.rows.is_inference()
    assert torch.equal(table(3, 7), sinusoids(7, E)[3:].double())
    assert table.state_dict() == {}


def test_rotary_is_the_formula_from_any_position_on() -> None:
    """To float32, in which the tables are kept."""
    x_BHTE = states(2, 3, T, E)
    for start in (0, 7, 600):
        expected = [[rotated(x.tolist(), start=start) for x in heads] for heads in x_BHTE]
        torch.testing.assert_close(Rotary(E)(x_BHTE, start), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=5e-7)


def test_rotary_keeps_lengths_and_products_see_the_distance_alone() -> None:
    turn, q_1E, k_1E = Rotary(E), states(1, E), states(1, E, seed=2)
    torch.testing.assert_close(turn(q_1E, 123).norm(), q_1E.norm(), rtol=1e-6, atol=0)
    near, far = (turn(q_1E, start + 5) @ turn(k_1E, start).T for start in (0, 200))
    torch.testing.assert_close(near, far, rtol=0, atol=1e-5)
    assert not torch.allclose(near, turn(q_1E, 6) @ turn(k_1E, 0).T, atol=1e-2)


def test_what_comes_in_bf16_goes_out_in_bf16_turned_in_fp32() -> None:
    x_TE = states(T, E).bfloat16()
    found = Rotary(E)(x_TE, 0)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, Rotary(E)(x_TE.float(), 0).bfloat16())
