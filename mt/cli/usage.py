"""Wrong usage told with what was probably meant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from mt.errors import MTError

UsageError: Any = typer.BadParameter.__base__  # of click, which some versions of typer hold and others stand on

# What another command, or another program, calls it.
_OPTIONS = {
    "-c": "--config",
    "-m": "--model",
    "-i": "--input",
    "-o": "--output",
    "--src": "--input",
    "--input": "--src",
    "--tgt": "--ref",
    "--ref": "--tgt",
    "--run": "--model",
    "--config": "--model",
}
_OF_TRAIN = {
    "--src": "name the files in the config, under data.train",
    "--tgt": "name the files in the config, under data.train",
    "--model": "--config FILE --resume goes on with a run, --init-from RUN starts from its weights",
}
_COMMANDS = {
    "check": "data check",
    "prepare": "data prepare",
    "preprocess": "data prepare",
    "schema": "config schema",
    "explain": "config explain",
    "test": "eval",
    "generate": "translate",
    "predict": "translate",
    "help": "--help",
    "version": "--version",
}
_EXPORTS = {"ctranslate2": "ct2", "ctranslate": "ct2", "hf": "hf", "huggingface": "hf", "hugging-face": "hf", "transformers": "hf"}
_OF_A_CONFIG = {"mt": "train --config", "mt config": "show"}


class Command(TyperCommand):
    """A command that knows what it is mistaken for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As any command does; a complaint ends with the cure, and one about a value is a line."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            options = {option: parameter for parameter in self.params for option in parameter.opts}
            if cure := _export(ctx, given) or meant(given, set(options)) or _instead(given, options) or _explained(error):
                raise UsageError(f"{error.format_message().rstrip('.')}; {cure}", ctx) from None
            if type(error) is typer.BadParameter and error.param is not None:
                raise MTError(f"{error.param.opts[0]}: {error.message.removeprefix('Value error, ').rstrip('.')}") from None
            raise

    def invoke(self, ctx: Any) -> Any:
        """As any command does; a complaint about a path at which nothing is begins with the option that names it."""
        try:
            return super().invoke(ctx)
        except MTError as error:
            error.args = (_with_option(str(error), self.params, ctx.params),)
            raise


class Group(TyperGroup):
    """A group of commands that knows where those are that it has not."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As any group does; a complaint about an option that one of its commands had once ends with the cure."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            if given and (cure := _export(ctx, given)):
                raise UsageError(f"{error.format_message().rstrip('.')}; {cure}", ctx) from None
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As any group does; a complaint ends with the cure."""
        word = args[0]
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            if "Did you mean" in error.message:
                raise
            cure = f"mt {_COMMANDS[word]}" if word in _COMMANDS else None
            if word.endswith((".yaml", ".yml")) and ctx.command_path in _OF_A_CONFIG:
                cure = f"{ctx.command_path} {_OF_A_CONFIG[ctx.command_path]} {word}"
            if cure := _export(ctx, args) or (cure and f"write {cure}"):
                raise UsageError(f"{error.format_message().rstrip('.')}; {cure}", ctx) from None
            raise


def _with_option(problem: str, parameters: Sequence[Any], given: dict[str, Any]) -> str:
    """A complaint, after the option whose value it begins with, where that is a path and nothing is there."""
    for parameter in parameters:
        values = given.get(parameter.name)
        for value in values if isinstance(values, list | tuple) else [values]:
            missing = isinstance(value, Path) and not os.path.lexists(value)
            if missing and parameter.param_type_name == "option" and problem.startswith(f"{value}: "):
                return f"{parameter.opts[0]} {problem}"
    return problem


def meant(args: Sequence[str], options: set[str]) -> str | None:
    """What to write instead of a config without its option, or of a setting without `--set`, without `=` or with spaces around it."""
    for before, word, after, later in zip(["", *args], args, [*args[1:], ""], [*args[2:], "", ""], strict=False):
        value = later if after == "=" else after.removeprefix("=")
        bare = not before.startswith("-") and not word.startswith("-")
        if before == "--set" and "=" not in word[:-1] and value and not value.startswith("--"):
            return f"write --set {word.removesuffix('=')}={value}"
        if "--config" in options and bare and word.endswith((".yaml", ".yml")):
            return f"write --config {word}"
        if "--set" in options and bare and "." in word.partition("=")[0] and "=" in word[:-1]:
            return f"write --set {word}"
    if {"--src", "--tgt"} <= options and len(args) == 2 and not any(word.startswith("-") for word in args):
        return f"write --src {args[0]} --tgt {args[1]}"
    if "--model" in options and "--model" not in args and args and os.path.isdir(args[0]):
        into = f" --input {args[1]}" if len(args) == 2 and "--input" in options else ""
        return f"write --model {args[0]}{into}"
    return None


def _instead(args: Sequence[str], options: dict[str, Any]) -> str | None:
    """What to write instead of the first option that a command does not have: its own name of that, or a setting."""
    for word, after in zip(args, [*args[1:], ""], strict=False):
        name, _, value = word.partition("=")
        value = value or ("" if after.startswith("-") else after)
        if not name.startswith("-") or name in options or name in ("-h", "--help"):
            continue
        own = _OPTIONS.get(name, "")
        if own in options:
            return f"write {own} {options[own].metavar if own == '--model' else value}".rstrip()
        if name == "--config" and "file" in options:
            return f"write the file alone: {value}"
        if "--resume" in options and name in _OF_TRAIN:
            return _OF_TRAIN[name]
        if "--set" in options and name.startswith("--") and value:
            from mt.config.names import named_so

            if setting := named_so(name.removeprefix("--").replace("-", "_")):
                return f"write --set {setting}={value}"
        return None
    return None


def _export(ctx: Any, args: Sequence[str]) -> str | None:
    """What to write instead of `mt export` without the program that the model is for, or with run and folder as options."""
    command, program = [*str(ctx.command_path).split(), "", ""][1:3]
    given = dict(_option(word, after) for word, after in pairwise([*args, ""]))
    if command != "export" or (program and not {"--model", "--run", "--output", "--format"} & given.keys()):
        return None
    words = [word for word in args if not word.startswith("-") and word not in given.values()]
    named = given.get("--format") or (words.pop(0) if not program and words and words[0] in _EXPORTS else "")
    run = given.get("--model") or given.get("--run") or (words.pop(0) if words else "RUN")
    out = given.get("--output") or (words.pop(0) if words else "OUT")
    return f"write mt export {program or _EXPORTS.get(named, 'ct2')} {run} {out}"


def _option(word: str, after: str) -> tuple[str, str]:
    """Name and value of an option; no name for any other word."""
    name, equals, value = word.partition("=")
    if not word.startswith("-"):
        return "", ""
    return name, value if equals or after.startswith("-") else after


def _explained(error: Any) -> str | None:
    """An option or a word that is missing, in the words of its help."""
    missing = getattr(error, "param", None)
    if missing is None or not error.format_message().startswith(("Missing option", "Missing argument")):
        return None
    named = missing.metavar if missing.param_type_name == "argument" else f"{missing.opts[0]} {missing.metavar}"
    return f"{named}: {missing.help}"
