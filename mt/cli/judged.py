"""What is judged: a run that translates, or translations that exist already; and whether it suits the files of a test set."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mt.cli.eval_sets import EvalSet, Lines
from mt.cli.models import load_models
from mt.cli.text_output import lines_bar


class System(NamedTuple):
    """What is judged: `hypotheses` makes translations of given lines, from `sources` to `lang` where known; `about` says what it is."""

    hypotheses: Callable[[list[str]], list[str]]
    sources: tuple[str, ...]
    lang: str | None
    about: str | dict[str, Any]


def strangers(one: EvalSet, system: System) -> list[str]:
    """A warning where files are, by their names, in other languages than those that the run translates."""
    from mt.config.languages import differs, language

    sides = ((one.src, system.sources), (one.refs[0], (system.lang,) if system.lang else ()))
    named = [(path, code, langs) for path, langs in sides if path and (code := language(path.name)) and differs(code, langs)]
    wrong = [f"{path} is in {code!r}, not {' or '.join(map(repr, langs))}" for path, code, langs in named]
    return [f"by name {', and '.join(wrong)}: are these files for this run?"] if wrong else []


def mistakes(one: EvalSet, hyp: Path | None, lines: Lines, hypotheses: list[str]) -> list[str]:
    """Warnings about files that are taken for each other: translations that are the source, or a reference, or in its language not."""
    from mt.config.languages import language, same_language
    from mt.evaluate.doubts import about_sources

    found = []
    ours, theirs = (language(path.name) if path else None for path in (hyp, one.refs[0]))
    if ours and theirs and not same_language(ours, theirs):
        found.append(f"by their names {hyp} is in {ours}, {one.refs[0]} in {theirs}: are these the translations, not the source?")
    if any(ref == hypotheses for ref in lines.refs) and len(hypotheses) > 1:
        found.append("each translation is the reference itself: was the same file given twice?")
    if lines.sources:
        found += about_sources(hypotheses, lines.refs, lines.sources)
    return found


def load_system(models: list[Path], settings: dict[str, Any]) -> System:
    """A run or several, loaded with the settings that the JSON repeats; None there is the default."""
    from mt.config.directions import sources

    loading = {name: settings[name] for name in ("checkpoint", "precision", "weights")}
    translator = load_models(models, how=settings["ensemble"], shares=settings["ensemble_weights"], **loading)
    asked = {name: settings[name] for name in ("to", "beam")}
    lang = translator.target(settings["to"]).lang
    mixed = ("ensemble", "ensemble_weights")
    alone = {"model": str(models[0]), **{name: value for name, value in settings.items() if name not in mixed}}
    about = alone if len(models) == 1 else {**alone, "models": [str(one) for one in models], **{name: settings[name] for name in mixed}}

    def hypotheses(lines: list[str]) -> list[str]:
        with lines_bar(len(lines), shown=sys.stderr.isatty()) as bar:
            return [one.text for one in translator.stream(lines, **asked, done=bar.update)]

    return System(hypotheses, sources(translator.config, to=lang), lang, about)


def from_file(hyp: Path | None) -> System:
    """Translations that exist already."""
    return System(lambda lines: lines, (), None, str(hyp))
