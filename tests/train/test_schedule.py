"""The learning rate of each update: warm-up first, then the curve that was chosen."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config.schema import Constant, Cosine, InverseSqrt, Linear, Noam, Schedule
from mt.train.schedule import learning_rate

LR, WARMUP, END = 1e-3, 40, 200
SHAPED: list[Schedule] = [Cosine(kind="cosine"), Cosine(kind="cosine", floor=0.1), Linear(kind="linear"), Linear(kind="linear", floor=0.1)]
CURVES: list[Schedule] = [InverseSqrt(), Constant(kind="constant"), *SHAPED]


def rate(schedule: Schedule, update: int, *, warmup: int = WARMUP, end: int | None = END) -> float:
    return learning_rate(schedule, update, lr=LR, dim=512, warmup=warmup, end=end)


@pytest.mark.parametrize("schedule", CURVES, ids=repr)
@given(warmup=st.integers(1, 300))
def test_the_warm_up_is_a_line_from_the_first_update_to_the_peak(schedule: Schedule, warmup: int) -> None:
    for update in range(1, warmup + 1):
        assert rate(schedule, update, warmup=warmup) == pytest.approx(LR * update / warmup)


@pytest.mark.parametrize("schedule", CURVES, ids=repr)
def test_after_the_warm_up_the_rate_never_rises(schedule: Schedule) -> None:
    rates = [rate(schedule, update) for update in range(WARMUP, END + 50)]
    assert rates[0] == pytest.approx(LR)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] >= 0


@pytest.mark.parametrize("schedule", SHAPED, ids=repr)
def test_cosine_and_linear_reach_their_floor_at_the_end_and_stay_there(schedule: Cosine | Linear) -> None:
    assert rate(schedule, END - 1) > schedule.floor * LR
    for update in (END, END + 1, 2 * END):
        assert rate(schedule, update) == pytest.approx(schedule.floor * LR, abs=1e-12)


@pytest.mark.parametrize("schedule", SHAPED, ids=repr)
def test_cosine_and_linear_are_half_way_down_in_the_middle(schedule: Cosine | Linear) -> None:
    assert rate(schedule, (WARMUP + END) // 2) == pytest.approx(LR * (1 + schedule.floor) / 2)


def test_linear_falls_evenly_and_cosine_starts_gently() -> None:
    linear, cosine = ([rate(schedule, update) for update in range(WARMUP, END + 1)] for schedule in (SHAPED[2], SHAPED[0]))
    steps = [before - after for before, after in zip(linear, linear[1:], strict=False)]
    assert steps == pytest.approx([LR / (END - WARMUP)] * len(steps))
    assert cosine[1] > linear[1]


def test_inverse_square_root_halves_when_the_updates_are_four_times_as_many() -> None:
    assert rate(InverseSqrt(), 4 * WARMUP, end=None) == pytest.approx(LR / 2)
    assert rate(InverseSqrt(), 100 * WARMUP, end=None) == pytest.approx(LR / 10)


def test_noam_is_the_formula_of_the_paper_and_has_no_rate_of_its_own() -> None:
    for update in (1, 7, WARMUP, 1000):
        expected = 2.0 * 512**-0.5 * min(update**-0.5, update * WARMUP**-1.5)
        for lr in (1e-3, 5.0):
            noam = Noam(kind="noam", factor=2.0)
            assert learning_rate(noam, update, lr=lr, dim=512, warmup=WARMUP, end=None) == pytest.approx(expected)
    assert max(range(1, 1000), key=lambda update: rate(Noam(kind="noam"), update)) == WARMUP


@pytest.mark.parametrize("schedule", SHAPED, ids=repr)
def test_a_warm_up_longer_than_the_run_only_rises(schedule: Schedule) -> None:
    rates = [rate(schedule, update, warmup=300, end=100) for update in range(1, 101)]
    assert rates == sorted(rates)
    assert all(math.isfinite(value) for value in rates)
