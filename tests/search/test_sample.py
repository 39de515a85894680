from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DecodeError
from mt.search.greedy import greedy_search
from mt.search.sample import draw, nucleus, sample_search
from mt.search.step import Hypothesis
from tests.oracle.brute_force import brute_force
from tests.oracle.table_model import BOS, EOS, Table, TableStep, random_table, written_table

SEEDS = st.integers(0, 10**6)
SETTINGS = st.sampled_from([(1.0, 0, 1.0), (0.7, 0, 1.0), (1.0, 2, 1.0), (1.0, 0, 0.7), (1.5, 3, 0.9)])

CHI_SQUARE_9999 = {1: 15.14, 2: 18.42, 3: 21.11, 4: 23.51, 12: 39.13}
"""Degrees of freedom → what a correct sampler exceeds once in ten thousand times; the seeds are fixed."""


def sample(*tables: Table, limits: Sequence[int], seeds: Sequence[int], settings: tuple[float, int, float]) -> list[Hypothesis]:
    step = TableStep(*tables)
    temperature, top_k, top_p = settings
    return sample_search(
        step,
        step.start(),
        bos=BOS,
        eos=EOS,
        limits=limits,
        seeds=seeds,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
    )


def assert_follows(counts: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> None:
    """`expected`: the probability of everything that may occur."""
    assert set(counts) <= set(expected)
    draws = counts.total()
    statistic = sum((counts[x] - draws * p) ** 2 / (draws * p) for x, p in expected.items())
    assert statistic < CHI_SQUARE_9999[len(expected) - 1]


def test_outputs_come_as_often_as_they_are_probable() -> None:
    table = random_table(3, words=3)
    outputs = brute_force(table, limit=3, length_penalty=1.0)
    reach = {tuple(o.ids): math.exp(o.log_prob) for o in outputs}
    for o in outputs:  # at the limit EOS is forced, so an output is as frequent as its last prefix
        if len(o.ids) == 2:
            reach[tuple(o.ids)] /= math.exp(table(tuple(o.ids))[EOS])
    hypotheses = sample(*[table] * 3000, limits=[3] * 3000, seeds=range(3000), settings=(1.0, 0, 1.0))
    assert sum(reach.values()) == pytest.approx(1.0)
    assert_follows(Counter(tuple(h.ids) for h in hypotheses), reach)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((1.0, 0, 1.0), {"a": 0.45, "b": 0.3, "c": 0.15, "d": 0.1}),
        ((0.5, 0, 1.0), {"a": 0.45**2, "b": 0.3**2, "c": 0.15**2, "d": 0.1**2}),
        ((2.0, 0, 1.0), {"a": 0.45**0.5, "b": 0.3**0.5, "c": 0.15**0.5, "d": 0.1**0.5}),
        ((1.0, 2, 1.0), {"a": 0.45, "b": 0.3}),
        ((1.0, 99, 1.0), {"a": 0.45, "b": 0.3, "c": 0.15, "d": 0.1}),
        ((1.0, 0, 0.7), {"a": 0.45, "b": 0.3}),
        ((1.0, 0, 0.8), {"a": 0.45, "b": 0.3, "c": 0.15}),
        ((1.0, 3, 0.8), {"a": 0.45, "b": 0.3}),  # top-p is a share of what top-k leaves: 0.75 of 0.9
        ((0.5, 3, 0.95), {"a": 0.45**2, "b": 0.3**2, "c": 0.15**2}),
    ],
)
def test_settings_shape_the_distribution_of_a_token(settings: tuple[float, int, float], expected: dict[str, float]) -> None:
    words = "b d a c"  # in the table the order is not that of probability
    first = {"a": 0.45, "b": 0.3, "c": 0.15, "d": 0.1}
    table = written_table(words, {"": first, **{word: {"</s>": 1.0} for word in first}})
    hypotheses = sample(*[table] * 2000, limits=[2] * 2000, seeds=range(2000), settings=settings)
    counts = Counter(tuple(h.ids) for h in hypotheses)
    total = sum(expected.values())
    assert_follows(counts, {(4 + words.split().index(word),): p / total for word, p in expected.items()})


@given(seeds=st.lists(SEEDS, min_size=2, max_size=5), settings=SETTINGS, data=st.data())
def test_a_sample_is_decided_by_its_seed_and_not_by_its_batch(
    seeds: list[int], settings: tuple[float, int, float], data: st.DataObject
) -> None:
    tables = [random_table(seed, words=4) for seed in seeds]
    limits = [data.draw(st.integers(1, 6)) for _ in seeds]
    together = sample(*tables, limits=limits, seeds=seeds, settings=settings)
    alone = [
        sample(table, limits=[limit], seeds=[seed], settings=settings)[0] for table, limit, seed in zip(tables, limits, seeds, strict=True)
    ]
    assert together == alone


@given(seed=SEEDS, settings=SETTINGS)
def test_the_log_probability_is_the_models_own(seed: int, settings: tuple[float, int, float]) -> None:
    table = random_table(seed, words=3)
    (hypothesis,) = sample(table, limits=[4], seeds=[seed], settings=settings)
    (same,) = [o for o in brute_force(table, limit=4, length_penalty=1.0) if o.ids == hypothesis.ids]
    assert (hypothesis.log_prob, hypothesis.score, hypothesis.truncated) == (same.log_prob, same.score, same.truncated)


@given(
    seed=SEEDS,
    settings=st.sampled_from([(0.0, 0, 1.0), (1e-8, 0, 1.0), (1.0, 1, 1.0), (1.0, 0, 1e-9), (0.0, 5, 0.5)]),
)
def test_without_room_for_chance_sampling_is_greedy(seed: int, settings: tuple[float, int, float]) -> None:
    """Temperature near 0, top-k 1, top-p near 0."""
    table = random_table(seed, words=5)
    step = TableStep(table)
    greedy = greedy_search(step, step.start(), bos=BOS, eos=EOS, limits=[6])
    assert sample(table, limits=[6], seeds=[seed], settings=settings) == greedy


def test_a_low_temperature_above_that_does_not_overflow() -> None:
    words = {"a": 0.4, "b": 0.3, "c": 0.3}
    table = written_table("b a c", {"": words, **{word: {"</s>": 1.0} for word in words}})
    hypotheses = sample(*[table] * 50, limits=[2] * 50, seeds=range(50), settings=(2e-4, 0, 1.0))
    assert all(h.ids == [5] and math.isfinite(h.log_prob) for h in hypotheses)


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0 - 2**-53])  # the last is 1.0 in float32
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (4, 1.0), (0, 0.9), (4, 0.9)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_impossible_tokens_are_never_drawn_not_even_at_the_ends(uniform: float, top_k: int, top_p: float, dtype: torch.dtype) -> None:
    logp_RV = torch.tensor([[0.0, 0.0, 0.3, 0.0, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]], dtype=dtype).log()
    uniform_R = torch.tensor([uniform, uniform], dtype=dtype)
    drawn_R = draw(logp_RV, uniform_R, temperature=1.0, top_k=top_k, top_p=top_p)
    assert (logp_RV.gather(1, drawn_R[:, None]) > -torch.inf).all()


def test_nucleus_is_the_head_of_a_full_sort_whatever_the_other_rows_need() -> None:
    """Of 3000 tokens the three rows need some dozens, some hundreds and nearly all."""
    noise_V = torch.sin(torch.arange(3000, dtype=torch.float64) * 0.7)
    p_RV = torch.stack([noise_V * 1000, noise_V * 30, noise_V * 0.1]).softmax(dim=1)
    mass_RK, id_RK = nucleus(p_RV, 0.9)
    for p_V, mass_K, id_K in zip(p_RV, mass_RK, id_RK, strict=True):
        order = p_V.argsort(descending=True, stable=True).tolist()
        kept = int((mass_K < 0.9).sum()) + 1
        assert id_K[:kept].tolist() == order[:kept]
        assert p_V[order[: kept - 1]].sum() < 0.9 <= p_V[order[:kept]].sum() + 1e-12
        alone_K, _ = nucleus(p_V[None], 0.9)
        assert torch.equal(alone_K[0, :kept], mass_K[:kept])
    assert nucleus(p_RV[:1], 0.9)[1].size(1) == 256


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((-1.0, 0, 1.0), "temperature -1"),
        ((math.nan, 0, 1.0), "temperature nan"),
        ((math.inf, 0, 1.0), "temperature inf"),
        ((1.0, -1, 1.0), "top-k -1"),
        ((1.0, 0, 0.0), "top-p 0"),
        ((1.0, 0, 1.1), r"top-p 1\.1"),
        ((0.0, 0, math.nan), "top-p nan"),
    ],
)
def test_settings_that_describe_no_distribution_are_refused(settings: tuple[float, int, float], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        sample(random_table(0, words=2), limits=[3], seeds=[1], settings=settings)


def test_nan_is_refused() -> None:
    with pytest.raises(DecodeError, match="step 1: log-probabilities are NaN"):
        sample(lambda _: [math.nan] * 6, limits=[3], seeds=[1], settings=(1.0, 0, 1.0))


def test_a_row_that_may_not_go_on_ends_with_probability_zero() -> None:
    dead_end = written_table("a", {"": {"a": 1.0}, "a": {}})
    (hypothesis,) = sample(dead_end, limits=[9], seeds=[1], settings=(1.0, 0, 1.0))
    assert (hypothesis.ids, hypothesis.log_prob) == ([4], -math.inf)
