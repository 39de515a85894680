"""A small Transformer in float64 with weights by a formula, and ids for it. Legend: B sentences, S source, T target positions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from mt.data.batches import padded
from mt.model.transformer import Transformer

PAD, UNK, BOS, EOS = range(4)
VOCAB = 13
DIM = 8
FFN = 12

Module = TypeVar("Module", bound=nn.Module)


def by_formula(module: Module) -> Module:
    """The module in float64 and evaluation mode, its weights decided by no generator: sines of squares. (Those of n·0.7 have rank 2.)"""
    for i, (name, parameter) in enumerate(module.double().named_parameters()):
        count = torch.arange(parameter.numel(), dtype=torch.float64)
        values = torch.sin(0.7 * count**2 + i) / parameter.size(-1) ** 0.5
        parameter.data = values.view_as(parameter) + ("norm" in name and name.endswith("weight"))
    return module.eval()


def small_transformer(
    *,
    pre_norm: bool = True,
    joint: bool = True,
    tied: bool = True,
    **options: Any,
) -> Transformer:
    """Three layers in all, two heads, unless the options say otherwise; a separate source vocabulary is two larger."""
    shape = {"heads": 2, "encoder_layers": 1, "decoder_layers": 2, **options}
    src_vocab = VOCAB if joint else VOCAB + 2
    model = Transformer(src_vocab=src_vocab, tgt_vocab=VOCAB, dim=DIM, ffn=FFN, pre_norm=pre_norm, joint=joint, tied=tied, **shape)
    return by_formula(model)


def lively_transformer() -> Transformer:
    """Untied, and with stronger layers: its outputs differ from source to source; some end by themselves, others at the limit."""
    model = small_transformer(joint=False, tied=False)
    with torch.no_grad():
        for layer in (*model.encoder, *model.decoder):
            for parameter in layer.parameters():
                parameter *= 4 if parameter.dim() == 2 else 1
    return model


class Ids(NamedTuple):
    """What the loss takes."""

    src_BS: Tensor
    inputs_BT: Tensor
    gold_BT: Tensor


def sentences(*lengths: int, seed: int = 0) -> list[list[int]]:
    """Word ids, one list for each length."""
    rng = random.Random(seed)
    return [[rng.randrange(EOS + 1, VOCAB) for _ in range(length)] for length in lengths]


def batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Ids:
    """Sentences with their end and start symbols, padded."""
    return Ids(
        src_BS=padded([[*ids, EOS] for ids in sources], pad=PAD),
        inputs_BT=padded([[BOS, *ids] for ids in targets], pad=PAD),
        gold_BT=padded([[*ids, EOS] for ids in targets], pad=PAD),
    )


def gradients(module: nn.Module) -> dict[str, Tensor]:
    """The gradient of each parameter, by name."""
    return {name: parameter.grad.clone() for name, parameter in module.named_parameters() if parameter.grad is not None}
