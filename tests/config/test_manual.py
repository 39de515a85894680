"""`mt config explain` says what every setting does."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from mt.cli.config_command import config_app
from mt.config.manual import manual
from mt.config.names import settings
from mt.errors import ConfigError


def named(lines: list[str]) -> list[str]:
    return [line.partition(":")[0] for line in lines if not line.startswith(" ")]


def test_every_setting_is_there_once_and_explained() -> None:
    lines = list(manual())
    names = named(lines)
    assert len(names) == len(set(names))
    held_out = [("data", "dev"), ("data", "test")]  # corpora, as in data.train
    assert set(names) == {".".join(map(str, trail)) for trail in settings() if len(trail) < 3 or trail[:2] not in held_out}
    assert all(after.startswith("    ") for line, after in zip(lines, [*lines[1:], ""], strict=True) if not line.startswith(" "))
    assert max(map(len, lines)) <= 100


def test_a_group_and_a_name() -> None:
    assert set(named(list(manual("train.optimizer")))) > {"train.optimizer", "train.optimizer.lr", "train.optimizer.betas"}
    assert named(list(manual("seed"))) == ["train.seed"]
    assert named(list(manual("beam"))) == ["train.validation.beam", "decode.beam"]


def test_the_forms_of_a_group_share_their_choices() -> None:
    assert list(manual("train.schedule.kind"))[-1] == "    One of: inverse_sqrt, noam, cosine, linear, constant"


def test_defaults_are_yaml() -> None:
    first = {name: next(manual(name)) for name in ("train.keep", "model.norm", "data.tags", "train.max_minutes", "data.train")}
    assert first == {
        "train.keep": "train.keep: 5",
        "model.norm": "model.norm: pre",
        "data.tags": "data.tags: auto",
        "train.max_minutes": "train.max_minutes: (left out)",
        "data.train": "data.train: (needed)",
    }


def test_an_unknown_name_is_told_with_the_one_that_is_meant() -> None:
    with pytest.raises(ConfigError, match="^max_minute: no such setting, did you mean `max_minutes`\\?$"):
        list(manual("max_minute"))
    with pytest.raises(ConfigError, match="^xyzzy: no such setting; `mt config explain` prints all$"):
        list(manual("xyzzy"))


def test_the_command_prints_it() -> None:
    done = CliRunner().invoke(config_app, ["explain", "train.seed"])
    assert done.stdout.splitlines() == list(manual("train.seed"))
