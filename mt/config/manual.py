"""The manual of all settings, as text to read: name, default, what it does."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from mt.config.names import most_like, stages
from mt.config.schema import Config
from mt.config.stage import Stage, Trail
from mt.errors import ConfigError

WIDTH = 96


def manual(under: str = "") -> Iterator[str]:
    """The settings of a group such as `train.optimizer`, or of that name wherever they are; all without it.

    Raises ConfigError where there are none.
    """
    forms: dict[str, list[FieldInfo]] = {}
    for trail, field in _fields(Config):
        forms.setdefault(".".join(map(str, trail)), []).append(field)
    wanted = [name for name in forms if not under or f"{name}.".startswith(f"{under}.") or name.endswith(f".{under}")]
    if not wanted:
        meant = most_like(under, [*forms, *(name.rpartition(".")[2] for name in forms)])
        raise ConfigError(f"{under}: no such setting" + (f", did you mean `{meant}`?" if meant else "; `mt config explain` prints all"))
    for name in wanted:
        yield from _explained(name, forms[name])


def _fields(stage: type[Stage], at: Trail = ()) -> Iterator[tuple[Trail, FieldInfo]]:
    """Each setting of a group and of those within it; what a corpus can be only where it is met first, in data.train."""
    for name, field in stage.model_fields.items():
        yield (*at, name), field
        if (*at, name) not in (("data", "dev"), ("data", "test")):
            for group, inside in stages(field.annotation):
                yield from _fields(group, (*at, name, *inside))


def _explained(name: str, fields: list[FieldInfo]) -> Iterator[str]:
    """A setting's lines: the same one of several forms of a group has the choices of all."""
    first = fields[0]
    yield f"{name}:{_default(first)}"
    for line in textwrap.wrap(" ".join((first.description or "").split()), WIDTH):
        yield f"    {line}"
    choices = list(dict.fromkeys(word for field in fields for word in _choices(field.annotation)))
    if len(choices) > 1:
        yield f"    One of: {', '.join(choices)}"


def _default(field: FieldInfo) -> str:
    """As YAML, where there is a plain one; whether there has to be a value."""
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return " (needed)"
    if value is None:
        return " (left out)"
    if isinstance(value, Stage):
        return ""
    return " " + yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()


def _choices(annotation: Any) -> list[str]:
    """The words that a setting can be."""
    if get_origin(annotation) is Literal:
        return [str(word).lower() if isinstance(word, bool) else str(word) for word in get_args(annotation)]
    return [word for part in get_args(annotation) for word in _choices(part)]
