"""What is said of the time a run takes, once its speed is known."""

from __future__ import annotations

from typing import Any

import pytest

from mt.train.forecast import AFTER, Forecast, duration
from tests.train.test_monitor import made, validated


def lines(updates: int, **settings: Any) -> list[str]:
    """What is said over so many updates of 2 seconds and 100 tokens each; the first ones are slower."""
    said: list[str] = []
    forecast = Forecast(**{"end": None, "minutes": None, "per_epoch": 30, "warmup": 10, "every": 10, "say": said.append, **settings})
    for number in range(1, updates + 1):
        forecast(made(number, skipped=True))
        forecast(made(number, seconds=9.0 if number <= 3 else 2.0))
    return said


def test_one_line_after_some_updates_and_no_other() -> None:
    assert lines(AFTER - 1) == []
    assert lines(AFTER) == lines(10 * AFTER) == ["speed: 50 tokens/s; an epoch of 30 updates takes 60 seconds"]


def test_the_end_is_that_of_the_first_limit() -> None:
    (line,) = lines(AFTER, end=AFTER + 600)
    assert line.endswith(f"the end at update {AFTER + 600} is 20 minutes away, validations not counted")
    (line,) = lines(AFTER, end=AFTER + 600, minutes=11.0)
    assert line.endswith(" minutes away, validations not counted")
    assert int(line.split("the end at update ")[1].split()[0]) < AFTER + 330


def test_minutes_that_are_behind_it_count() -> None:
    fresh, resumed = (lines(AFTER, minutes=100.0, seconds=seconds)[0].split("update ")[-1].split()[0] for seconds in (0.0, 600.0))
    assert int(fresh) - int(resumed) == 300


@pytest.mark.parametrize(("warmup", "warned"), [(1000, True), (200, False)])
def test_a_warm_up_that_the_run_will_not_get_out_of(warmup: int, warned: bool) -> None:
    said = lines(AFTER, minutes=15.0, warmup=warmup)
    assert len(said) == 1 + warned
    if warned:
        assert said[1].startswith("warning: at this speed the warm-up of 1000 updates will not be over at update ")
        assert 20 < int(said[1].split("train.schedule.warmup=")[1].split()[0]) < 45


def test_validations_take_of_the_minutes() -> None:
    said: list[str] = []
    forecast = Forecast(end=None, minutes=10.0, per_epoch=30, warmup=1, every=10, say=said.append)
    forecast(validated(0, seconds=560.0))
    for number in range(1, AFTER + 1):
        forecast(made(number))
    assert f"the end at update {AFTER} is 0 seconds away" in said[0]


@pytest.mark.parametrize(("seconds", "warned"), [(4.0, 0), (6.0, 1)])
def test_slow_validations_are_told_of_once(seconds: float, warned: int) -> None:
    """Ten updates of two seconds lie between them."""
    said: list[str] = []
    forecast = Forecast(end=None, minutes=None, per_epoch=30, warmup=1, every=10, say=said.append)
    for number in range(1, AFTER + 10):
        forecast(made(number))
        if number % 10 == 0:
            forecast(validated(number, seconds=seconds))
    assert [line.split(";")[0] for line in said[1:]] == ["warning: validation takes 23% of the time"] * warned


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 seconds"), (89, "89 seconds"), (600, "10 minutes"), (5400, "1.5 hours")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
