"""`mt data`: what there is to do with corpora before training."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mt.cli import check_command
from mt.cli.usage import Command, Group

data_app = typer.Typer(cls=Group, help="Look at training data, and prepare it ahead of training.", no_args_is_help=True)
data_app.command("check", cls=Command, short_help="Examine corpora: what is wrong, where, and what helps.")(check_command.check)

ConfigFile = Annotated[Path, typer.Option("--config", metavar="FILE", help="Settings, in YAML; see `mt config explain`.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, as in train.seed=2; repeatable.")
]


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)


@data_app.command(cls=Command, short_help="Print pairs as the model will see them.")
def show(
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings, in YAML; see `mt config explain`.")] = None,
    run: Annotated[Path | None, typer.Option("--run", metavar="DIR", help="Instead of --config: the settings and pairs of a run.")] = None,
    overrides: Overrides = None,
    epoch: Annotated[int, typer.Option("--epoch", min=1, metavar="N", help="Which epoch, from 1; noise is another in each.")] = 1,
    count: Annotated[int, typer.Option("--n", min=1, metavar="N", help="How many pairs.")] = 5,
) -> None:
    """Print the first pairs of an epoch as the model will see them.

    Each has its origin, the pieces of its two sides with tag and end mark, and the noise that was put on it.
    What is missing, tokenizer or prepared pairs, is made first.
    """
    from mt.errors import MTError
    from mt.launch.ahead import data_of_config, data_of_run, first_pairs

    if (config is None) == (run is None):
        raise MTError("nothing to show: give --config FILE, or --run DIR" if run is None else "--config and --run: give one of the two")
    data = data_of_config(config, overrides or (), say=say) if config else data_of_run(run or Path(), overrides or (), say=say)
    for line in first_pairs(data, epoch=epoch - 1, count=count):
        print(line)


@data_app.command(cls=Command, short_help="Make the tokenizer and the prepared pairs ahead of training.")
def prepare(config: ConfigFile, overrides: Overrides = None) -> None:
    """Make the tokenizer and the prepared pairs of a config, to be found by `mt train`.

    They are kept in the cache (data.cache), by what they were made from.
    """
    from mt.launch.ahead import data_of_config

    data = data_of_config(config, overrides or (), say=say)
    say(f"{len(data.store)} pairs in {data.store.path}")
