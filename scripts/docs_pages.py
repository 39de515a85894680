"""Pages of the documentation that are made of the program: its commands, its settings, its changelog. A hook of mkdocs (mkdocs.yml)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from mt.cli.app import app
from mt.config.manual import manual

ROOT = Path(__file__).parents[1]
NOTE = "*This page is made from the program when the documentation is built.*"


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are in no file. Called by mkdocs before it reads any page."""
    from mkdocs.structure.files import File

    for name, text in made().items():
        files.append(File.generated(config, name, content=text))
    return files


def made() -> dict[str, str]:
    """Each page by its name in docs/."""
    return {"commands.md": commands_page(), "settings.md": settings_page(), "changelog.md": changelog_page()}


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────────


def commands(command: Any, words: tuple[str, ...] = ("mt",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command by its words, groups before what is in them: ("mt",), ("mt", "train"), ("mt", "config"), ("mt", "config", "show") …"""
    yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*words, name))


def commands_page() -> str:
    """What `--help` says of each command, as a page."""
    parts = [
        "# Commands",
        NOTE,
        "`mt COMMAND --help` says the same on a terminal. Options marked as repeatable are given once for each value.",
    ]
    for words, command in commands(typer.main.get_command(app)):
        parts += [f"## {' '.join(words)}", *_told(command, words)]
    return "\n\n".join(parts) + "\n"


def _told(command: Any, words: tuple[str, ...]) -> Iterator[str]:
    context = command.make_context(words[-1], [], resilient_parsing=True)
    prose, _, examples = (command.help or "").replace("\b", "").partition("Examples:")
    yield "\n\n".join(_plain(" ".join(part.split())) for part in prose.strip().split("\n\n"))
    pieces = command.collect_usage_pieces(context)
    lines = [line.strip() for line in examples.strip().splitlines() if line.strip()]
    yield "\n".join(["```text", " ".join([*words, *pieces]), *(["", *lines] if lines else []), "```"])
    rows = [record for parameter in command.get_params(context) if (record := _record(parameter, context))]
    if rows:
        yield "\n".join(["| option | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(_plain(text))} |" for name, text in rows)])
    if inside := getattr(command, "commands", {}):
        table = (
            f"| [`{' '.join((*words, name))}`](#{'-'.join((*words, name))}) | {child.get_short_help_str(200)} |"
            for name, child in inside.items()
        )
        yield "\n".join(["| command | |", "|---|---|", *table])


def _record(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Name and help of an option or an argument."""
    if parameter.param_type_name == "argument":
        return (parameter.metavar or parameter.name.upper(), parameter.help or "")
    return parameter.get_help_record(context)


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def settings_page() -> str:
    """What `mt config explain` says, a heading for each group of settings."""
    parts = [
        "# Settings",
        NOTE,
        "All have defaults but the corpora. A `*` stands for a number or a name: `data.train.*.weight` is that of each training corpus. "
        "`mt config explain NAME` says the same on a terminal, `mt config schema` as a JSON schema for your editor.",
    ]
    for name, default, text in settings():
        value = f"`{default}`" if default and not default.startswith("(") else default
        if "." in name:
            parts.append(f"`{name}`{{ #{name} }}{' · ' if value else ''}{value}\n:   {_plain(text)}")
        else:
            parts += [f"## {name} {{ #{name} }}", _plain(text) + (f" {value}" if value.startswith("`") else "")]
    return "\n\n".join(parts) + "\n"


def settings() -> Iterator[tuple[str, str, str]]:
    """Name, default and text of every setting."""
    name, default, text = "", "", []
    for line in manual():
        if line.startswith(" "):
            text.append(line.strip())
            continue
        if name:
            yield name, default, " ".join(text)
        name, _, default = line.partition(":")
        default, text = default.strip(), []
    yield name, default, " ".join(text)


# ── the changelog ───────────────────────────────────────────────────────────────────────────────────────────────────


def changelog_page() -> str:
    """CHANGELOG.md, whose links are seen from the folder above."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")


def _plain(text: str) -> str:
    """Text in which nothing is markup but what stands in backquotes, addresses, and names of these pages."""
    parts = re.split(r"(`[^`]+`|https?://[^\s,;)]+[^\s,;).]|docs/[a-z-]+\.md)", text)
    return "".join(
        _linked(part) if at % 2 else html.escape(re.sub(r"([\\*_\[\]#])", r"\\\1", part), quote=False) for at, part in enumerate(parts)
    )


def _linked(part: str) -> str:
    if part.startswith("docs/"):
        return f"[{part}]({part.removeprefix('docs/')})"
    return part if part.startswith("`") else f"<{part}>"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
