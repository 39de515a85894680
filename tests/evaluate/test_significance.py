"""Tests of a difference have the properties of such tests; that they are sacreBLEU's is tested in tests/parity."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.evaluate.metrics import build_metric, segment_statistics
from mt.evaluate.significance import Difference, Resampling, holm, paired

WORDS = ["fox", "hill", "tree", "cup", "bird", "table", "river", "stone", "sings", "runs"]
QUICK = Resampling(samples=200, trials=400)


def text(lines: int, *, kept: float, seed: int = 1) -> list[str]:
    """The same lines for a seed, each word kept with this probability."""
    rng, dropping = random.Random(seed), random.Random(seed + kept)
    return [" ".join(word for word in rng.choices(WORDS, k=12) if dropping.random() < kept) for _ in range(lines)]


def differences(*outputs: list[str], key: str = "chrf", resampling: Resampling = QUICK) -> list[Difference]:
    metric, _ = build_metric(key, lang="en", tokenize=None, lowercase=False)
    reference = text(len(outputs[0]), kept=1)
    return paired(metric, [segment_statistics(metric, output, [reference]) for output in outputs], resampling)[1]


@pytest.mark.parametrize("key", ["bleu", "chrf", "chrf++", "ter"])
def test_a_system_does_not_differ_from_itself(key: str) -> None:
    (one,) = differences(text(30, kept=0.8), text(30, kept=0.8), key=key)
    assert (one.difference, one.interval, one.p_bootstrap, one.p_randomisation, one.significant) == (0, (0, 0), 1, 1, False)


@pytest.mark.parametrize(("key", "sign"), [("bleu", -1), ("chrf", -1), ("chrf++", -1), ("ter", 1)])
def test_a_clear_difference_is_found_and_has_a_direction(key: str, sign: int) -> None:
    good, bad = text(60, kept=0.95), text(60, kept=0.5)
    (worse,), (better,) = differences(good, bad, key=key), differences(bad, good, key=key)
    assert worse.significant
    assert worse.difference * sign > 0
    assert min(bound * sign for bound in worse.interval) > 0
    assert better.difference == -worse.difference
    assert better.interval == pytest.approx((-worse.interval[1], -worse.interval[0]), abs=1e-4)
    assert (better.p_bootstrap, better.p_randomisation) == (worse.p_bootstrap, worse.p_randomisation)


def test_more_lines_make_the_interval_narrower() -> None:
    (few,), (many,) = (differences(text(lines, kept=0.9), text(lines, kept=0.8)) for lines in (40, 640))
    width = [high - low for low, high in (few.interval, many.interval)]
    assert width[0] == pytest.approx(4 * width[1], rel=0.4)


def test_a_system_is_judged_alone_as_it_is_among_others_but_for_the_correction() -> None:
    outputs = [text(40, kept=kept) for kept in (0.9, 0.85, 0.8)]
    together = differences(*outputs)
    for number, one in enumerate(together, start=1):
        (alone,) = differences(outputs[0], outputs[number])
        assert (alone.difference, alone.p_bootstrap, alone.p_randomisation) == (one.difference, one.p_bootstrap, one.p_randomisation)
        assert alone.p_bootstrap_holm == alone.p_bootstrap <= one.p_bootstrap_holm


def test_the_seed_decides_the_draws() -> None:
    outputs = text(40, kept=0.9), text(40, kept=0.87)
    one, again, other = (differences(*outputs, resampling=Resampling(200, 400, seed))[0] for seed in (1, 1, 2))
    assert one == again != other


def test_tests_that_contradict_each_other_decide_nothing() -> None:
    assert [Difference(1, (0, 2), p, q, p, q).significant for p, q in ((0.01, 0.01), (0.01, 0.2), (0.2, 0.2))] == [True, None, False]


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_raises_and_keeps_the_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= q <= min(1, len(p_values) * p) + 1e-12 or q <= 1 for p, q in zip(p_values, corrected, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[place] for place in order] == sorted(corrected)
