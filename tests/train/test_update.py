"""One update: from micro-batches to weights, or to nothing at all if a number is not finite."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mt.data.batches import Batch
from mt.train.events import Update
from mt.train.optim import AdamW
from mt.train.precision import Precision
from mt.train.state import State
from mt.train.update import update
from tests.train import tiny
from tests.train.tiny import break_gradients


def gradient_at_step(state: State, *micro: Batch, clip_norm: float = 0.0) -> tuple[Update, list[Tensor]]:
    """Make an update; the gradient as the optimiser was given it."""
    seen: list[Tensor] = []

    def look(*_: Any) -> None:
        seen.extend(p.grad.clone() for p in state.model.parameters() if p.grad is not None)

    handle = state.optimizer.register_step_pre_hook(look)
    event = update(state, micro, cfg=tiny.cfg(clip_norm=clip_norm), lr=1e-3, start=0.0)
    handle.remove()
    return event, seen


def snapshot(state: State) -> dict[str, Tensor]:
    """Copies of the weights, the optimiser's tensors and the moving average."""
    tensors = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    for i, values in state.optimizer.state_dict()["state"].items():
        tensors |= {f"{i}/{name}": torch.as_tensor(value).clone() for name, value in values.items()}
    if state.ema:
        tensors |= {f"ema/{name}": tensor.clone() for name, tensor in state.ema.average.items()}
    return tensors


def unchanged(before: dict[str, Tensor], after: dict[str, Tensor]) -> bool:
    return before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def test_micro_batches_add_up_to_the_whole_batch() -> None:
    whole = tiny.batch(8, 1, 3, 12, 2)
    rows = [slice(0, 1), slice(1, 2), slice(2, 5)]  # cut out of the whole, so with padding where it is not needed
    parts = [
        Batch(whole.src_BS[r], whole.inputs_BT[r], whole.gold_BT[r], int((whole.gold_BT[r] != 0).sum()), 1, whole.origins[r]) for r in rows
    ]
    event, expected = gradient_at_step(tiny.state(), whole)
    split, found = gradient_at_step(tiny.state(), *parts)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    assert split.loss == pytest.approx(event.loss, abs=1e-6)
    assert split.norm == pytest.approx(event.norm, rel=1e-5)
    assert split.tokens == event.tokens == sum(part.tokens for part in parts)


def test_a_short_group_is_divided_by_its_own_tokens() -> None:
    """The last group of an epoch has fewer micro-batches than `accumulate` says."""
    one, expected = gradient_at_step(tiny.state(), tiny.batch(4))
    state = tiny.state(tiny.cfg(accumulate=8))
    event, found = gradient_at_step(state, tiny.batch(4))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert event.loss == one.loss


def test_the_loss_is_for_each_target_token() -> None:
    state, batch = tiny.state(), tiny.batch(6, 2)
    with torch.no_grad():
        total, _ = state.loss(batch.src_BS, batch.inputs_BT, batch.gold_BT)
    event, _ = gradient_at_step(state, batch)
    assert event.loss == pytest.approx(total.item() / (7 + 3))
    assert (event.tokens, event.src_tokens, event.padded) == (10, 10, 28)


def test_clipping_keeps_the_direction_and_tells_the_true_norm() -> None:
    free, gradient = gradient_at_step(tiny.state(), tiny.batch(5))
    clipped, short = gradient_at_step(tiny.state(), tiny.batch(5), clip_norm=free.norm / 4)
    assert clipped.norm == free.norm
    for one, other in zip(short, gradient, strict=True):
        torch.testing.assert_close(one, other / 4, rtol=1e-4, atol=1e-8)
    loose, same = gradient_at_step(tiny.state(), tiny.batch(5), clip_norm=4 * free.norm)
    assert loose.norm == free.norm
    assert all(torch.equal(a, b) for a, b in zip(same, gradient, strict=True))


def test_gradients_do_not_pile_up_over_updates() -> None:
    state = tiny.slope_state(3.0, 4.0)
    norms = [gradient_at_step(state, tiny.batch(3))[0].norm for _ in range(3)]
    assert norms == [5.0, 5.0, 5.0]


@pytest.mark.parametrize("scaled", [False, True], ids=["no scaler", "loss scaler"])
def test_a_gradient_that_is_not_finite_changes_nothing(scaled: bool) -> None:
    config = tiny.cfg(ema=0.5)
    state = tiny.state(config)
    if scaled:
        state.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    bad = False
    break_gradients(state, when=lambda: bad)
    for _ in range(2):
        gradient_at_step(state, tiny.batch(4))
    before, bad = snapshot(state), True
    event, _ = gradient_at_step(state, tiny.batch(4))
    assert (event.skipped, event.update) == (True, 2)
    assert not math.isfinite(event.norm)
    assert unchanged(before, snapshot(state))
    assert (state.progress.update, state.progress.skipped, state.progress.skipped_in_a_row) == (2, 1, 1)
    assert state.scaler.get_scale() == (512.0 if scaled else 1.0)
    bad = False
    event, _ = gradient_at_step(state, tiny.batch(4))
    assert (event.skipped, event.update) == (False, 3)
    assert (state.progress.skipped, state.progress.skipped_in_a_row) == (1, 0)
    assert not unchanged(before, snapshot(state))


def test_a_loss_that_is_not_finite_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if its gradient is."""
    state = tiny.slope_state(3.0, 4.0)
    gradient_at_step(state, tiny.batch(3))
    before = snapshot(state)
    forward = state.loss.forward
    monkeypatch.setattr(state.loss, "forward", lambda *batch: (forward(*batch)[0] + math.nan, 1))
    event, _ = gradient_at_step(state, tiny.batch(3))
    assert (event.skipped, event.norm) == (True, 5.0)
    assert unchanged(before, snapshot(state))


def test_the_moving_average_follows_each_update() -> None:
    state = tiny.state(tiny.cfg(ema=0.9))
    oracle = deepcopy(state.ema)
    assert oracle is not None
    for number in range(1, 4):
        gradient_at_step(state, tiny.batch(4))
        oracle.update(state.model, updates=number, unless=torch.tensor(False))
    assert state.ema is not None
    assert unchanged(oracle.average, state.ema.average)


def test_an_optimiser_that_cannot_be_told_on_the_device_skips_as_well() -> None:
    state = tiny.slope_state(3.0, 4.0)
    groups = [{key: group[key] for key in ("params", "lr", "weight_decay")} for group in state.optimizer.param_groups]
    state.optimizer = AdamW(groups, fused=False)
    gradient_at_step(state, tiny.batch(3))
    before, bad = snapshot(state), False
    break_gradients(state, when=lambda: bad)
    bad = True
    assert gradient_at_step(state, tiny.batch(3))[0].skipped
    assert unchanged(before, snapshot(state))
    bad = False
    assert not gradient_at_step(state, tiny.batch(3))[0].skipped
    assert not unchanged(before, snapshot(state))


def test_places_of_real_positions_that_are_given_are_those_that_would_be_found() -> None:
    whole = tiny.batch(8, 1, 3, 12, 2)
    event, expected = gradient_at_step(tiny.state(), whole)
    assert whole.real_N is not None
    found, gradient = gradient_at_step(tiny.state(), replace(whole, real_N=None))
    assert found.loss == event.loss
    assert all(torch.equal(a, b) for a, b in zip(gradient, expected, strict=True))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_gradient_checkpointing_makes_the_same_updates_to_the_last_bit(precision: Precision) -> None:
    """With dropout: the second forward pass draws what the first drew, in the same numbers, and torch's generator ends where it would."""
    found = []
    for checkpointing in (False, True):
        state = tiny.state(dropout=0.3)
        state.precision, state.model.gradient_checkpointing = precision, checkpointing
        events = [update(state, [tiny.batch(5, 3), tiny.batch(4)], cfg=tiny.cfg(), lr=1e-2, start=0.0) for _ in range(3)]
        found.append((snapshot(state), [(event.loss, event.norm) for event in events], torch.rand(())))
    (weights, told, draw), (weights_again, told_again, draw_again) = found
    assert unchanged(weights, weights_again)
    assert told == told_again
    assert draw == draw_again
