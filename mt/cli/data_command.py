"""`mt data`: what there is to do with corpora before training."""

from __future__ import annotations

import typer

from mt.cli import check_command

data_app = typer.Typer(help="Look at training data, and prepare it ahead of training.", no_args_is_help=True)
data_app.command("check", short_help="Examine corpora: what is wrong, where, and what helps.")(check_command.check)
