"""Label-smoothed cross-entropy of the output layer, in chunks: the logits of a whole batch never exist at once.

Legend: N real target positions of a batch, C positions of a chunk, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mt.config.schema import TrainConfig
from mt.model.agreement import gradient_of_divergence
from mt.model.transformer import Transformer

CHUNK = 512  # positions, an even number; their 512 × 8000 logits are 16 MB: fewer make poor matrix products, more fall out of the cache


class SmoothedCrossEntropy(torch.autograd.Function):
    """Σ over positions of (1 - ε)·(-log p(gold)) + ε·mean over V of (-log p), as torch.nn.functional.cross_entropy defines label smoothing.

    The gradient of a chunk, softmax - (1 - ε)·onehot - ε/V, is computed while its probabilities are at hand; the backward pass scales it.
    With `r_drop` rows are in pairs, and r_drop · their divergence has a share in the gradient, but none in the sum.
    """

    @staticmethod
    def forward(ctx: Any, states_ND: Tensor, weight_VD: Tensor, gold_N: Tensor, smoothing: float, r_drop: float) -> Tensor:
        """The sum, a scalar in fp32 (or fp64)."""
        dtype = torch.promote_types(states_ND.dtype, torch.float32)
        product = torch.get_autocast_dtype(states_ND.device.type) if torch.is_autocast_enabled(states_ND.device.type) else states_ND.dtype
        vocab = weight_VD.size(0)
        need_states, need_weight = ctx.needs_input_grad[:2]
        ctx.grad_states_ND = torch.empty_like(states_ND, dtype=product) if need_states else None
        ctx.grad_weight_VD = torch.zeros_like(weight_VD) if need_weight else None
        total = states_ND.new_zeros((), dtype=dtype)
        with torch.autocast(states_ND.device.type, enabled=False):
            weight = weight_VD.to(product)
            sums_D = weight.sum(dim=0, dtype=dtype)
            for start in range(0, gold_N.numel(), CHUNK):
                gold_C1 = gold_N[start : start + CHUNK, None]
                states_CD = states_ND[start : start + CHUNK].to(product)
                logits_CV = states_CD @ weight.T
                probs_CV = logits_CV.softmax(dim=-1)
                top_C1, most_C1 = (one.amax(dim=-1, keepdim=True).to(dtype) for one in (logits_CV, probs_CV))
                partition_C1 = top_C1 - most_C1.log()  # of the logits: log Σ exp
                log_gold_C1 = logits_CV.gather(1, gold_C1).to(dtype) - partition_C1
                log_sums_C1 = (states_CD.to(dtype) @ sums_D)[:, None] - vocab * partition_C1
                total -= ((1 - smoothing) * log_gold_C1 + smoothing / vocab * log_sums_C1).sum()
                if not (need_states or need_weight):
                    continue
                grad_CV = probs_CV  # ε/V is the same for all of V: its share of both products is a sum, taken off below
                grad_CV.scatter_(1, gold_C1, (log_gold_C1.exp() + (smoothing - 1)).to(product))
                if r_drop:
                    grad_CV += r_drop * gradient_of_divergence(torch.log_softmax(logits_CV, dim=-1, dtype=dtype))
                if need_states:
                    torch.mm(grad_CV, weight, out=ctx.grad_states_ND[start : start + CHUNK])
                if need_weight and product == weight_VD.dtype:
                    ctx.grad_weight_VD.addmm_(grad_CV.T, states_CD)
                elif need_weight:
                    ctx.grad_weight_VD += grad_CV.T @ states_CD
            if need_states:
                ctx.grad_states_ND -= smoothing / vocab * sums_D
            if need_weight:
                ctx.grad_weight_VD -= smoothing / vocab * states_ND.sum(dim=0)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        """The stored gradients, scaled in place: the pass can be made once."""
        states, weight = ctx.grad_states_ND, ctx.grad_weight_VD
        assert states is not None or weight is not None, "the backward pass of the loss can be made once"
        ctx.grad_states_ND = ctx.grad_weight_VD = None
        return None if states is None else states.mul_(grad), None if weight is None else weight.mul_(grad), None, None, None


def smoothed_cross_entropy(states_ND: Tensor, weight_VD: Tensor, gold_N: Tensor, smoothing: float, *, r_drop: float = 0.0) -> Tensor:
    """The sum over N positions, in fp32 (or fp64), of the label-smoothed cross-entropy of softmax(states · weightᵀ).

    With `r_drop`, positions are in pairs and the gradient is that of the sum + r_drop · Σ over pairs of ½·(KL(p‖q) + KL(q‖p)).
    """
    if not torch.is_grad_enabled():  # a Function is told what its inputs ask for, not whether anybody listens
        states_ND, weight_VD = states_ND.detach(), weight_VD.detach()
    total: Tensor = SmoothedCrossEntropy.apply(states_ND, weight_VD, gold_N, smoothing, r_drop)  # type: ignore[no-untyped-call]
    return total


class LossOfBatch(nn.Module):
    """A batch in, (sum of the loss, number of real target positions) out: the one module that is called in training.

    In evaluation mode labels are not smoothed, as nothing is dropped out. Only real target positions pass through the output layer; their
    places among all B·T are found unless they are given (then a GPU is not waited for). A batch of nothing but padding gives (0, 0).
    """

    def __init__(self, model: Transformer, *, smoothing: float, pad: int) -> None:
        super().__init__()
        self.model, self.smoothing, self.pad = model, smoothing, pad

    def forward(self, src_BS: Tensor, inputs_BT: Tensor, gold_BT: Tensor, real_N: Tensor | None = None) -> tuple[Tensor, int]:
        """A batch in, (sum, count) out."""
        allowed_BS = src_BS != self.pad
        states_BTD = self.model.decode(self.model.encode(src_BS, allowed_BS), allowed_BS, inputs_BT)
        real_N = self.real(gold_BT) if real_N is None else real_N
        states_ND, gold_N = states_BTD.flatten(0, 1).index_select(0, real_N), gold_BT.flatten().index_select(0, real_N)
        smoothing = self.smoothing if self.training else 0.0
        return smoothed_cross_entropy(states_ND, self.model.output.weight, gold_N, smoothing), real_N.numel()

    def real(self, gold_BT: Tensor) -> Tensor:
        """The places of real target positions among all B·T, (N,)."""
        return (gold_BT != self.pad).flatten().nonzero().squeeze(1)


class RDropOfBatch(LossOfBatch):
    """Each pair goes through the model twice, with different dropout, and the two are drawn to each other (Liang et al. 2021, alg. 1).

    The gradient is half that of eq. 4, -log p - log q + α · ½·(KL(p‖q) + KL(q‖p)): for each token, as without. The sum that is given is the
    cross-entropy alone, the mean of the two passes, so that journals with and without compare. In evaluation there is one pass.
    """

    def __init__(self, model: Transformer, *, smoothing: float, pad: int, alpha: float) -> None:
        super().__init__(model, smoothing=smoothing, pad=pad)
        self.alpha = alpha

    def forward(self, src_BS: Tensor, inputs_BT: Tensor, gold_BT: Tensor, real_N: Tensor | None = None) -> tuple[Tensor, int]:
        """A batch in, (sum, count) out."""
        if not self.training:
            return super().forward(src_BS, inputs_BT, gold_BT, real_N)
        twice_BS, twice_BT = (ids.repeat_interleave(2, dim=0) for ids in (src_BS, inputs_BT))
        allowed_BS = twice_BS != self.pad
        states_BTD = self.model.decode(self.model.encode(twice_BS, allowed_BS), allowed_BS, twice_BT)
        states_BT2D = states_BTD.unflatten(0, (gold_BT.size(0), 2)).transpose(1, 2)
        real_N = self.real(gold_BT) if real_N is None else real_N
        pairs_ND = states_BT2D.flatten(0, 1).index_select(0, real_N).flatten(0, 1)
        gold_N, weight_VD = gold_BT.flatten().index_select(0, real_N).repeat_interleave(2), self.model.output.weight
        total = smoothed_cross_entropy(pairs_ND, weight_VD, gold_N, self.smoothing, r_drop=self.alpha)
        return total / 2, real_N.numel()


def build_loss(model: Transformer, cfg: TrainConfig, *, pad: int) -> LossOfBatch:
    """The loss that the settings ask for."""
    if cfg.r_drop:
        return RDropOfBatch(model, smoothing=cfg.label_smoothing, pad=pad, alpha=cfg.r_drop)
    return LossOfBatch(model, smoothing=cfg.label_smoothing, pad=pad)
