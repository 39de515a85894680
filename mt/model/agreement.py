"""How far two passes with different dropout are from giving the same probabilities: the term that R-Drop adds to a loss.

Legend: C rows of a chunk, an even number, V vocabulary; rows 2i and 2i + 1 are the two passes of one target position.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gradient_of_divergence(log_probs_CV: Tensor) -> Tensor:
    """Of Σ over pairs of ½·(KL(p‖q) + KL(q‖p)), with respect to the logits, (C, V) (Liang et al. 2021, eq. 2, https://arxiv.org/abs/2106.14448).

    For those of p it is ½·(p·(d - KL(p‖q)) + p - q), where d = log p - log q.
    """
    log_p, log_q = log_probs_CV.unflatten(0, (-1, 2)).unbind(1)
    p, q, d = log_p.exp(), log_q.exp(), log_p - log_q
    apart = p - q
    pull_p = p * (d - (p * d).sum(dim=-1, keepdim=True)) + apart
    pull_q = q * ((q * d).sum(dim=-1, keepdim=True) - d) - apart
    return torch.stack([pull_p, pull_q], dim=1).flatten(0, 1) / 2
