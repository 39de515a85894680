"""Legend: N real target positions, D width, V vocabulary; B sentences, T target positions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from mt.model import loss
from mt.model.loss import LossOfBatch, smoothed_cross_entropy
from tests.model.untrained import PAD, batch, gradients, sentences, small_transformer

N, D, V = 10, 4, 7
SOURCES, TARGETS = sentences(2, 6, 4, seed=1), sentences(5, 1, 3, seed=2)


def inputs(dtype: torch.dtype = torch.float64, *, n: int = N, v: int = V) -> tuple[Tensor, Tensor, Tensor]:
    """States (N, D) and output weight (V, D) that ask for gradients, and gold (N)."""
    generator = torch.Generator().manual_seed(1)
    states_ND, weight_VD = (torch.randn(rows, D, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for rows in (n, v))
    return states_ND, weight_VD, torch.randint(v, (n,), generator=generator)


def torchs(states_ND: Tensor, weight_VD: Tensor, gold_N: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(states_ND @ weight_VD.T, gold_N, label_smoothing=smoothing, reduction="sum")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 3, N, 256])
def test_value_and_gradients_are_torchs(monkeypatch: pytest.MonkeyPatch, chunk: int, smoothing: float) -> None:
    monkeypatch.setattr(loss, "CHUNK", chunk)
    states_ND, weight_VD, gold_N = inputs()
    ours, theirs = (function(states_ND, weight_VD, gold_N, smoothing) for function in (smoothed_cross_entropy, torchs))
    torch.testing.assert_close(ours, theirs)
    with torch.no_grad():
        assert torch.equal(smoothed_cross_entropy(states_ND, weight_VD, gold_N, smoothing), ours)
    # Divided, as in an update: the gradient that arrives is not 1.
    found, expected = (torch.autograd.grad(total / 17, [states_ND, weight_VD]) for total in (ours, theirs))
    torch.testing.assert_close(found, expected)


def test_a_second_backward_pass_is_refused_not_empty() -> None:
    """The stored gradients are given away by the first."""
    states_ND, weight_VD, gold_N = inputs()
    total = smoothed_cross_entropy(states_ND, weight_VD, gold_N, 0.1)
    total.backward(retain_graph=True)
    with pytest.raises(AssertionError, match="once"):
        total.backward()


def test_only_the_gradient_that_is_asked_for_is_given() -> None:
    for wanted in (0, 1):
        tensors = list(inputs())
        tensors[1 - wanted] = tensors[1 - wanted].detach()
        expected = torch.autograd.grad(torchs(*tensors, 0.1), tensors[wanted])[0]
        smoothed_cross_entropy(*tensors, 0.1).backward()
        assert tensors[1 - wanted].grad is None
        torch.testing.assert_close(tensors[wanted].grad, expected)


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_without_gradients_there_is_one_product(without: type[torch.no_grad | torch.inference_mode]) -> None:
    """Validation costs what its logits cost, though the weight is a parameter."""
    states_ND, weight_VD, gold_N = inputs()
    with without(), FlopCounterMode(display=False) as flops:
        smoothed_cross_entropy(states_ND, weight_VD, gold_N, 0.1)
    assert flops.get_total_flops() == 2 * N * V * D


def test_float32_is_summed_in_float32_and_half_precision_too() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        total = smoothed_cross_entropy(*inputs(dtype), 0.1)
        assert total.dtype == torch.float32
    assert smoothed_cross_entropy(*inputs(), 0.1).dtype == torch.float64


@pytest.mark.parametrize("chunk", [16, 256])
def test_bf16_autocast_is_close_to_fp32(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(loss, "CHUNK", chunk)
    states_ND, weight_VD, gold_N = inputs(torch.float32, n=100, v=300)
    exact = torchs(states_ND, weight_VD, gold_N, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        total = smoothed_cross_entropy(states_ND, weight_VD, gold_N, 0.1)
    assert total.dtype == torch.float32
    torch.testing.assert_close(total, exact, rtol=5e-3, atol=0)
    found, expected = (torch.autograd.grad(value, [states_ND, weight_VD]) for value in (total, exact))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("joint", "tied"), [(True, True), (False, True), (True, False)])
def test_loss_of_a_batch_is_torchs_on_all_logits_with_padding_ignored(joint: bool, tied: bool, smoothing: float) -> None:
    model, ids = small_transformer(joint=joint, tied=tied), batch(SOURCES, TARGETS)
    total, count = LossOfBatch(model, smoothing=smoothing, pad=PAD)(*ids)
    total.backward()
    found = gradients(model)
    model.zero_grad()

    allowed_BS = ids.src_BS != PAD
    logits_BTV = model.output(model.decode(model.encode(ids.src_BS, allowed_BS), allowed_BS, ids.inputs_BT))
    expected = F.cross_entropy(logits_BTV.mT, ids.gold_BT, ignore_index=PAD, label_smoothing=smoothing, reduction="sum")
    expected.backward()
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(found, gradients(model))
    assert found.keys() == dict(model.named_parameters()).keys()
    assert int(count) == sum(len(target) + 1 for target in TARGETS)


def test_loss_of_a_batch_is_the_sum_of_the_losses_of_its_pairs() -> None:
    module = LossOfBatch(small_transformer(), smoothing=0.1, pad=PAD)
    alone = [module(*batch([source], [target])) for source, target in zip(SOURCES, TARGETS, strict=True)]
    total, count = module(*batch(SOURCES, TARGETS))
    torch.testing.assert_close(total, sum(one for one, _ in alone))
    assert int(count) == sum(int(n) for _, n in alone)


def test_labels_are_smoothed_in_training_only() -> None:
    ids = batch(SOURCES, TARGETS)
    smoothed, plain = (LossOfBatch(small_transformer(), smoothing=smoothing, pad=PAD) for smoothing in (0.1, 0.0))
    assert not torch.equal(smoothed.train()(*ids)[0], plain.train()(*ids)[0])
    assert torch.equal(smoothed.eval()(*ids)[0], plain.eval()(*ids)[0])


def test_a_batch_in_bf16_autocast_trains() -> None:
    model, ids = small_transformer().float().train(), batch(SOURCES, TARGETS)
    module = LossOfBatch(model, smoothing=0.1, pad=PAD)
    exact, _ = module(*ids)
    with torch.autocast("cpu", torch.bfloat16):
        total, _ = module(*ids)
    total.backward()
    torch.testing.assert_close(total, exact, rtol=0.02, atol=0)
    assert all(grad.isfinite().all() and grad.any() for grad in gradients(model).values())


@pytest.mark.parametrize("shape", [(0, 0), (2, 3)], ids=["no pairs", "all padding"])
def test_a_batch_of_nothing_gives_zero_and_zero_gradients_for_all(shape: tuple[int, int]) -> None:
    """What a rank without data contributes: it must still meet the others with a gradient for each parameter."""
    model, nothing = small_transformer(), torch.full(shape, PAD)
    total, count = LossOfBatch(model, smoothing=0.1, pad=PAD)(nothing, nothing, nothing)
    total.backward()
    assert (total.tolist(), int(count)) == (0.0, 0)
    found = gradients(model)
    assert found.keys() == dict(model.named_parameters()).keys()
    assert all((grad == 0).all() for grad in found.values())
