"""What is proposed: as much as fits into the time, and settings that go together."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.config.presets import MOST_PASSES, ON_CPU, ON_GPU
from mt.launch.look import Look
from mt.launch.propose import FEWEST, MOST, Pace, course_of, propose, tokens_of

CPU = torch.device("cpu")


def pace(update: float = 0.2, per_epoch: float = 100, validation: float = 2.0) -> Pace:
    return Pace(update, per_epoch, validation, 5000)


def values(pairs: int, minutes: float | None, measured: Pace) -> dict[str, str]:
    """The proposed settings by name."""
    look = Look(pairs=pairs)
    sections = propose(look, device=CPU, minutes=minutes, pace=measured).sections
    return {setting.key: setting.value for settings in sections.values() for setting in settings}


@given(
    minutes=st.floats(1, 10_000),
    update=st.floats(0.001, 10),
    per_epoch=st.floats(1, 10**6),
    validation=st.floats(0, 2),
)
def test_a_run_fits_into_its_time(minutes: float, update: float, per_epoch: float, validation: float) -> None:
    course = course_of(ON_CPU[0], pace(update, per_epoch, validation), minutes)
    assert course.seconds <= 60 * minutes or course.updates == 1
    assert FEWEST <= course.validations <= MOST
    assert course.passes <= MOST_PASSES or course.updates == 1


def test_time_is_used() -> None:
    course = course_of(ON_CPU[0], pace(), 30)
    assert 0.9 * 1800 < course.seconds < 1800


@pytest.mark.parametrize("preset", [*ON_CPU, *ON_GPU])
def test_without_a_time_the_preset_says_how_long(preset) -> None:
    assert course_of(preset, pace(), None).passes == preset.passes


def test_more_time_makes_more_passes_and_so_more_dropout() -> None:
    short, long = (values(5000, minutes, pace()) for minutes in (2, 20))
    assert int(short["max_epochs"]) < int(long["max_epochs"])
    assert float(short["dropout"]) < float(long["dropout"])


def test_what_is_less_than_some_passes_ends_at_an_update() -> None:
    few, many = values(10**7, 8, pace(per_epoch=10**6)), values(5000, 8, pace())
    assert "max_epochs" not in few
    assert int(few["max_updates"]) < 2400
    assert "max_updates" not in many
    assert int(many["max_epochs"]) == 21


def test_a_gpu_with_little_memory_gets_the_same_updates_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, base = torch.device("cuda"), ON_GPU[2]
    for room, steps in ((80 * 2**30, 1), (8 * 2**30, 2)):
        monkeypatch.setattr("mt.launch.propose.memory_of", lambda _, room=room: room)
        tokens, found = tokens_of(base, gpu)
        assert (tokens * found, found) == (base.tokens, steps)
