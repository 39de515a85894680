"""Wrong usage told with what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand

UsageError: Any = typer.BadParameter.__base__  # of click, which some versions of typer hold and others stand on


class Command(TyperCommand):
    """A command with `--config` and `--set`, the two that are easily written otherwise."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As any command does; a complaint ends with the cure."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            options = {option for parameter in self.params for option in parameter.opts}
            if cure := meant(given, options):
                raise UsageError(f"{error.format_message().rstrip('.')}; {cure}", ctx) from None
            raise


def meant(args: Sequence[str], options: set[str]) -> str | None:
    """What to write instead of a config without its option, or of a setting without `=` or with spaces around it."""
    for before, word, after, later in zip(["", *args], args, [*args[1:], ""], [*args[2:], "", ""], strict=False):
        value = later if after == "=" else after.removeprefix("=")
        if before == "--set" and "=" not in word[:-1] and value and not value.startswith("--"):
            return f"write --set {word.removesuffix('=')}={value}"
        if "--config" in options and not before.startswith("-") and word.endswith((".yaml", ".yml")):
            return f"write --config {word}"
    return None
