"""`mt config show` prints what `load` makes of a file, `mt config schema` what can be in one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from mt.cli.config_command import config_app
from mt.config.load import dump, load
from mt.config.schema import Config
from mt.errors import ConfigError

DATA = "data: {train: [{src: t.en, tgt: t.de}], dev: none}\n"


def test_show_prints_a_config_that_loads(folder: Path) -> None:
    (folder / "x.yaml").write_text(DATA + "train: {max_updates: 5}\n", encoding="utf-8")
    done = CliRunner().invoke(config_app, ["show", "x.yaml", "--set", "train.seed=7", "--set", "model.dim=64"])
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: x.yaml:2: train.max_updates: 5 updates")
    (folder / "shown.yaml").write_text(done.stdout, encoding="utf-8")
    config = load(folder / "shown.yaml").config
    assert (config.train.seed, config.model.dim) == (7, 64)
    settings, derived = ("".join(line for line in done.stdout.splitlines(True) if line.startswith("# ") == comment) for comment in (0, 1))
    assert settings == dump(config)
    assert "# train.schedule.warmup: 1\n" in derived


def test_show_leaves_errors_to_the_command_line(folder: Path) -> None:
    (folder / "x.yaml").write_text(DATA, encoding="utf-8")
    with pytest.raises(ConfigError, match="--set train.sede: unknown key, did you mean `train.seed`"):
        CliRunner().invoke(config_app, ["show", "x.yaml", "--set", "train.sede=7"], catch_exceptions=False)


def test_schema_explains_every_setting() -> None:
    done = CliRunner().invoke(config_app, ["schema"])
    schema = json.loads(done.stdout)
    for stage in (schema, *schema["$defs"].values()):
        assert stage["additionalProperties"] is False
        assert stage["description"]
        for name, setting in stage["properties"].items():
            assert setting.get("description"), f"{stage['title']}.{name} has no text"


def test_no_stage_lets_anything_through() -> None:
    def stages(kind: type[BaseModel]) -> list[type[BaseModel]]:
        return [kind, *(deeper for child in kind.__subclasses__() for deeper in stages(child))]

    for stage in stages(Config.__mro__[1]):
        assert stage.model_config["extra"] == "forbid"
        assert stage.model_config["frozen"]


def test_torch_is_not_needed() -> None:
    run = "import sys; from mt.cli.config_command import config_app; config_app(['schema'], standalone_mode=False)"
    subprocess.run(
        [sys.executable, "-c", f"{run}; assert 'torch' not in sys.modules"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
