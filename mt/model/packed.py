"""Linear layers on a CPU, their weights laid out once in the blocks that oneDNN multiplies, instead of anew for each product.

What `torch.compile` does with frozen weights (torch/_inductor/fx_passes/mkldnn_fusion.py): a product of few rows takes 0.6 to 0.9 of the
time. The weights are in memory twice then.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


class PackedProduct:
    """x Wᵀ + b of a linear layer as its weights are now."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.plain, self.bias = weight, bias
        with torch.no_grad():
            self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)

    def __reduce__(self) -> tuple[type[PackedProduct], tuple[Tensor, Tensor | None]]:
        """Copied and pickled as what it was made of: blocks of oneDNN cannot be."""
        return PackedProduct, (self.plain, self.bias)

    def __call__(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return product


def packs(weight: Tensor) -> bool:
    """Whether these weights can be laid out so: in fp32, or in bf16 where oneDNN multiplies it, on the processors this was measured on."""
    here = weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.bfloat16)
    if here and weight.dtype == torch.bfloat16:
        here = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return here and platform.machine() in ("x86_64", "AMD64") and torch.backends.mkldnn.is_available()


def pack(model: Model) -> Model:
    """The model itself, for translation alone: what is done to its weights from now on has no effect until it is unpacked."""
    for module in model.modules():
        if isinstance(module, nn.Linear) and packs(module.weight):
            vars(module)["forward"] = PackedProduct(module.weight, module.bias)
    return model


def unpack(model: Model) -> Model:
    """The model itself, as it was."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            vars(module).pop("forward", None)
    return model


@contextmanager
def packed(model: nn.Module) -> Iterator[None]:
    """A model that is trained, packed for a while."""
    pack(model)
    try:
        yield
    finally:
        unpack(model)
