"""`mt config show`, `mt config explain` and `mt config schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mt.cli.usage import Command, Group

config_app = typer.Typer(cls=Group, help="Show what a config file comes to, and what can be in one.", no_args_is_help=True)


@config_app.command(cls=Command)
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Config file.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, as in train.seed=2; repeatable.")
    ] = None,
) -> None:
    """Check a config file and print its effective settings.

    They are printed as YAML, defaults included, but for those that are unset; what training will derive stands below it.
    """
    from mt.clean.filters import refuse_what_cannot_filter
    from mt.config.derived import left_out
    from mt.config.load import dump, load

    config, warnings = load(file, overrides or ())
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    refuse_what_cannot_filter(config)
    typer.echo(dump(config), nl=False)
    for line in left_out(config):
        typer.echo(f"# {line}")


@config_app.command(cls=Command)
def explain(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A setting or a group of them, such as train.optimizer or lr; all without it.")
    ] = "",
) -> None:
    """Print what the settings do, with their defaults.

    The `*` in a name stands for a number or a name: data.train.*.weight is that of each training corpus.
    """
    from mt.config.manual import manual

    for line in manual(name):
        typer.echo(line)


@config_app.command(cls=Command)
def schema() -> None:
    """Print the JSON schema of config files.

    It holds every setting, what it does and its default; editors complete and check with it.
    """
    from mt.config.schema import Config

    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    typer.echo(json.dumps(head | Config.model_json_schema(), indent=2, ensure_ascii=False))
