"""How probable given outputs are: all positions at once, each after the true ones before it, under the full softmax.

Legend: B sentences, S source, T target positions, N real ones of a batch (EOS counted), C of a chunk, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mt.forced.given import Given, Inputs, batches, enough_memory
from mt.model.transformer import Transformer
from mt.search.ensemble import Mix
from mt.search.step import refuse_nan
from mt.tokenizer.spm import Tokenizers

CHUNK = 512
"""Positions whose logits exist at once."""


@torch.inference_mode()
def token_log_probs(
    models: Sequence[Transformer],
    pairs: Sequence[Given],
    tokenizers: Tokenizers,
    *,
    device: torch.device,
    batch_tokens: int,
    mix: Mix | None = None,
) -> list[list[float]]:
    """For each pair the natural log-probability of each id of the target, and of EOS; what others are in a batch does not matter.

    Several models are mixed. `batch_tokens`: rows × longest side. No id is suppressed: what no search would give has its probability, too.
    """
    assert not any(model.training for model in models)
    found: list[list[float]] = [[] for _ in pairs]
    for places in batches(pairs, budget=batch_tokens):
        batch = [pairs[place] for place in places]
        with enough_memory(len(batch)):
            values = log_probs_of(models, batch, tokenizers, device, mix or Mix())
        refuse_nan(values, position=1, sentences=[0])
        rest = iter(values.tolist())
        for place, pair in zip(places, batch, strict=True):
            found[place] = [next(rest) for _ in range(len(pair.target) + 1)]
    return found


def log_probs_of(models: Sequence[Transformer], pairs: Sequence[Given], tokenizers: Tokenizers, device: torch.device, mix: Mix) -> Tensor:
    """Log-probabilities (N,) of the ids of a batch and their ends, sentence by sentence."""
    src_BS, allowed_BS, inputs_BT = Inputs.of(pairs, tokenizers, device)
    gold_N = torch.tensor([i for pair in pairs for i in (*pair.target, tokenizers.tgt.eos)], device=device)
    lengths_B1 = torch.tensor([[len(pair.target) + 1] for pair in pairs], device=device)
    real_BT = torch.arange(inputs_BT.size(1), device=device) < lengths_B1
    states_ND = [model.decode(model.encode(src_BS, allowed_BS), allowed_BS, inputs_BT)[real_BT] for model in models]
    found = []
    for gold_C, *states_CD in zip(gold_N.split(CHUNK), *(states.split(CHUNK) for states in states_ND), strict=True):
        logp_CV = mix([log_softmax(model.output(states)) for model, states in zip(models, states_CD, strict=True)])
        found.append(logp_CV.gather(1, gold_C[:, None])[:, 0])
    return torch.cat(found)


def log_softmax(logits_CV: Tensor) -> Tensor:
    """In fp32 or better, as in a search."""
    return torch.log_softmax(logits_CV.to(torch.promote_types(logits_CV.dtype, torch.float32)), dim=-1)
