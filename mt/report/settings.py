"""Settings side by side: those of a run that are not the defaults, those in which several runs differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mt.config.schema import Config

ELSEWHERE = "run_dir", "data.cache", "data.workers"
"""Where and how a run is made, which makes no other model."""
ASIDE = (*ELSEWHERE, "data.test", "train.device", "train.save_every", "train.keep", "train.report")
"""What tells no two models apart."""


def flat(config: Config) -> dict[str, Any]:
    """All settings by their dotted names, lists and numbers as they are; what is None is left out."""
    return dict(_flat(config.model_dump(mode="json", exclude_none=True), ""))


def _flat(values: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{name}{key}.")
        else:
            yield f"{name}{key}", value


def changed(config: Config) -> list[tuple[str, Any, Any]]:
    """The settings that are not their defaults: name, value and default, None where there is none. Corpora are not among them."""
    usual = flat(Config.model_validate({"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}}))
    return [
        (name, value, usual.get(name))
        for name, value in flat(config).items()
        if value != usual.get(name) and not name.startswith(("langs", "data.train", "data.dev", "data.test", *ELSEWHERE))
    ]


def differing(configs: Sequence[Config]) -> list[str]:
    """The names of settings that are not the same in all."""
    each = [flat(config) for config in configs]
    names = dict.fromkeys(name for one in each for name in one)
    return [name for name in names if not name.startswith(ASIDE) and len({written(one.get(name)) for one in each}) > 1]


def written(value: Any) -> str:
    """A value as YAML would have it in a line."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
