"""What given outputs look at in their sources: the weights of one decoder layer's attention, as in Garg et al. 2019 (1909.02074).

The searches run fused kernels, which do not give them; here they are computed after the search, in one pass over what was found.

Legend: B sentences, S source, T target positions, H heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from mt.forced.given import Given, Inputs, batches, enough_memory
from mt.model.transformer import Transformer
from mt.tokenizer.spm import Tokenizers


def attended(
    models: Sequence[Transformer],
    pairs: Sequence[Given],
    tokenizers: Tokenizers,
    *,
    device: torch.device,
    batch_tokens: int,
) -> Iterator[tuple[int, Tensor]]:
    """For each pair, in whatever order, its place and how much each step of the decoder looks at each id of the source.

    A row for each id that is written, the end last, and so one more than the target has ids. The mean of the heads, and of several models;
    what goes to the end of the source is left out. `batch_tokens`: rows × longest side.
    """
    assert not any(model.training for model in models)
    for places in batches(pairs, budget=batch_tokens):
        batch = [pairs[place] for place in places]
        with enough_memory(len(batch)):
            weights_BTS = weights_of(models, Inputs.of(batch, tokenizers, device))
        for place, pair, weights_TS in zip(places, batch, weights_BTS, strict=True):
            yield place, weights_TS[: len(pair.target) + 1, : len(pair.source)]


@torch.inference_mode()
def weights_of(models: Sequence[Transformer], batch: Inputs) -> Tensor:
    """The mean weights (B, T, S) of a batch, on the CPU."""
    src_BS, allowed_BS, inputs_BT = batch
    found = [
        model.attention_to_source(model.encode(src_BS, allowed_BS), allowed_BS, inputs_BT, layer=telling_layer(model)).mean(dim=1)
        for model in models
    ]
    return torch.stack(found).mean(dim=0).cpu()


def telling_layer(model: Transformer) -> int:
    """The decoder layer whose attention tells most: the last but one (docs/results.md has what was measured)."""
    return max(0, len(model.decoder) - 2)
