"""`--help` comes at once, is plain text, and explains every command and option."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import typer

from mt.cli.app import app


def commands(command, words: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    """Every command by its words, groups included: (), ("train",), ("config", "show"), …"""
    found = {words: command}
    for name, child in getattr(command, "commands", {}).items():
        found |= commands(child, (*words, name))
    return found


COMMANDS = commands(typer.main.get_command(app))


def mt(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mt", *words], capture_output=True, encoding="utf-8", env={**os.environ, **environment})


def children_seconds() -> float:
    """Processor time of finished child processes: unlike the clock's, it hardly depends on what else the machine does."""
    times = os.times()
    return times.children_user + times.children_system


def test_help_comes_at_once() -> None:
    before = children_seconds()
    done = mt("--help")
    seconds = children_seconds() - before
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in ("train", "translate", "eval", "config"))
    assert seconds < 1, f"mt --help computed for {seconds:.2f} s; is something heavy imported outside a command?"


def test_no_help_loads_a_heavy_library() -> None:
    code = f"""
import sys
from mt.cli.app import app
for words in {list(COMMANDS)}:
    app([*words, "--help"], standalone_mode=False)
print("loaded:", *({{"torch", "datasets", "sacrebleu", "sentencepiece", "tensorboard"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["loaded:"]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(("mt", *words)))
def test_everything_is_explained(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    assert command.help
    assert [param.name for param in command.params if not param.hidden and not param.help] == []
    if hasattr(command, "commands"):  # the one-line summaries: a long first sentence is cut
        summaries = mt(*words, "--help").stdout.partition("\nCommands:\n")[2]
        assert "..." not in summaries


def test_help_is_plain_text_even_where_colour_is_forced() -> None:
    plain, forced = mt("train", "--help", NO_COLOR="1"), mt("train", "--help", FORCE_COLOR="1", TERM="xterm-256color")
    assert plain.returncode == 0
    assert plain.stdout == forced.stdout
    assert "\x1b" not in plain.stdout
