from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mt.model.dropout import Dropout, WordDropout

COUNT = 200_000


def seeded(dropout: Dropout, x: Tensor, *, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    return dropout(x)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_the_share_of_zeros_is_p_and_the_mean_stays(p: float) -> None:
    """Within five standard deviations of 200,000 draws."""
    found = seeded(Dropout(p), torch.ones(COUNT))
    zeros = found == 0
    assert abs(zeros.double().mean() - p) < 5 * (p * (1 - p) / COUNT) ** 0.5
    assert abs(found.double().mean() - 1) < 5 * (p / (1 - p) / COUNT) ** 0.5
    torch.testing.assert_close(found[~zeros], torch.full_like(found[~zeros], 1 / (1 - p)), rtol=2e-4, atol=0)


def test_neighbours_are_dropped_independently() -> None:
    """Four elements share one draw of 64 bits, so each distance up to 4 is looked at."""
    zeros = seeded(Dropout(0.5), torch.ones(COUNT)) == 0
    for distance in range(1, 5):
        both = (zeros[distance:] & zeros[:-distance]).double().mean()
        assert abs(both - 0.25) < 5 * (5 / 16 / COUNT) ** 0.5  # 3/16 for pairs of their own; these overlap


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_shape_and_dtype_stay(dtype: torch.dtype) -> None:
    for shape in [(3, 5, 7), (1,), (0, 4), ()]:
        found = seeded(Dropout(0.4), torch.ones(shape, dtype=dtype))
        assert (found.shape, found.dtype) == (shape, dtype)


def test_p_zero_and_evaluation_are_the_identity_and_draw_nothing() -> None:
    x, branch = torch.randn(5, 6), torch.randn(5, 6)
    before = torch.get_rng_state()
    for dropout in (Dropout(0.0), Dropout(0.7).eval()):
        assert dropout(x) is x
        assert torch.equal(dropout.add(x, branch), x + branch)
    assert torch.equal(torch.get_rng_state(), before)


def test_torchs_generator_decides_and_moves_on() -> None:
    dropout, x = Dropout(0.5), torch.ones(1000)
    first, state = seeded(dropout, x), torch.get_rng_state()
    second = dropout(x)
    assert not torch.equal(first, second)
    assert not torch.equal(first, seeded(dropout, x, seed=2))
    assert torch.equal(first, seeded(dropout, x))
    torch.set_rng_state(state)
    assert torch.equal(dropout(x), second)


def test_adding_a_dropped_branch_is_dropping_it_and_adding() -> None:
    dropout, x, branch = Dropout(0.3), torch.randn(50, 60, dtype=torch.float64), torch.randn(50, 60, dtype=torch.float64)
    dropped = seeded(dropout, branch)
    torch.manual_seed(1)
    torch.testing.assert_close(dropout.add(x, branch), x + dropped)


def test_a_bf16_branch_is_added_in_the_precision_of_the_sum() -> None:
    torch.manual_seed(1)
    assert Dropout(0.3).add(torch.randn(4, 5), torch.randn(4, 5).bfloat16()).dtype == torch.float32


def test_the_gradient_has_the_mask_of_the_forward_pass() -> None:
    dropout = Dropout(0.4)
    x = torch.randn(40, 50, dtype=torch.float64).requires_grad_()
    found = seeded(dropout, x)
    found.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x, found)

    branch = torch.randn(40, 50, dtype=torch.float64).requires_grad_()
    total = torch.zeros(40, 50, dtype=torch.float64).requires_grad_()
    torch.manual_seed(1)
    found = dropout.add(total, branch)
    found.sum().backward()
    assert branch.grad is not None
    assert total.grad is not None
    torch.testing.assert_close(branch.grad * branch, found)
    assert (total.grad == 1).all()


def test_the_gradient_of_a_bf16_branch_is_that_in_fp32_rounded() -> None:
    def gradient(dtype: torch.dtype) -> Tensor:
        torch.manual_seed(1)
        x, branch, pull = torch.randn(30, 40), torch.randn(30, 40, dtype=dtype).requires_grad_(), torch.randn(30, 40)
        (Dropout(0.3).add(x, branch) * pull).sum().backward()
        assert branch.grad is not None
        return branch.grad

    rounded = gradient(torch.bfloat16)
    assert rounded.dtype == torch.bfloat16
    assert torch.equal(rounded, gradient(torch.float32).bfloat16())


def test_a_byte_an_element_is_kept_for_the_backward_pass() -> None:
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        Dropout(0.3).add(torch.randn(30, 40).requires_grad_(), torch.randn(30, 40).requires_grad_())
    assert [(x.numel(), x.element_size()) for x in kept] == [(30 * 40, 1)]


def test_it_says_its_p() -> None:
    assert repr(Dropout(0.25)) == "Dropout(p=0.25)"


def test_a_word_is_dropped_whole_or_not_at_all_with_its_share_and_mean() -> None:
    x_BTD = torch.randn(50, 400, 3, dtype=torch.float64)
    found = seeded(WordDropout(0.2), x_BTD)
    zeros_BTD = found == 0
    assert torch.equal(zeros_BTD.any(dim=-1), zeros_BTD.all(dim=-1))
    assert abs(zeros_BTD[..., 0].double().mean() - 0.2) < 5 * (0.2 * 0.8 / 20_000) ** 0.5
    torch.testing.assert_close(found[~zeros_BTD], x_BTD[~zeros_BTD] / 0.8, rtol=1e-4, atol=0)


def test_words_stay_in_evaluation_and_without_a_probability() -> None:
    x_BTD, before = torch.randn(2, 3, 4), torch.get_rng_state()
    assert WordDropout(0.5).eval()(x_BTD) is x_BTD
    assert WordDropout(0.0)(x_BTD) is x_BTD
    assert torch.equal(torch.get_rng_state(), before)
