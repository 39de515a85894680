"""R-Drop against the paper's formula on all logits. Legend: B sentences, T target positions, V vocabulary, P passes."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from mt.config.schema import TrainConfig
from mt.model import loss
from mt.model.agreement import gradient_of_divergence
from mt.model.loss import LossOfBatch, RDropOfBatch, build_loss, smoothed_cross_entropy
from mt.model.transformer import Transformer
from tests.model.untrained import PAD, batch, gradients, sentences, small_transformer

IDS = batch(sentences(2, 6, 4, seed=1), sentences(5, 1, 3, seed=2))
ALPHA, SMOOTHING = 5.0, 0.1


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """½·(KL(p‖q) + KL(q‖p)), summed, by torch's own function."""
    there, back = (F.kl_div(a, b, log_target=True, reduction="sum") for a, b in ((log_q, log_p), (log_p, log_q)))
    return (there + back) / 2


def papers(model: Transformer) -> tuple[Tensor, Tensor]:
    """Half of eq. 4, and of its cross-entropies alone, from the logits of two copies of the batch; both see the same dropout as ours."""
    src, inputs, gold = (ids.repeat_interleave(2, dim=0) for ids in IDS)
    allowed = src != PAD
    logits = model.output(model.decode(model.encode(src, allowed), allowed, inputs))
    cross_entropy = F.cross_entropy(logits.mT, gold, ignore_index=PAD, label_smoothing=SMOOTHING, reduction="sum")
    log_p, log_q = (logits[first::2][IDS.gold_BT != PAD].log_softmax(dim=-1) for first in (0, 1))
    return (cross_entropy + ALPHA * divergence(log_p, log_q)) / 2, cross_entropy / 2


@pytest.mark.parametrize("chunk", [2, 4, 512])
@pytest.mark.parametrize("tied", [True, False])
def test_the_gradient_is_the_papers_and_the_loss_the_cross_entropy(monkeypatch: pytest.MonkeyPatch, chunk: int, tied: bool) -> None:
    monkeypatch.setattr(loss, "CHUNK", chunk)
    model = small_transformer(tied=tied, dropout=0.3, word_dropout=0.2, activation_dropout=0.1).train()
    torch.manual_seed(1)
    total, count = RDropOfBatch(model, smoothing=SMOOTHING, pad=PAD, alpha=ALPHA)(*IDS)
    (total / 17).backward()
    found = gradients(model)
    model.zero_grad()
    torch.manual_seed(1)
    objective, cross_entropy = papers(model)
    (objective / 17).backward()
    torch.testing.assert_close(total, cross_entropy)
    assert not torch.isclose(objective, cross_entropy)
    torch.testing.assert_close(found, gradients(model))
    assert int(count) == int((IDS.gold_BT != PAD).sum())


def test_without_dropout_two_passes_are_one() -> None:
    model = small_transformer().train()
    found = []
    for module in (RDropOfBatch(model, smoothing=SMOOTHING, pad=PAD, alpha=ALPHA), LossOfBatch(model, smoothing=SMOOTHING, pad=PAD)):
        model.zero_grad()
        total, count = module(*IDS)
        total.backward()
        found.append((total, count, gradients(model)))
    torch.testing.assert_close(found[0], found[1])


def test_in_evaluation_there_is_one_pass() -> None:
    model = small_transformer(dropout=0.3)
    ours, plain = (
        RDropOfBatch(model, smoothing=SMOOTHING, pad=PAD, alpha=ALPHA).eval(),
        LossOfBatch(model, smoothing=SMOOTHING, pad=PAD).eval(),
    )
    assert torch.equal(ours(*IDS)[0], plain(*IDS)[0])


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_the_gradient_of_the_divergence_is_autograds(scale: float) -> None:
    """Also where the two are sure of different words."""
    logits_CV = (scale * torch.randn(6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))).requires_grad_()
    log_probs_CV = logits_CV.log_softmax(dim=-1)
    (expected,) = torch.autograd.grad(divergence(log_probs_CV[::2], log_probs_CV[1::2]), logits_CV)
    torch.testing.assert_close(gradient_of_divergence(log_probs_CV.detach()), expected)
    in_fp32 = gradient_of_divergence(logits_CV.detach().float().log_softmax(dim=-1))
    assert in_fp32.dtype == torch.float32
    torch.testing.assert_close(in_fp32.double(), expected, rtol=1e-4, atol=1e-4)


def test_equal_passes_are_left_alone() -> None:
    same_CV = torch.randn(3, 7).log_softmax(dim=-1).repeat_interleave(2, dim=0)
    assert (gradient_of_divergence(same_CV) == 0).all()


def test_the_output_layer_makes_no_more_products_than_without() -> None:
    states_ND, weight_VD = (torch.randn(rows, 4, requires_grad=True) for rows in (10, 7))
    counts = []
    for alpha in (0.0, ALPHA):
        with FlopCounterMode(display=False) as flops:
            smoothed_cross_entropy(states_ND, weight_VD, torch.arange(10) % 7, SMOOTHING, r_drop=alpha).backward()
        counts.append(flops.get_total_flops())
    assert counts[0] == counts[1] > 0


def test_a_batch_in_bf16_autocast_is_close_to_fp32() -> None:
    """The divergence is computed in fp32 from logits in bf16."""
    found = []
    for enabled in (False, True):
        model = small_transformer(dropout=0.3).float().train()
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            total, _ = RDropOfBatch(model, smoothing=SMOOTHING, pad=PAD, alpha=ALPHA)(*IDS)
        total.backward()
        found.append((total, torch.cat([grad.flatten() for grad in gradients(model).values()])))
    (exact, expected), (total, grads) = found
    assert total.dtype == torch.float32
    torch.testing.assert_close(total, exact, rtol=0.02, atol=0)
    assert (grads - expected).norm() < 0.1 * expected.norm()


@pytest.mark.parametrize("shape", [(0, 0), (2, 3)], ids=["no pairs", "all padding"])
def test_a_batch_of_nothing_gives_zero_and_zero_gradients_for_all(shape: tuple[int, int]) -> None:
    model, nothing = small_transformer(dropout=0.3).train(), torch.full(shape, PAD)
    total, count = RDropOfBatch(model, smoothing=SMOOTHING, pad=PAD, alpha=ALPHA)(nothing, nothing, nothing)
    total.backward()
    assert (total.tolist(), int(count)) == (0.0, 0)
    found = gradients(model)
    assert found.keys() == dict(model.named_parameters()).keys()
    assert all((grad == 0).all() for grad in found.values())


def test_numbers_that_are_not_finite_are_seen_in_the_gradient() -> None:
    """The loop then makes no update of it."""
    states_ND = torch.tensor([[0.0, 0.0], [math.inf, 0.0]], requires_grad=True)
    smoothed_cross_entropy(states_ND, torch.eye(2), torch.tensor([0, 0]), 0.0, r_drop=ALPHA).backward()
    assert states_ND.grad is not None
    assert not states_ND.grad.isfinite().all()


def test_the_settings_choose_the_loss() -> None:
    model = small_transformer()
    assert type(build_loss(model, TrainConfig(), pad=PAD)) is LossOfBatch
    asked = build_loss(model, TrainConfig(r_drop=3, label_smoothing=0.2), pad=PAD)
    assert isinstance(asked, RDropOfBatch)
    assert (asked.alpha, asked.smoothing, asked.pad) == (3, 0.2, PAD)
