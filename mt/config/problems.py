"""What pydantic found wrong, as (trail, plain words with the cure)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mt.config.corpora import KINDS
from mt.config.names import ITEM, most_like, nearest, settings, siblings
from mt.config.stage import Trail, kind_tag

_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "path_type": "a path",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a group of settings (name: value)",
    "model_type": "a group of settings (name: value)",
    "union_tag_not_found": "a group of settings (name: value)",
}
_OLD_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_CORPUS = "{src: train.en, tgt: train.de}"
_CORPUS_KEYS = {"src", "tsv", "csv", "jsonl", "tmx", "xliff", "po", "hub"}
_MISSING: dict[Trail, str] = {
    ("data",): f"is missing; give at least data.train, a list such as [{_CORPUS}]",
    ("data", "train"): f"is missing; give a list of corpora such as [{_CORPUS}]",
}


class Fault(NamedTuple):
    """One thing that is wrong."""

    trails: tuple[Trail, ...]
    """The settings involved; the first is the one to point at."""
    what: str
    """Plain words, with the cure."""
    unknown: bool = False
    """There is no such key."""
    meant: Trail | None = None
    """The setting that an unknown key probably stands for."""


def faults(err: ValidationError) -> list[Fault]:
    """Everything that a failed validation found."""
    return [fault for one in err.errors(include_url=False) for fault in _faults(one)]


def _faults(err: ErrorDetails) -> Iterator[Fault]:
    trail: Trail = tuple(key for key in err["loc"] if not str(key).startswith(kind_tag("")))
    value, ctx = err["input"], err.get("ctx", {})
    match err["type"]:
        case "contradiction":
            for found in ctx["found"]:
                yield Fault(tuple(trail + inner for inner in found.trails), found.what)
        case "extra_forbidden":
            yield _unknown(trail, err["loc"], value)
        case "model_type" if trail == ("train",) and isinstance(value, list):
            what = "is how to train, a group of settings, not a list; did you mean `data.train`?"
            yield Fault((trail,), what, unknown=True, meant=("data", "train"))
        case "int_type" if isinstance(value, str) and trail[-2:-1] == ("columns",) and kind_tag("tsv") in err["loc"]:
            what = "columns of a TSV are numbers from 0; to choose them by the names in its first line, read it with csv and separator"
            yield Fault((trail[:-1],), f'{what}: "\\t"')
        case "union_tag_invalid":
            choices = re.findall(r"\\x00(\w+)", ctx["expected_tags"])
            yield Fault(((*trail, "kind"),), _one_of(choices, ctx["tag"].removeprefix(kind_tag(""))))
        case _ if trail[:2] == ("data", "test") and len(trail) == 3 and trail[2] in siblings((*trail, ITEM)) and isinstance(value, str):
            yield Fault((trail[:2],), "test sets have names; write test: {NAME: {src: test.en, tgt: test.de}}")
        case kind:
            yield Fault((trail,), _wrong(kind, trail, value, ctx) or err["msg"].lower())


def _unknown(trail: Trail, loc: tuple[int | str, ...], value: Any) -> Fault:
    names = siblings(trail)
    if trail[-1] in ("file", "path") and "tsv" in names:
        if not (kind := _kind_of_file(value)):
            return Fault((trail,), f"unknown key; name what it is: {', '.join(KINDS)}, or src and tgt for two text files", unknown=True)
        return _misspelt(trail, (*trail[:-1], kind))
    if trail[-1] in names:
        return Fault((trail,), f"does not go with {str(loc[-2]).removeprefix(kind_tag(''))}; remove one of the two", unknown=True)
    if (top := trail[-1:]) in settings():
        return Fault((trail,), f"stands at the top level, outside {trail[0]}", unknown=True, meant=top)
    if meant := nearest(trail):
        return _misspelt(trail, meant)
    return Fault((trail,), f"unknown key; possible here: {', '.join(names)}", unknown=True)


def _misspelt(trail: Trail, meant: Trail) -> Fault:
    return Fault((trail,), f"unknown key, did you mean `{dotted(meant)}`?", unknown=True, meant=meant)


def _kind_of_file(value: Any) -> str | None:
    """Which kind of corpus a file is, by its suffix."""
    suffixes = PurePath(value).suffixes if isinstance(value, str) else ()
    return next((suffix[1:] for suffix in suffixes if suffix[1:] in KINDS), None)


def _wrong(kind: str, trail: Trail, value: Any, ctx: dict[str, Any]) -> str | None:
    if kind == "missing":
        if isinstance(trail[-1], int):
            return f"is missing; the list needs {trail[-1] + 1} items or more"
        return _MISSING.get(trail, "is missing; add it")
    if value is None:
        return _MISSING.get(trail, "has no value; give one or leave the key out")
    if trail[:2] == ("data", "dev") and kind == "literal_error":
        return f"should be a dev set such as {{src: dev.en, tgt: dev.de}}, or none, not {shown(value)}"
    if kind == "literal_error":
        choices = re.split(r", | or ", ctx["expected"])
        return _one_of([one.lower() if one in ("True", "False") else one.strip("'") for one in choices], value)
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"should be {words} {shown(ctx[key]) if isinstance(ctx[key], int) else f'{ctx[key]:g}'}, is {shown(value)}"
    if kind in ("too_short", "too_long", "string_too_short"):
        return _length(ctx, value)
    if kind in _KINDS:
        hint = _langs(value) if trail[-1] == "langs" else _hint(kind, value)
        return f"should be {_KINDS[kind]}, not {shown(value)}{hint}"
    return None


def _length(ctx: dict[str, Any], value: Any) -> str:
    if value == "":
        return "is empty; give a value or leave the key out"
    if "min_length" in ctx:
        return f"should have {ctx['min_length']} items or more, has {len(value)}"
    return f"should have {ctx['max_length']} items, has {ctx['actual_length']}"


def _langs(value: Any) -> str:
    """How languages are written; en and de where nobody can tell which are meant."""
    codes = value if isinstance(value, list) else re.split(r"[-:,>\s]+", str(value))
    src, tgt = codes if len(codes) == 2 and all(isinstance(code, str) and code for code in codes) else ("en", "de")
    return f"; write {{src: {src}, tgt: {tgt}}}"


def _hint(kind: str, value: Any) -> str:
    if kind == "bool_type":
        return _old_boolean(value)
    if kind in ("string_type", "path_type") and not isinstance(value, list | dict):
        return "; put it in quotes"
    if isinstance(value, str) and re.match(r"[a-z_]+:\S", value):
        return "; put a space after the colon"
    if kind == "list_type" and isinstance(value, dict):
        return f"; write [{_CORPUS}], or begin each item with `- `" if _CORPUS_KEYS & value.keys() else "; begin each item with `- `"
    if kind in ("list_type", "tuple_type"):
        return "; write [a, b]"
    return ""


def _old_boolean(value: Any) -> str:
    meant = _OLD_BOOLEANS.get(value.lower()) if isinstance(value, str) else None
    return f" (which is plain text here); write {meant}" if meant else ""


def _one_of(choices: list[str], value: Any) -> str:
    hint = _old_boolean(value) if "true" in choices else ""
    if not hint and isinstance(value, str) and (close := most_like(value, choices)):
        hint = f"; did you mean {close}?"
    return f"should be one of {', '.join(choices)}, not {shown(value)}{hint}"


def shown(value: Any) -> str:
    """A value in a message: short, and as YAML has it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a group of settings"
        case list():
            return "a list"
        case str():
            return repr(value if len(value) <= 40 else value[:39] + "…")
        case int() if abs(value) >= 10**20:
            return f"a number of {len(str(abs(value)))} digits"
        case _:
            return f"{value}"


def dotted(trail: Trail) -> str:
    """A trail as users write it: data.train.0.src."""
    return ".".join(map(str, trail))
