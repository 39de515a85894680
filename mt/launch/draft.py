"""A config file with a comment on each line, as `mt init` writes it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from mt.config.dialect import Dumper
from mt.config.schema import Corpus, Langs
from mt.launch.propose import Proposal, Setting

COLUMN = 44
"""Where comments begin, unless a setting is longer."""


def draft(
    proposal: Proposal, corpus: Corpus, dev: Corpus | None, langs: Langs | None, *, folder: Path | None, name: str, about: str, where: str
) -> str:
    """The text of a config that lies in a folder (None: anywhere); `about` the corpus and `where` it is trained are told at its top."""
    return "\n".join([*head(proposal, about, where, name=name), *data(corpus, dev, langs, folder), *rest(proposal)]) + "\n"


def head(proposal: Proposal, about: str, where: str, *, name: str) -> Iterator[str]:
    """What to do with it, and what it was made from."""
    yield f"# mt train --config {name}"
    yield f"# {about}."
    yield f"# Preset {proposal.preset.name} of mt init (docs/init.md), {where}. Every line may be changed: mt config explain."
    yield ""


def data(corpus: Corpus, dev: Corpus | None, langs: Langs | None, folder: Path | None) -> Iterator[str]:
    """The corpora."""
    if langs:
        yield line("", Setting("langs", flow(langs.model_dump()), "choose how scores cut text into words"))
    else:
        yield "# langs: {src: …, tgt: …}   not told by the names of the files; scores cut text into words as for European languages"
    yield "data:"
    yield f"  train: [{flow(settings_of(corpus, folder))}]"
    if dev:
        yield f"  dev: {flow(settings_of(dev, folder))}"
        yield "  # test: {news: {src: news.en, tgt: news.de}}   scored once at the end"
        return
    yield "  # No dev and test: both are held out of the training pairs, without leaks, and kept in the run's data/split (docs/split.md)."
    yield "  # Your own are better if they are what you want to translate: dev: {src: dev.en, tgt: dev.de}, test: {news: {src: …, tgt: …}}"


def rest(proposal: Proposal) -> Iterator[str]:
    """All other sections."""
    for section, settings in proposal.sections.items():
        yield ""
        yield f"{section}:"
        yield from (line("  ", setting) for setting in settings)


def line(indent: str, setting: Setting) -> str:
    """A setting with its reason."""
    text = f"{indent}{setting.key}: {setting.value}"
    return f"{text:{COLUMN}}# {setting.why}" if len(text) < COLUMN else f"{text}  # {setting.why}"


def settings_of(corpus: Corpus, folder: Path | None) -> dict[str, Any]:
    """A corpus as a config in a folder has it, where paths are relative to that; None: as one that may lie anywhere."""

    def seen_from(path: Path) -> str:
        return os.path.abspath(path) if folder is None else str(path) if path.is_absolute() else os.path.relpath(path, folder)

    return {
        name: seen_from(value) if isinstance(value, Path) else value.model_dump() if isinstance(value, Langs) else value
        for name in type(corpus).model_fields
        if (value := getattr(corpus, name)) != type(corpus).model_fields[name].default
    }


def flow(value: Mapping[str, Any]) -> str:
    """YAML on one line."""
    return yaml.dump(value, Dumper=Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6).strip()
