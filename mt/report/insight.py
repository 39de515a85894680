"""What only the model can tell for a run's page: where it looks while it translates, and how it does on short and on long sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mt.config.directions import langs_of, tag_of, target_of
from mt.config.schema import Config
from mt.errors import MTError, RunError
from mt.evaluate.by_length import by_length
from mt.focus import Attention, attention_of
from mt.formats.readers import read_held_out
from mt.report.history import History
from mt.rundir import RunDir
from mt.translator import Translator

SENTENCES = 3
LONGEST = 40  # pieces of a source whose attention is still to be read
LINES = 500  # of a dev set that are translated to tell scores by length


@dataclass
class Insight:
    """What was found, and why the rest was not."""

    attentions: list[Attention] = field(default_factory=list)
    lengths: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """For a set its groups, as `by_length` gives them."""
    problems: list[str] = field(default_factory=list)


def look_inside(run: RunDir, config: Config, history: History, tests: dict[str, Any], *, device: str) -> Insight:
    """Load the best checkpoint, and ask it. What cannot be had is a problem to be told, never an error."""
    lengths = {name: found["by_length"] for name, found in tests.items() if isinstance(found, dict) and found.get("by_length")}
    insight = Insight(lengths=lengths)
    try:
        names = run.names()
        if not names:
            raise RunError("there is no checkpoint yet")
        translator = Translator.load(run.path, "best" if "best" in names else "last", device=device)
        sources = _sources(config, history, translator)
        for to, lines in sources.items():
            insight.attentions += attention_of(translator, translator.translate(lines, to=to, beam=1), to=to)
        if not lengths:
            insight.lengths = _dev_by_length(config, translator)
    except MTError as error:
        insight.problems.append(str(error))
    return insight


def _sources(config: Config, history: History, translator: Translator) -> dict[str | None, list[str]]:
    """The sentences whose attention is drawn, by the language to ask for: dev samples of the newest validation, else of a test set."""
    samples = [sample for event in history.validations[-1:] for sample in event.get("samples") or [] if isinstance(sample, dict)]
    told = history.validations[-1].get("to") if history.validations else None
    lines = [(sample.get("to") or told, str(sample.get("source", ""))) for sample in samples]
    if not lines:
        for corpus in config.data.test.values():
            pairs = read_held_out(corpus, langs=langs_of(config, corpus))
            lines += [(tag_of(config, corpus), pair.src) for pair in pairs[: 5 * SENTENCES]]
    chosen: dict[str | None, list[str]] = {}
    fitting = [(to, line) for to, line in lines if 0 < len(translator.tokenizers.src.encode(line)) <= LONGEST]
    for to, line in (fitting or lines)[:SENTENCES]:
        chosen.setdefault(to, []).append(line)
    return chosen


def _dev_by_length(config: Config, translator: Translator) -> dict[str, list[dict[str, Any]]]:
    """The first lines of each dev set, translated greedily."""
    found = {}
    for name, corpus in config.data.dev_sets().items():
        pairs = read_held_out(corpus, langs=langs_of(config, corpus))[:LINES]
        lines = [pair.src for pair in pairs]
        hypotheses = [one.text for one in translator.translate(lines, to=tag_of(config, corpus), beam=1)]
        references = [[pair.tgt for pair in pairs]]
        found[name] = by_length(lengths_of(translator, lines), hypotheses, references, lang=target_of(config, corpus))
    return found


def lengths_of(translator: Translator, lines: list[str]) -> list[int]:
    """Pieces of each line."""
    return [sum(map(len, parts)) for parts in translator.encoded(lines)]
