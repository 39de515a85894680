"""The optimiser: AdamW, without decay on biases and norms, and on embeddings if that is wanted."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn

from mt.config.schema import OptimizerConfig


class AdamW(torch.optim.AdamW):
    """torch's (Loshchilov & Hutter 2019, https://arxiv.org/abs/1711.05101), but for what wraps its methods for torch.compile.

    Those wrappers import the whole compiler: 80 MB and more than a second of a processor, in training that does not use it.
    """

    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))

    def step_unless(self, broken: Tensor) -> None:
        """A step, unless this (a bool, where the weights are) is true: then nothing changes. Without waiting for a GPU."""
        if not self.defaults["fused"]:
            if not broken:
                self.step()
            return
        self.found_inf = broken.float()  # as torch's GradScaler has it
        self.step()


def build_optimizer(model: nn.Module, cfg: OptimizerConfig) -> AdamW:
    """AdamW over the parameters, in two groups: matrices decay, vectors (biases, norms) and exempt embeddings do not."""
    exempt = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding) and not cfg.decay_embeddings}
    decaying = [p for p in model.parameters() if p.dim() >= 2 and id(p) not in exempt]
    others = [p for p in model.parameters() if p.dim() < 2 or id(p) in exempt]
    groups = [{"params": decaying, "weight_decay": cfg.weight_decay}, {"params": others, "weight_decay": 0.0}]
    fused = all(p.device.type in ("cpu", "cuda") for p in model.parameters())
    return AdamW(groups, lr=cfg.lr, betas=cfg.betas, eps=cfg.eps, fused=fused)


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Use this rate from the next update on."""
    for group in optimizer.param_groups:
        group["lr"] = lr
