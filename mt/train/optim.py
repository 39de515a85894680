"""The optimiser: AdamW, without decay on biases and norms."""

from __future__ import annotations

import torch
from torch import nn

from mt.config.schema import OptimizerConfig


def build_optimizer(model: nn.Module, cfg: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW over the parameters, in two groups: matrices decay, vectors (biases, norms) do not."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": cfg.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    fused = all(p.device.type in ("cpu", "cuda") for p in model.parameters())
    return torch.optim.AdamW(groups, lr=cfg.lr, betas=cfg.betas, eps=cfg.eps, fused=fused)


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Use this rate from the next update on."""
    for group in optimizer.param_groups:
        group["lr"] = lr
