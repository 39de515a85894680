"""What is left out and depends on the corpus, as far as it can be told beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from mt.config.derived import derive, left_out
from mt.config.schema import Config


def config(**train: Any) -> Config:
    corpus = {"src": "a", "tgt": "b"}
    return Config.model_validate({"data": {"train": [corpus], "dev": corpus}, "train": train})


def told(**train: Any) -> dict[str, str]:
    return dict(line.split(": ") for line in left_out(config(**train)))


def test_what_is_known_is_a_number_and_what_is_not_a_range() -> None:
    assert told(max_updates=400) == {
        "train.schedule.warmup": "40",
        "train.validation.every": "100 to 2000, more for a larger corpus",
        "train.save_every": "100 to 2000, more for a larger corpus",
    }


def test_auto_is_told_as_far_as_it_is_known_without_the_machine() -> None:
    assert told(max_updates=400, batch_tokens="auto")["train.batch_tokens"] == "1024, on CUDA as many as fit"


def test_what_is_given_is_not_told() -> None:
    assert told(max_updates=400, save_every=10, schedule={"warmup": 3}, validation={"every": 7}) == {}
    assert "train.max_updates" not in told(max_minutes=5.0)


@pytest.mark.parametrize("updates", [1, 37, 700, 10**5])
@pytest.mark.parametrize("limits", [{}, {"max_updates": 5000}, {"max_epochs": 3}, {"max_minutes": 5.0}], ids=str)
def test_what_training_derives_is_within(updates: int, limits: dict[str, Any]) -> None:
    train = derive(config(**limits), updates_per_epoch=updates).train
    found = {"train.max_updates": train.max_updates, "train.schedule.warmup": train.schedule.warmup, "train.save_every": train.save_every}
    for key, text in told(**limits).items():
        least, _, most = text.split(",")[0].partition(" to ")
        value = found.get(key, train.validation.every)
        assert value is not None
        assert int(least) <= value <= int(most or least)
