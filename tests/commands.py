"""For tests of one command by itself, in the test's own process, and of the files it reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from mt.errors import MTError


class Command:
    """A command; errors are raised, not printed."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._app = typer.Typer()
        self._app.command(name, context_settings={"allow_extra_args": True})(function)

    def run(self, *words: str | Path, stdin: str | None = None) -> Result:
        return CliRunner().invoke(self._app, [str(word) for word in words], input=stdin, catch_exceptions=False)

    def refusal(self, *words: str | Path) -> str:
        """The one line of an error that the user can cure."""
        with pytest.raises(MTError) as error:
            self.run(*words)
        assert "\n" not in str(error.value)
        return str(error.value)


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path
