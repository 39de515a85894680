"""A packed model multiplies as it did before; unpacked it is what it was. Legend: B sentences, S source, T target positions."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from mt.model import packed as module
from mt.model.packed import PackedProduct, pack, packed, packs, unpack
from mt.model.transformer import Transformer

SRC_BS = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
INPUTS_BT = torch.tensor([[2, 9, 4], [2, 5, 5]])
needs_onednn = pytest.mark.skipif(not packs(torch.ones(1)), reason="only where oneDNN multiplies, on x86")


def small(**options: bool) -> Transformer:
    torch.manual_seed(1)
    shape = {"dim": 16, "ffn": 24, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}
    return Transformer(src_vocab=40, tgt_vocab=40, **shape, **options).eval()


def logits(model: Transformer) -> Tensor:
    memory_BSD = model.encode(SRC_BS, SRC_BS != 0)
    return model.output(model.decode(memory_BSD, SRC_BS != 0, INPUTS_BT)).float()


@needs_onednn
@pytest.mark.parametrize("tied", [True, False])
def test_the_products_are_the_same_and_each_linear_layer_has_its_own(tied: bool) -> None:
    model = small(tied=tied)
    with torch.inference_mode():
        plain = logits(model)
        assert pack(model) is model
        products = [m.forward for m in model.modules() if isinstance(m, nn.Linear)]
        assert all(isinstance(product, PackedProduct) for product in products)
        torch.testing.assert_close(logits(model), plain, rtol=1e-5, atol=1e-5)
        assert torch.equal(logits(unpack(model)), plain)


@needs_onednn
def test_in_bf16_they_differ_by_its_rounding_alone() -> None:
    with torch.inference_mode():
        exact, narrow = logits(small()), logits(small().narrowed(torch.bfloat16))
        found = logits(pack(small().narrowed(torch.bfloat16)))
    assert (found - narrow).abs().max() <= (narrow - exact).abs().max()


@needs_onednn
@pytest.mark.parametrize("shape", [(0, 16), (1, 16), (3, 1, 16), (2, 5, 16)])
@pytest.mark.parametrize("bias", [True, False])
def test_any_shape_goes_through(shape: tuple[int, ...], bias: bool) -> None:
    linear = nn.Linear(16, 24, bias=bias)
    x = torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(PackedProduct(linear.weight, linear.bias)(x), linear(x), rtol=1e-5, atol=1e-6)


def test_a_model_that_was_packed_for_a_while_learns_on_and_is_packed_anew_as_it_is_then() -> None:
    model = small()
    with packed(model), torch.inference_mode():
        before = logits(model)
    logits(model.train()).logsumexp(-1).sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter -= parameter.grad
    with torch.inference_mode():
        plain = logits(model.eval())
        with packed(model):
            torch.testing.assert_close(logits(model), plain, rtol=1e-5, atol=1e-5)
    assert (plain - before).abs().max() > 1e-3


def test_a_model_is_itself_again_after_an_error() -> None:
    model = small()
    with pytest.raises(KeyError), packed(model):
        raise KeyError
    assert not any("forward" in vars(m) for m in model.modules())


@needs_onednn
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copied", "pickled"])
def test_a_packed_model_can_be_given_to_another_process(copied: Callable[[Transformer], Transformer]) -> None:
    model = pack(small(tied=True))
    other = copied(model)
    products = [m.forward for m in other.modules() if isinstance(m, nn.Linear)]
    assert all(isinstance(product, PackedProduct) for product in products)
    with torch.inference_mode():
        assert torch.equal(logits(other), logits(model))
        assert torch.equal(logits(unpack(other)), logits(unpack(model)))
    assert other.output.weight is not model.output.weight


def test_other_numbers_and_other_machines_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not packs(torch.ones(1, dtype=torch.float64))
    assert not packs(torch.ones(1, dtype=torch.float16))
    assert not packs(torch.ones(1, device="meta"))
    monkeypatch.setattr(module.platform, "machine", lambda: "arm64")
    assert not packs(torch.ones(1))
    assert not any("forward" in vars(m) for m in pack(small()).modules())
