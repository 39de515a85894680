"""The names of all settings, and the one that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, get_args, get_origin

from mt.config.schema import Config
from mt.config.stage import Stage, Trail

ITEM = "*"
"""Stands in a setting's name for an index of a list or for a name that the user gives."""

# What other toolkits call it.
_SYNONYMS = {
    "alpha": "length_penalty",
    "batch_size": "batch_tokens",
    "beam_size": "beam",
    "beam_width": "beam",
    "d_ff": "ffn",
    "d_model": "dim",
    "epochs": "max_epochs",
    "hidden_size": "dim",
    "layers": "encoder_layers",
    "lenpen": "length_penalty",
    "learning_rate": "lr",
    "max_steps": "max_updates",
    "model_dir": "run_dir",
    "num_layers": "encoder_layers",
    "output_dir": "run_dir",
    "source": "src",
    "steps": "max_updates",
    "target": "tgt",
    "trg": "tgt",
    "valid": "dev",
}
_CLOSE = 0.7
_NEARBY = 0.15


def settings(stage: type[Stage] = Config, at: Trail = ()) -> Iterator[Trail]:
    """The trail of every setting there can be, groups included."""
    for name, field in stage.model_fields.items():
        yield (*at, name)
        for group, inside in stages(field.annotation):
            yield from settings(group, (*at, name, *inside))


def stages(annotation: Any, inside: Trail = ()) -> Iterator[tuple[type[Stage], Trail]]:
    """The groups that a setting can be, and where they are in it."""
    if isinstance(annotation, type) and issubclass(annotation, Stage):
        yield annotation, inside
    for part in get_args(annotation):
        yield from stages(part, (*inside, ITEM) if get_origin(annotation) in (list, dict) else inside)


def siblings(trail: Trail) -> list[str]:
    """The valid keys of the group that a setting is in, in the order of the schema."""
    group = [setting for setting in settings() if _same_group(setting, trail) and setting[-1] != ITEM]
    named = [setting for setting in group if setting[:-1] == trail[:-1]]  # data.dev.langs is no dev set called langs
    return [str(name) for name in dict.fromkeys(setting[-1] for setting in named or group)]


def nearest(trail: Trail) -> Trail | None:
    """The setting whose name is most like that of an unknown one, in the same group or elsewhere; None if none is close."""
    written = str(trail[-1])
    wanted = [(written, 1.0)] + [(synonym, 0.99) for synonym in [_SYNONYMS.get(written)] if synonym]
    best: tuple[float, Trail] | None = None
    for setting in settings():
        here = _same_group(setting, trail)
        if ITEM in setting and not here:
            continue
        likeness = max(_likeness(word, str(setting[-1])) * worth for word, worth in wanted)
        score = likeness + (_NEARBY if here else 0.0)
        if likeness >= _CLOSE and (best is None or score > best[0]):
            best = score, (*trail[:-1], setting[-1]) if here else setting
    return best[1] if best else None


def named_so(word: str) -> str | None:
    """The setting with exactly this name, or what other toolkits call it, wherever it is; of several that of training, else None."""
    name = _SYNONYMS.get(word, word)
    found = [".".join(map(str, setting)) for setting in settings() if setting[-1] == name and ITEM not in setting]
    found = [setting for setting in found if setting == f"train.{name}"] or found
    return found[0] if len(found) == 1 else None


def most_like(word: str, choices: list[str]) -> str | None:
    """The choice most like a word, None if none is close."""
    likeness, choice = max((_likeness(word, choice), choice) for choice in choices)
    return choice if likeness >= _CLOSE else None


def _same_group(setting: Trail, trail: Trail) -> bool:
    return len(setting) == len(trail) and all(a in (ITEM, b) for a, b in zip(setting[:-1], trail[:-1], strict=True))


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, _plain(one), _plain(other)).ratio()


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")
