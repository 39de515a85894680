"""The YAML that configs are written in: PyYAML under the rules of YAML 1.2, as most people expect them.

Only true and false are booleans, so that `src: no` is Norwegian; 1e-4 is a number, and so is 1_000; 12:30 and 2016-01-01 are text.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

MAX_DEPTH = 32
"""How deep settings may be nested."""
MAX_NODES = 20_000
"""How many names and values there may be."""

_RULES = {
    "tag:yaml.org,2002:merge": (r"<<", "<"),
    "tag:yaml.org,2002:null": (r"~|null|Null|NULL|", "~nN\0"),
    "tag:yaml.org,2002:bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "tag:yaml.org,2002:int": (r"[-+]?[0-9](?:_?[0-9])*|0x[0-9a-fA-F]+|0o[0-7]+", "-+0123456789"),
    "tag:yaml.org,2002:float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
}
_LONGEST_NUMBER = 100


class Loader(yaml.SafeLoader):
    """Composes nodes under these rules, not deeper than MAX_DEPTH and not more than MAX_NODES."""

    yaml_implicit_resolvers: dict[str, Any] = {}
    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """One node with all that is in it."""
        self.depth += 1
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise yaml.MarkedYAMLError(
                problem=f"more than {MAX_NODES} names and values; is it a config, or data?", problem_mark=self.get_mark()
            )
        if self.depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested more than {MAX_DEPTH} deep", problem_mark=parent.start_mark if parent else None)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class Dumper(yaml.SafeDumper):
    """Writes what `Loader` reads back, with quotes also around what older readers take for a boolean."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Line separators of all kinds are escaped: between single quotes they would come back as plain line ends."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        """Short groups go on one line."""
        node = super().represent_mapping(tag, mapping, flow_style=flow_style)
        node.flow_style = len(node.value) <= 4 and all(isinstance(value, yaml.ScalarNode) for _, value in node.value)
        return node

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        """Lists of single values go on one line."""
        node = super().represent_sequence(tag, sequence, flow_style=flow_style)
        node.flow_style = all(isinstance(value, yaml.ScalarNode) for value in node.value)
        return node


for _tag, (_pattern, _first) in _RULES.items():
    for _class in (Loader, Dumper):
        _class.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})\\Z"), ["" if c == "\0" else c for c in _first])
Dumper.add_representer(str, Dumper.represent_text)
Dumper.add_implicit_resolver("tag:yaml.org,2002:old-bool", re.compile(r"(?:y|n|yes|no|on|off)\Z", re.IGNORECASE), list("yYnNoO"))


def text_of(written: str) -> str | None:
    """The text with pairs of surrogates joined (JSON escapes an emoji as such a pair); None if it can be no file name or UTF-8."""
    try:
        return None if "\0" in written else written.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None


def scalar_of(tag: str, text: str) -> str | int | float | bool | None:
    """The value of a single node; a ValueError where text and tag do not fit, or the tag is none of ours."""
    match tag.removeprefix("tag:yaml.org,2002:"):
        case "null":
            return None
        case "bool" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "int" | "float" if len(text) > _LONGEST_NUMBER:
            return text
        case "int":
            return int(text, 0) if text.startswith(("0x", "0o")) else int(text)
        case "float":
            number = float(re.sub(r"\.(?=[A-Za-z])", "", text))
            return int(number) if abs(number) < 2**53 and number.is_integer() else number
        case "str":
            return text
    raise ValueError(tag)
