"""YAML file and `--set a.b=c` in, checked `Config` out; or every problem at once, as `file:line: key: what, cure`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from mt.config.check import doubts
from mt.config.dialect import MAX_DEPTH, Dumper, text_of
from mt.config.directions import refusals, with_directions
from mt.config.languages import infer
from mt.config.problems import Fault, dotted, faults, shown
from mt.config.schema import Config, HubDataset
from mt.config.stage import Stage, Trail
from mt.config.tree import MAX_BYTES, Place, Tree, one_line, parse
from mt.errors import ConfigError
from mt.files import meant


class Loaded(NamedTuple):
    """A checked config and what is doubtful about it."""

    config: Config
    """Effective settings: paths are absolute, languages inferred, the run directory named."""
    warnings: tuple[str, ...]
    """One line each, in the form of the errors."""


def load(path: Path, overrides: Sequence[str] = ()) -> Loaded:
    """Read a config file, apply overrides (`a.b=c`, c being YAML, lists by index) and check everything.

    Paths in the file are relative to its folder; `run_dir` and paths in overrides to the current directory.
    Raises ConfigError with all problems.
    """
    tree = _read(path)
    if tree.value is None and not overrides:
        raise ConfigError(f"{path}:1: the file is empty; it needs at least data.train")
    if not isinstance(tree.value, dict | None):
        raise ConfigError(f"{path}:1: should be a group of settings (name: value), not {shown(tree.value)}; is it a config?")
    tree.value = tree.value or {}
    refused = [problem for override in overrides if (problem := _override(tree, override))]
    config, problems = _validate(tree)
    problems += tree.problems
    if problems or refused or config is None:
        problems.sort(key=lambda problem: (problem[0].line is None, problem[0].line))
        raise ConfigError(*dict.fromkeys([f"{place}: {what}" for place, what in problems] + refused))
    config = _complete(config, path, tree)
    if found := [f"{tree.place(trail)}: {what}" for trail, what in refusals(config)]:
        raise ConfigError(*found)
    return Loaded(config, tuple(f"{tree.place(trail)}: {what}" for trail, what in doubts(config)))


def dump(config: Config) -> str:
    """The config as YAML from which `load` makes an equal one; what is None is left out, being the default wherever it is allowed."""
    values = config.model_dump(mode="json", exclude_none=True)
    return yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=130)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(path: Path) -> Tree:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        found = meant(path)
        cure = f"did you mean {found}?" if found else "check the path of the config"
        raise ConfigError(f"{path}: there is no such file; {cure}") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a directory; name the config file in it") from None
    except OSError as err:
        raise ConfigError(f"{path}: cannot be read ({err.strerror}); check its permissions") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes; is it a config, or data?")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as err:
        line = raw.count(b"\n", 0, err.start) + 1
        raise ConfigError(f"{path}:{line}: byte 0x{raw[err.start]:02X} is not UTF-8; save the file as UTF-8") from None
    return parse(text, lambda line, key: Place(str(path), line, key))


def _override(tree: Tree, text: str) -> str | None:
    """Apply one `a.b=c`; the problem, if there is one."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if name.count(".") >= MAX_DEPTH:
        return f"--set {one_line(name[:40])}…: nested more than {MAX_DEPTH} deep; there is no such setting"
    if not equals or not all(name.split(".")) or text_of(name) is None:
        return f"--set {one_line(text)}: write a key, =, and a value, such as --set train.seed=2"
    trail: Trail = ()
    here: Any = tree.value
    for part in name.split("."):
        match here:
            case list():
                if part not in map(str, range(len(here) + 1)):
                    what = f"{dotted(trail)} is a list of {len(here)}; give an index from 0, or {len(here)} to add one, not {shown(part)}"
                    return f"--set {one_line(name)}: {what}"
                trail = (*trail, int(part))
                here = here[int(part)] if int(part) < len(here) else None
            case dict() | None:
                trail = (*trail, part)
                here = here.get(part) if here else None
            case _:
                return f"--set {one_line(name)}: {dotted(trail)} is {shown(here)}, which has nothing inside; set {dotted(trail)} as a whole"
    try:
        branch = parse(value, lambda _, key: Place("--set", None, f"{name}.{key}".rstrip(".")))
    except ConfigError as err:
        return str(err)
    tree.problems += branch.problems
    tree.put(trail, branch)
    return None


# ── checking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _validate(tree: Tree) -> tuple[Config | None, list[tuple[Place, str]]]:
    """Check against the schema, mend what is wrong and look again, so that one mistake does not hide the next.

    The config is None, or good for nothing, when there are problems. Mending changes the tree.
    """
    problems: list[tuple[Place, str]] = []
    mended: set[Trail] = set()
    seen: set[Fault] = set()
    while True:
        try:
            return Config.model_validate_json(json.dumps(tree.value), strict=True), problems
        except ValidationError as err:
            found = [fault for fault in faults(err) if fault not in seen]
        # Unknown keys first: with the right name, what is in them can be looked at, and nothing is missing on their account.
        found = [fault for fault in found if fault.unknown] or found
        found = [fault for fault in found if not any(_touches(trail, old) for trail in fault.trails for old in mended)]
        if not found:
            return None, problems
        seen |= set(found)
        problems += [(tree.place(fault.trails[0]), fault.what) for fault in found]
        for fault in found:
            mended |= _mend(tree, fault)


def _mend(tree: Tree, fault: Fault) -> set[Trail]:
    """Move a misspelt setting to where it belongs, or leave a wrong one out; the trails that say nothing from then on."""
    trail = fault.trails[0]
    if fault.meant and tree.has(trail) and tree.has_room(fault.meant):
        tree.move(trail, fault.meant)
        return set()
    while trail and not isinstance(trail[-1], str):  # an item of a list cannot be left out: the others would change places
        trail = trail[:-1]
    if len(fault.trails) == 1 and tree.has(trail):
        tree.drop(trail)
        return set() if fault.unknown else {trail}
    return set()


def _touches(one: Trail, other: Trail) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


# ── completing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _complete(config: Config, path: Path, tree: Tree) -> Config:
    here, folder = Path.cwd(), path.absolute().parent
    run_dir = _absolute(config.run_dir or Path("runs", path.stem), here)

    def folder_of(trail: Trail) -> Path:
        return here if tree.place(trail).line is None else folder

    data, train = (_anchor(part, (name,), folder_of) for name, part in (("data", config.data), ("train", config.train)))
    config = config.model_copy(update={"train": train})
    if config.langs is None and (several := with_directions(data)):
        return config.model_copy(update={"data": several, "run_dir": run_dir})
    return config.model_copy(update={"data": data, "run_dir": run_dir, "langs": config.langs or infer(data)})


def _anchor(value: Any, trail: Trail, folder_of: Callable[[Trail], Path]) -> Any:
    """The same settings with every path absolute."""
    match value:
        case Path():
            return _absolute(value, folder_of(trail))
        case Stage():
            changed = {name: _anchor(getattr(value, name), (*trail, name), folder_of) for name in type(value).model_fields}
            if isinstance(value, HubDataset):
                changed["hub"] = _hub(value.hub, folder_of((*trail, "hub")))
            return value.model_copy(update=changed)
        case list():
            return [_anchor(item, (*trail, i), folder_of) for i, item in enumerate(value)]
        case dict():
            return {name: _anchor(item, (*trail, name), folder_of) for name, item in value.items()}
    return value


def _absolute(path: Path, folder: Path) -> Path:
    joined = folder / os.path.expanduser(path)
    if text_of(str(joined)) is None:  # it could not be written into the config of the run
        raise ConfigError(f"{one_line(str(joined))}: the name of this path is not UTF-8; rename the folder")
    # `..` means what the file system takes it for; other symbolic links stay, as names tell languages.
    return Path(os.path.realpath(joined.parent), joined.name) if ".." in joined.parts else joined


def _hub(name: str, folder: Path) -> str:
    """A data set's name, or the folder it is in."""
    is_path = name.startswith(("./", "../", "/", "~")) or os.path.isdir(folder / name)
    return str(_absolute(Path(name), folder)) if is_path else name
