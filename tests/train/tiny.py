"""Small moving parts, to look at the loop without a corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from mt.config.schema import TrainConfig
from mt.data.batches import Batch, collate
from mt.data.plan import Cursor
from mt.data.store import Example
from mt.formats.pairs import Pair
from mt.model.loss import LossOfBatch
from mt.model.transformer import Transformer
from mt.train.loop import Plan
from mt.train.state import State
from mt.train.validate import Validation
from tests import toy

CPU = torch.device("cpu")
PLAN = Plan(warmup=4, last_update=None, curve_end=None, validate_every=1000, save_every=1000)


def cfg(**settings: Any) -> TrainConfig:
    """Settings of the loop, as they would stand in a file."""
    return TrainConfig.model_validate(settings)


def state(config: TrainConfig | None = None, *, seed: int = 0, dropout: float = 0.0) -> State:
    """A tiny model with everything around it, fresh from this seed."""
    config = config or cfg()
    torch.manual_seed(seed)
    size = toy.tokenizers().src.size
    model = Transformer(src_vocab=size, tgt_vocab=size, dim=8, ffn=16, heads=2, encoder_layers=1, decoder_layers=1, dropout=dropout)
    loss = LossOfBatch(model, smoothing=config.label_smoothing, pad=0).train()
    return State(loss, config, precision="fp32", device=CPU, origin={"tokenizers": ["a", "b"]})


class Slope(nn.Module):
    """A loss that is linear in one weight of two numbers, so that its gradient is what the test says."""

    def __init__(self, *gradient: float) -> None:
        super().__init__()
        self.gradient = torch.tensor(gradient)
        self.model = nn.Module()
        self.model.weight = nn.Parameter(torch.zeros(len(gradient)))
        self.model.dim = 512  # type: ignore[assignment]

    def forward(self, src_BS: Tensor, inputs_BT: Tensor, gold_BT: Tensor, real_N: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return (self.model.weight * self.gradient).sum() * (gold_BT != 0).sum(), (gold_BT != 0).sum()  # type: ignore[operator]


def slope_state(*gradient: float, config: TrainConfig | None = None) -> State:
    """A state around such a loss; the gradient for each token is `gradient`."""
    loss: Any = Slope(*gradient)
    return State(loss, config or cfg(), precision="fp32", device=CPU, origin={"tokenizers": ["a", "b"]})


def batch(*lengths: int, seed: int = 0) -> Batch:
    """Random pairs whose sides have so many pieces."""
    rng = torch.Generator().manual_seed(seed)
    ids = [torch.randint(4, 100, (2, n), generator=rng).tolist() for n in lengths]
    return collate([Example(Pair("", "", f"train.src:{i}"), src, tgt) for i, (src, tgt) in enumerate(ids, 1)], toy.tokenizers())


class Data:
    """Stands in for the corpus: the same micro-batches again and again, `epoch` updates an epoch."""

    def __init__(self, *micro: Batch, epoch: int = 10) -> None:
        self.micro = list(micro) or [batch(3, 5)]
        self.epoch = epoch

    def groups(self, cursor: Cursor, *, size: int) -> Iterator[tuple[list[Batch], Cursor]]:  # noqa: ARG002
        start = cursor.epoch * self.epoch + cursor.batch
        for epoch, batch in (divmod(number, self.epoch) for number in count(start + 1)):
            yield self.micro, Cursor(epoch, batch=batch)


class Scripted:
    """Stands in for the validator: its scores are given beforehand, the last one again and again."""

    pairs = [Pair("a", "b", "dev:1")] * 7

    def __init__(self, metric: str, scores: Sequence[float]) -> None:
        self.metric, self.scores = metric, iter([*scores, *[scores[-1]] * 100])
        self.calls = 0

    def __call__(self, loss: nn.Module) -> Validation:  # noqa: ARG002
        self.calls += 1
        scores = {"loss": 1.0, "bleu": 10.0, "chrf": 20.0, self.metric: next(self.scores)}
        return Validation(loss=scores["loss"], tokens=9, scores=scores, signatures={}, samples=[], seconds=0.0)


def break_gradients(state: State | LossOfBatch, *, when: Callable[[], bool] = lambda: True) -> None:
    """Let a gradient be infinite whenever `when` says so."""
    parameter = next(iter(state.model.parameters()))
    parameter.register_hook(lambda grad: torch.full_like(grad, math.inf) if when() else grad)
