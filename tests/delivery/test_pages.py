"""What the pages say of commands and settings is true: every command, option and key in them exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from mt.cli.app import app
from mt.config.names import settings
from tests.delivery.pages import PAGES, ROOT, blocks, calls, spoken

COMMAND = typer.main.get_command(app)
KEYS = {".".join(map(str, trail)) for trail in settings()}
GROUPS = {key.partition(".")[0] for key in KEYS}
KEY = re.compile(rf"`((?:{'|'.join(sorted(GROUPS))})(?:\.[\w*]+)+)(?::[^`]*|=[^`]*)?`")


FILES = {"tokenizer.model", "model.safetensors", "train.en", "train.de"}
"""What looks like a setting."""


def is_setting(key: str) -> bool:
    """Whether there is such a setting, or a group of them; numbers and `*` stand for a place in a list, and any name for a set's."""
    parts = ["*" if part.isdigit() else part for part in key.split(".")]
    if parts[-1] == "*":
        parts.pop()
    if parts[:2] in (["data", "dev"], ["data", "test"]):
        return True
    return any(f"{one}.".startswith(f"{'.'.join(parts)}.") for one in KEYS)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def trouble(words: list[str]) -> str | None:
    """What is wrong with the words after `mt`: no such command, no such option, a word too many. Values are not looked at."""
    command: Any = COMMAND
    path = ["mt"]
    while subcommands := getattr(command, "commands", None):
        if not words or words[0].startswith("-") or words[0].isupper():
            break
        if words[0] not in subcommands:
            return f"{' '.join(path)} {words[0]}: no such command"
        command, words, path = subcommands[words[0]], words[1:], [*path, words[0]]
    options = {option: parameter for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    arguments = sum(parameter.param_type_name == "argument" for parameter in command.params)
    rest = iter(words)
    for word in rest:
        option, equals, _ = word.partition("=")
        if word in ("--help", "-h", "…", "..."):
            continue
        if word.startswith("-") and word != "-":
            if option not in options:
                return f"{' '.join(path)}: no option {option}"
            if not options[option].is_flag and not equals:
                next(rest, None)  # its value; in a sentence it may be left out
        else:
            arguments -= 1
            if arguments < 0:
                return f"{' '.join(path)}: nothing takes {word!r}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_on_it_exists_with_its_options(page: Path) -> None:
    said = [(block.line, command) for block in blocks(page) for command in block.commands()] + [(0, command) for command in spoken(page)]
    wrong = [(line, command, told) for line, command in said for words in calls(command) if (told := trouble(words))]
    assert wrong == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("mt train --config x.yaml --set a=b --resume", None),
        ("mt train --conf x.yaml", "mt train: no option --conf"),
        ("mt trane --config x.yaml", "mt trane: no such command"),
        ("mt config shew x.yaml", "mt config shew: no such command"),
        ("mt runs a b", "mt runs: nothing takes 'b'"),
        ("echo 'mt foo' | mt translate --model runs/a --greedy > out", None),
        ("torchrun --nproc-per-node 2 -m mt train --config x.yaml --resum", "mt train: no option --resum"),
        (".venv/bin/mt eval --hypo x", "mt eval: no option --hypo"),
    ],
)
def test_the_check_sees_what_is_wrong(command: str, told: str | None) -> None:
    assert [told] == [trouble(words) for words in calls(command)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_setting_on_it_exists(page: Path) -> None:
    """Keys in full, such as `train.optimizer.lr`, `data.train.*.weight` or `train.keep=3`; and those of `--set`."""
    text = page.read_text(encoding="utf-8")
    wanted = {*KEY.findall(text), *re.findall(r"--set ([\w.]+)=", text)} - FILES
    assert sorted(key for key in wanted if not is_setting(key)) == []


def test_coming_from_another_toolkit_names_only_what_there_is() -> None:
    """The right column of its tables: settings in full, and commands with their options."""
    page = ROOT / "docs" / "coming-from.md"
    cells = [row.strip("| ").split(" | ")[-1] for row in page.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    spans = [span for cell in cells for span in re.findall(r"`([^`]+)`", cell)]
    dotted = [re.sub(r":.*", "", span) for span in spans if "." in span and not span.startswith(("mt ", "["))]
    assert len(dotted) > 60
    assert [key for key in dotted if not is_setting(key)] == []
    assert len([span for span in spans if span.startswith("mt ")]) > 10  # looked at above, with all commands


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_its_configs_are_yaml_of_known_groups(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "yaml":
            tree = yaml.safe_load(block.text)
            assert set(tree) <= GROUPS | {"langs", "run_dir"}, block.line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_its_python_is_python_whose_imports_are_there(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mt":
                    module = importlib.import_module(node.module or "")
                    assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == [], block.line
