"""Settings as plain values together with where each was written.

A key given twice, an object of a programming language, or aliases that unfold without end are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from mt.config.dialect import MAX_DEPTH, MAX_NODES, Loader, scalar_of, text_of
from mt.config.stage import Trail
from mt.errors import ConfigError

MAX_BYTES = 1 << 20
"""Largest config file."""


def one_line(text: str) -> str:
    """Text for a message: what would break the line or the terminal is escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class Place(NamedTuple):
    """Where a setting was written, and how."""

    source: str
    """The file, or --set."""
    line: int | None
    """Line in the file, from 1."""
    key: str
    """The dotted key as written."""

    def __str__(self) -> str:
        """As messages begin: `x.yaml:3: train.seed` or `--set train.seed`."""
        key = one_line(self.key)
        if self.line is None:
            return f"{self.source} {key}"
        return f"{self.source}:{self.line}: {key}" if key else f"{self.source}:{self.line}"


@dataclass
class Tree:
    """Plain values, the place of each, and what is wrong with the writing of it."""

    value: Any
    places: dict[Trail, Place]
    problems: list[tuple[Place, str]]

    def place(self, trail: Trail) -> Place:
        """Where that setting is, or (where it is not written) where it would belong."""
        for n in range(len(trail), -1, -1):
            if found := self.places.get(trail[:n]):
                missing = ".".join(map(str, trail[n:]))
                return found if not missing else found._replace(key=f"{found.key}.{missing}".lstrip("."))
        raise AssertionError("a tree has a place for its root")

    def parent(self, trail: Trail) -> Any:
        """What holds that setting: a dict or a list."""
        here = self.value
        for key in trail[:-1]:
            here = here[key]
        return here

    def has(self, trail: Trail) -> bool:
        """Whether there is such a setting."""
        here: Any = self.value
        for key in trail:
            inside = key in here if isinstance(here, dict) else isinstance(here, list) and key in range(len(here))
            if not inside:
                return False
            here = here[key]
        return True

    def has_room(self, trail: Trail) -> bool:
        """Whether a setting can be put there without replacing another one."""
        missing = next((n for n in range(1, len(trail) + 1) if not self.has(trail[:n])), None)
        return missing is not None and isinstance(self.parent(trail[:missing]), dict | None)

    def drop(self, trail: Trail) -> None:
        """Forget a setting (never an item of a list: that would move the others)."""
        del self.parent(trail)[trail[-1]]

    def put(self, trail: Trail, branch: Tree) -> None:
        """Add a setting, or replace it, with its places; groups on the way are made where they are missing."""
        here: Any = self.value
        for n, key in enumerate(trail, start=1):
            if isinstance(here, list) and key == len(here):
                here.append(None)
            if n == len(trail):
                here[key] = branch.value
            elif (here.get(key) if isinstance(here, dict) else here[key]) is None:
                here[key] = {}
                self.places[trail[:n]] = branch.places[()]._replace(key=".".join(map(str, trail[:n])))
            here = here[key]
        self.places = {at: place for at, place in self.places.items() if at[: len(trail)] != trail}
        self.places |= {trail + at: place for at, place in branch.places.items()}

    def move(self, old: Trail, new: Trail) -> None:
        """Take a setting elsewhere; its places go on naming what was written."""
        branch = Tree(self.parent(old)[old[-1]], {at[len(old) :]: p for at, p in self.places.items() if at[: len(old)] == old}, [])
        self.drop(old)
        self.put(new, branch)


def parse(text: str, at: Callable[[int, str], Place]) -> Tree:
    """Read one YAML value; `at` makes the place of a line and a dotted key.

    Raises ConfigError for text that is no YAML; what can be passed over, such as a key given twice, is left in `problems`.
    """
    try:
        loader = Loader(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as err:
        line = text.count("\n", 0, err.position) + 1
        if 0xDC80 <= int(err.character) <= 0xDCFF:  # how Python passes on what is not UTF-8
            byte = f"byte 0x{int(err.character) - 0xDC00:02X} is not UTF-8"
            raise ConfigError(f"{at(line, '')}: {byte}; write it as UTF-8, or rename the file it names") from None
        raise ConfigError(f"{at(line, '')}: the character U+{int(err.character):04X} is not allowed in YAML; remove it") from None
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        raise ConfigError(f"{at(mark.line + 1 if mark else 1, '')}: {_plain(err)}") from None
    reading = _Reading(at)
    value = None if node is None else reading.value(node, ())
    if node is None:
        reading.places[()] = at(1, "")
    return Tree(value, reading.places, reading.problems)


def _plain(err: yaml.MarkedYAMLError) -> str:
    problem = err.problem or "not YAML"
    if "'\\t'" in problem:
        return "a tab; YAML is indented with spaces only"
    if "mapping values are not allowed" in problem:
        return "a second `: ` where a value should end; check the indentation, or put the value in quotes"
    if "cannot start any token" in problem or "alias" in problem or "expected alphabetic or numeric" in problem:
        return f"not valid YAML: {problem}; put the value in quotes"
    if "could not find expected ':'" in problem:
        return "not valid YAML: a line without a setting; is there a space after each colon?"
    return f"not valid YAML: {problem}" + (f" ({err.context})" if err.context else "")


class _Reading:
    """One walk over a node graph; aliases are followed, so the walk is bounded."""

    def __init__(self, at: Callable[[int, str], Place]) -> None:
        self.at = at
        self.places: dict[Trail, Place] = {}
        self.problems: list[tuple[Place, str]] = []
        self.nodes = 0
        self.depth = 0

    def value(self, node: yaml.Node, trail: Trail) -> Any:
        place = self.at(node.start_mark.line + 1, ".".join(map(str, trail)))
        self.nodes += 1
        self.depth += 1
        if self.nodes > MAX_NODES or self.depth > MAX_DEPTH:
            where = self.at(place.line or 1, "")
            raise ConfigError(f"{where}: aliases unfold to more than {MAX_NODES} settings or {MAX_DEPTH} levels; write it out")
        value: Any
        match node:
            case yaml.MappingNode():
                value = self.mapping(node, trail)
            case yaml.SequenceNode():
                value = [self.value(item, (*trail, i)) for i, item in enumerate(node.value)]
            case yaml.ScalarNode():
                value = self.scalar(node, place)
            case _:
                raise AssertionError("YAML has three kinds of nodes")
        if isinstance(node, yaml.CollectionNode) and node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.problems.append((place, f"the tag {_short(node.tag)} is not allowed; remove it"))
        self.places[trail] = place
        self.depth -= 1
        return value

    def mapping(self, node: yaml.MappingNode, trail: Trail) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                for merged in reversed(value.value if isinstance(value, yaml.SequenceNode) else [value]):
                    result |= self.merged(merged, trail)
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            line = key.start_mark.line + 1
            name = text_of(key.value) if isinstance(key, yaml.ScalarNode) else None
            if name is None:
                self.problems.append((self.at(line, ".".join(map(str, trail))), "a key has to be plain text"))
                continue
            setting, colon, rest = name.partition(":")
            if colon and rest and isinstance(value, yaml.ScalarNode) and value.value == "" and value.style is None:
                self.problems.append(
                    (self.at(line, ".".join(map(str, (*trail, setting)))), f"put a space after the colon: `{setting}: {rest}`")
                )
                name, value = setting, yaml.ScalarNode("tag:yaml.org,2002:str", rest, key.start_mark, key.end_mark)
            here = (*trail, name)
            result[name] = self.value(value, here)
            self.places[here] = self.places[here]._replace(line=self.at(line, "").line)
            if name in first:
                lines = f", on lines {first[name]} and {line}" if first[name] != line else ""
                self.problems.append((self.places[here], f"given twice{lines}; keep one of them"))
            first.setdefault(name, line)
        return result

    def merged(self, node: yaml.Node, trail: Trail) -> dict[str, Any]:
        value = self.value(node, trail)
        if isinstance(value, dict):
            return value
        self.problems.append((self.places[trail], "`<<` takes the alias of a group of settings"))
        return {}

    def scalar(self, node: yaml.ScalarNode, place: Place) -> str | int | float | bool | None:
        text = text_of(node.value)
        if text is None:
            self.problems.append((place, "holds a NUL or half a surrogate pair; remove it"))
            return ""
        try:
            return scalar_of(node.tag, text)
        except ValueError:
            self.problems.append((place, f"the tag {_short(node.tag)} is not allowed here; remove it"))
            return ""


def _short(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")
