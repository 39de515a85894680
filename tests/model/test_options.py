"""What holds for every model that can be built, whatever its options. Legend: B sentences, S source, T target positions, V vocabulary."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mt.model.loss import LossOfBatch
from mt.model.transformer import Transformer
from tests.model.untrained import EOS, PAD, VOCAB, Ids, batch, gradients, sentences, small_transformer

SOURCES, TARGETS = sentences(2, 6, 4, seed=1), sentences(5, 1, 3, seed=2)
IDS = batch(SOURCES, TARGETS)
EXACT = {"rtol": 1e-9, "atol": 1e-9}

OPTIONS = st.fixed_dictionaries(
    {
        "pre_norm": st.booleans(),
        "norm_kind": st.sampled_from(["layer", "rms"]),
        "activation": st.sampled_from(["relu", "gelu", "swiglu"]),
        "positions": st.sampled_from(["sinusoidal", "rope"]),
        "joint": st.booleans(),
        "tied": st.booleans(),
        "heads": st.sampled_from([1, 2, 4]),
        "encoder_layers": st.integers(1, 3),
        "decoder_layers": st.integers(1, 3),
    }
)
DROPOUTS = st.fixed_dictionaries(
    {name: st.sampled_from([0.0, 0.3]) for name in ("dropout", "attention_dropout", "activation_dropout", "word_dropout")}
)
every_model = given(options=OPTIONS)
some = settings(max_examples=25)


def logits(model: Transformer, ids: Ids) -> Tensor:
    """(B, T, V)."""
    allowed_BS = ids.src_BS != PAD
    return model.output(model.decode(model.encode(ids.src_BS, allowed_BS), allowed_BS, ids.inputs_BT))


@every_model
@some
@torch.no_grad()
def test_a_sentence_is_the_same_alone_and_among_others_padded_or_not(options: dict[str, Any]) -> None:
    model = small_transformer(**options)
    together_BTV = logits(model, IDS)
    for b, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone_TV = logits(model, batch([source], [target]))[0]
        torch.testing.assert_close(together_BTV[b, : len(target) + 1], alone_TV, **EXACT)
    torch.testing.assert_close(logits(model, Ids(*(ids.flip(0) for ids in IDS))), together_BTV.flip(0), **EXACT)


@every_model
@some
@torch.no_grad()
def test_what_stands_in_padding_changes_nothing(options: dict[str, Any]) -> None:
    """What memory holds there: other numbers, by far."""
    model, allowed_BS = small_transformer(**options), IDS.src_BS != PAD
    memory_BSD = model.encode(IDS.src_BS, allowed_BS)
    filled_BSD = memory_BSD.masked_fill(~allowed_BS[:, :, None], 1e3)
    assert torch.equal(model.decode(filled_BSD, allowed_BS, IDS.inputs_BT), model.decode(memory_BSD, allowed_BS, IDS.inputs_BT))


@given(options=OPTIONS, position=st.integers(1, 5), word=st.integers(EOS + 1, VOCAB - 1))
@some
@torch.no_grad()
def test_a_later_target_changes_no_earlier_logit(options: dict[str, Any], position: int, word: int) -> None:
    model = small_transformer(**options)
    changed_BT = IDS.inputs_BT.clone()
    changed_BT[:, position:] = word
    before, after = logits(model, IDS), logits(model, IDS._replace(inputs_BT=changed_BT))
    torch.testing.assert_close(after[:, :position], before[:, :position], **EXACT)
    changed_B = changed_BT[:, position] != IDS.inputs_BT[:, position]
    assert not torch.isclose(after[:, position], before[:, position])[changed_B].all(dim=-1).any()


@given(options=OPTIONS, rows=st.lists(st.integers(0, len(SOURCES) - 1), min_size=1, max_size=5))
@some
@torch.no_grad()
def test_cached_is_uncached_also_after_rows_were_chosen(options: dict[str, Any], rows: list[int]) -> None:
    model, allowed_BS = small_transformer(**options), IDS.src_BS != PAD
    expected_BTV = logits(model, IDS)
    cache = model.start(model.encode(IDS.src_BS, allowed_BS), allowed_BS)
    rows_R = torch.arange(len(SOURCES))
    for t in range(IDS.inputs_BT.size(1)):
        if t == 2:
            rows_R = torch.tensor(rows)
            cache = cache.reorder(rows_R)
        found_RV, cache = model.step(IDS.inputs_BT[rows_R, t], cache)
        torch.testing.assert_close(found_RV, expected_BTV[rows_R, t], **EXACT)


@given(options=OPTIONS, dropouts=DROPOUTS)
@some
def test_gradient_checkpointing_gives_the_same_loss_and_gradients(options: dict[str, Any], dropouts: dict[str, float]) -> None:
    found = []
    for checkpointing in (False, True):
        model = small_transformer(**options, **dropouts, gradient_checkpointing=checkpointing).train()
        torch.manual_seed(1)
        total, _ = LossOfBatch(model, smoothing=0.1, pad=PAD)(*IDS)
        total.backward()
        found.append((total, gradients(model), torch.get_rng_state()))
    (loss, grads, rng), (loss_again, grads_again, rng_again) = found
    assert torch.equal(loss, loss_again)
    assert torch.equal(rng, rng_again)
    assert grads.keys() == grads_again.keys() == dict(model.named_parameters()).keys()
    assert all(torch.equal(grads[name], grads_again[name]) for name in grads)


@given(options=OPTIONS, dropouts=DROPOUTS)
@some
@torch.no_grad()
def test_weights_go_to_another_model_and_dropout_is_over_with_training(options: dict[str, Any], dropouts: dict[str, float]) -> None:
    model, other = small_transformer(**options), small_transformer(**options, **dropouts)
    for parameter in other.parameters():
        parameter.zero_()
    other.load_state_dict(model.state_dict())
    assert torch.equal(logits(other, IDS), logits(model, IDS))


@every_model
@settings(max_examples=8)
def test_bf16_autocast_is_close_to_fp32(options: dict[str, Any]) -> None:
    model = small_transformer(**options).float().train()
    loss = LossOfBatch(model, smoothing=0.1, pad=PAD)
    exact, _ = loss(*IDS)
    with torch.autocast("cpu", torch.bfloat16):
        total, _ = loss(*IDS)
    total.backward()
    assert total.dtype == torch.float32
    torch.testing.assert_close(total, exact, rtol=0.05, atol=0)
    assert all(grad.isfinite().all() for grad in gradients(model).values())


@every_model
@settings(max_examples=8)
def test_gradients_are_those_of_the_loss(options: dict[str, Any]) -> None:
    """By differences, along one direction through all parameters; smooth activations only, as a ramp has a corner."""
    model = small_transformer(**{**options, "activation": "gelu" if options["activation"] == "relu" else options["activation"]})
    loss = LossOfBatch(model, smoothing=0.1, pad=PAD).train()
    loss(*IDS)[0].backward()
    generator = torch.Generator().manual_seed(1)
    direction = [torch.randn(p.shape, dtype=p.dtype, generator=generator) for p in model.parameters()]
    slope = sum((p.grad * d).sum() for p, d in zip(model.parameters(), direction, strict=True) if p.grad is not None)

    def at(step: float) -> Tensor:
        with torch.no_grad():
            for p, d in zip(model.parameters(), direction, strict=True):
                p += step * d
            total = loss(*IDS)[0]
            for p, d in zip(model.parameters(), direction, strict=True):
                p -= step * d
        return total

    assert ((at(1e-5) - at(-1e-5)) / 2e-5).tolist() == pytest.approx(float(slope), rel=1e-5)
