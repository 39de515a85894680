"""Legend: B sentences, T queries, S keys, H heads, E head size, D = H·E."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from mt.model.attention import FEW, SHORT, CrossAttention, SelfAttention, attend, join_heads, split_heads
from mt.model.positions import Rotary
from tests.model.untrained import by_formula
from tests.oracle.attention import Affine, attention, multi_head
from tests.oracle.rotary import rotated

B, T, S, H, E = 3, SHORT + 2, 5, 2, 3  # T: so many queries that the fused kernel is asked
D = H * E
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()


def states(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def some_allowed(*shape: int) -> Tensor:
    """A mask without pattern; each query may look at one key at least."""
    allowed = torch.rand(shape, generator=torch.Generator().manual_seed(4)) < 0.5
    allowed[..., 0] |= ~allowed.any(dim=-1)
    return allowed


def affines(linear: nn.Linear, count: int) -> list[Affine]:
    """The blocks of a fused matrix."""
    parts = zip(linear.weight.chunk(count), linear.bias.chunk(count), strict=True)
    return [Affine(weight.tolist(), bias.tolist()) for weight, bias in parts]


def test_heads_are_equal_shares_of_the_columns_and_join_again() -> None:
    x_BTD = states(B, T, D, seed=1)
    x_BHTE = split_heads(x_BTD, H)
    assert torch.equal(x_BHTE[:, 1], x_BTD[:, :, E:])
    assert torch.equal(join_heads(x_BHTE), x_BTD)


@pytest.mark.parametrize("allowed", [None, some_allowed(B, 1, 1, S), some_allowed(B, 1, T, S)], ids=["all", "keys", "any"])
def test_attend_is_the_formula(allowed: Tensor | None) -> None:
    q, k, v = states(B, H, T, E, seed=1), states(B, H, S, E, seed=2), states(B, H, S, E, seed=3)
    full = torch.ones(B, 1, T, S, dtype=torch.bool) if allowed is None else allowed.expand(B, 1, T, S)
    rows = [[(q[b, h].tolist(), k[b, h].tolist(), v[b, h].tolist(), full[b, 0].tolist()) for h in range(H)] for b in range(B)]
    expected = [[attention(*qkv, allowed=may) for *qkv, may in heads] for heads in rows]
    torch.testing.assert_close(attend(q, k, v, allowed=allowed), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("queries", [1, FEW, FEW + 1])
def test_few_queries_are_the_formula_too(queries: int, masked: bool) -> None:
    """On a CPU they go another way than the many above."""
    q, k, v = (states(B, H, n, E, seed=n) for n in (queries, S, S + 1))
    v = v[:, :, :S]
    allowed = some_allowed(B, 1, 1, S) if masked else None
    together = attend(torch.cat([q] * (FEW + 1), dim=2), k, v, allowed=allowed)[:, :, :queries]
    torch.testing.assert_close(attend(q, k, v, allowed=allowed), together)


@pytest.mark.parametrize("queries", [1, FEW])
def test_few_causal_queries_are_the_first_of_many(queries: int) -> None:
    q, k, v = (states(B, H, T, E, seed=n) for n in range(3))
    few = (x[:, :, :queries] for x in (q, k, v))
    torch.testing.assert_close(attend(*few, causal=True), attend(q, k, v, causal=True)[:, :, :queries])


def test_causal_is_the_formula_with_a_triangle() -> None:
    q, k, v = (states(B, H, T, E, seed=seed) for seed in (1, 2, 3))
    expected = [
        [attention(q[b, h].tolist(), k[b, h].tolist(), v[b, h].tolist(), allowed=CAUSAL.tolist()) for h in range(H)] for b in range(B)
    ]
    torch.testing.assert_close(attend(q, k, v, causal=True), torch.tensor(expected, dtype=torch.float64))


def test_bf16_on_a_cpu_is_computed_in_fp32_and_given_back_in_bf16() -> None:
    q, k, v = (states(B, H, T, E, seed=seed).bfloat16() for seed in (1, 2, 3))
    expected = attend(q.float(), k.float(), v.float()).bfloat16()
    found = attend(q, k, v)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, expected)


@pytest.mark.parametrize("heads", [1, H])
@pytest.mark.parametrize(
    ("allowed", "causal"),
    [(None, False), (None, True), (some_allowed(B, 1, 1, T), False), (some_allowed(B, 1, T, T), False)],
    ids=["all", "causal", "keys", "any"],
)
def test_self_attention_is_the_formula(heads: int, allowed: Tensor | None, causal: bool) -> None:
    layer = by_formula(SelfAttention(D, heads))
    q, k, v = affines(layer.qkv, 3)
    (out,) = affines(layer.out, 1)
    x_BTD = states(B, T, D, seed=1)
    full = torch.ones(B, 1, T, T, dtype=torch.bool) if allowed is None else allowed.expand(B, 1, T, T)
    full = full & CAUSAL if causal else full
    expected = [multi_head(x.tolist(), x.tolist(), heads=heads, q=q, k=k, v=v, out=out, allowed=full[b, 0]) for b, x in enumerate(x_BTD)]
    torch.testing.assert_close(layer(x_BTD, allowed=allowed, causal=causal), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_with_rotary_positions_is_the_formula_with_turned_queries_and_keys(causal: bool) -> None:
    """The tables are kept in float32."""
    layer = by_formula(SelfAttention(12, 2, turn=Rotary(6)))
    q, k, v = affines(layer.qkv, 3)
    (out,) = affines(layer.out, 1)
    x_BTD = states(2, T, 12, seed=1)
    full = (CAUSAL if causal else torch.ones_like(CAUSAL)).tolist()
    expected = [multi_head(x.tolist(), x.tolist(), heads=2, q=q, k=k, v=v, out=out, allowed=full, turn=rotated) for x in x_BTD]
    torch.testing.assert_close(layer(x_BTD, causal=causal), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("heads", [1, H])
def test_cross_attention_is_the_formula(heads: int) -> None:
    layer = by_formula(CrossAttention(D, heads))
    (q,), (k, v), (out,) = affines(layer.q, 1), affines(layer.kv, 2), affines(layer.out, 1)
    y_BTD, memory_BSD, allowed = states(B, T, D, seed=1), states(B, S, D, seed=2), some_allowed(B, 1, 1, S)
    expected = [
        multi_head(y.tolist(), m.tolist(), heads=heads, q=q, k=k, v=v, out=out, allowed=[allowed[b, 0, 0].tolist()] * T)
        for b, (y, m) in enumerate(zip(y_BTD, memory_BSD, strict=True))
    ]
    found = layer(y_BTD, memory_BSD, allowed=allowed)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("kind", [SelfAttention, CrossAttention])
def test_dropout_on_weights_acts_in_training_only(kind: type[SelfAttention | CrossAttention]) -> None:
    layer, without = by_formula(kind(D, H, dropout=0.5)), by_formula(kind(D, H))
    x_BTD, allowed = states(B, T, D, seed=1), torch.ones(B, 1, 1, T, dtype=torch.bool)

    def run(layer: SelfAttention | CrossAttention) -> Tensor:
        if isinstance(layer, SelfAttention):
            return layer(x_BTD, allowed=allowed)
        return layer(x_BTD, x_BTD, allowed=allowed)

    assert torch.equal(run(layer), run(without))
    layer.train()
    torch.manual_seed(1)
    first = run(layer)
    assert not torch.equal(first, run(without))
    torch.manual_seed(1)
    assert torch.equal(run(layer), first)
