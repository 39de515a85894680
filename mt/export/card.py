"""What lies beside a model for whoever gets it: languages, size, scores, data and how to use it, as Markdown (README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt.clean.tally import Tally
from mt.config.directions import langs_of
from mt.config.schema import Config
from mt.evaluate.layout import Block, Heading, Paragraph, Table, as_markdown
from mt.report.history import History, numbers
from mt.rundir import RunDir

METRICS = {"bleu": "BLEU", "chrf": "chrF"}
LICENCE = (
    "Not stated yet. Write here under which terms the model may be used, and name them in the first lines of this file.",
    "What it was trained on may have terms of its own.",
)


def card(
    run: RunDir,
    config: Config,
    *,
    name: str,
    facts: Sequence[tuple[str, str]],
    usage: str,
    limits: Sequence[str],
    proof: Mapping[str, Any] | None,
    library: str,
    best: bool,
) -> str:
    """The whole file.

    `facts` are said of the model, `usage` is a block of Python, `limits` are what the export does otherwise, `proof` is what came of its
    comparison with the run, `library` is what runs it, and `best` says that the scores of the run are those of this checkpoint. Whatever
    comes from a corpus or a config is escaped.
    """
    pairs = list(dict.fromkeys(langs for corpus in config.data.train if (langs := langs_of(config, corpus))))
    ways = ", ".join(f"{langs.src} to {langs.tgt}" for langs in pairs)
    about = f"Translates {ways}" if ways else "Translates between two languages that its settings do not name"
    codes = list(dict.fromkeys(lang for langs in pairs for lang in (langs.src, langs.tgt)))
    head = {"language": codes, "library_name": library, "pipeline_tag": "translation", "license": "unknown"}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items() if value]
    before: list[Block] = [
        Heading("Model"),
        Table(("", ""), tuple(facts), remarks=1),
        *_scores(run, best=best),
        *_proof(proof),
        *_data(run),
    ]
    after: list[Block] = [Heading("What differs from mt"), Paragraph(tuple(limits)), Heading("Licence"), Paragraph(LICENCE)]
    whole = as_markdown([*before, Heading("Use"), *after], title=_line(name), about=f"{about}. Trained with mt.")
    body, mark, rest = whole.partition("## Use\n")
    return "\n".join(["---", *lines, "---", "", f"{body}{mark}\n```python\n{usage.rstrip()}\n```\n{rest}"])


def _scores(run: RunDir, *, best: bool) -> Iterator[Block]:
    """Of the test sets, and of the best checkpoint on the dev set, with what they were computed by."""
    rows = []
    for name, one in _read(run.test_scores).items():
        for metric in one.get("metrics", []) if isinstance(one, dict) else []:
            low, high = metric.get("interval") or (None, None)
            span = "" if low is None else f"[{low:.2f}, {high:.2f}]"
            rows.append((_line(name), metric["name"], f"{metric['score']:.2f}", span, _beam(one), str(metric.get("signature", ""))))
    judged = History.of(run).best or {}
    for told, signature in (judged.get("signatures") or {}).items():
        name, _, metric = told.rpartition(" ")
        scores = numbers((judged.get("sets") or {}).get(name, {})) if name else judged["scores"]
        if metric in scores:
            called = _line(f"dev {name}".strip())
            rows.append((called, METRICS.get(metric, metric), f"{scores[metric]:.2f}", "", _beam(judged), str(signature)))
    if rows:
        yield Heading("Scores")
        other = () if best else ("They are of the run's best checkpoint, which this is not.",)
        yield Paragraph(("Of raw, detokenised text, through sacreBLEU; intervals are 95 %, by bootstrap.", *other))
        yield Table(("set", "metric", "score", "interval", "beam", "signature"), tuple(rows), remarks=1)


def _beam(told: Mapping[str, Any]) -> str:
    return str(told.get("beam", ""))


def _proof(proof: Mapping[str, Any] | None) -> Iterator[Block]:
    """How many lines came out as the run has them."""
    if not proof:
        return
    yield Heading("The export beside the run")
    yield Paragraph((f"{_line(str(proof['sample']))}, translated by both; {proof['by']}.",))
    rows = []
    for one in proof["searches"]:
        bleu = one.get("bleu") or {}
        scores = [f"{bleu[which]:.2f}" if which in bleu else "" for which in ("run", "export")]
        rows.append((one["search"], f"{one['equal']} of {one['lines']}", *scores))
    yield Table(("search", "equal lines", "BLEU of the run", "of the export"), tuple(rows))


def _data(run: RunDir) -> Iterator[Block]:
    """Pairs of each corpus that were kept, and those dropped, by reason."""
    try:
        tallies = {name: Tally.from_json(told) for name, told in _read(run.filtered)["corpora"].items()}
    except (KeyError, TypeError, AttributeError):
        return
    rows = []
    for name, tally in tallies.items():
        reasons = ", ".join(f"{count} {reason}" for reason, count in tally.dropped.most_common())
        rows.append((_line(name), str(tally.total), str(tally.kept), str(tally.dropped.total()), reasons))
    if rows:
        yield Heading("Training data")
        yield Table(("corpus", "pairs", "kept", "dropped", "why"), tuple(rows), remarks=1)


def _read(path: Path) -> dict[str, Any]:
    """The object in a file, empty where there is none or it is damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _line(text: str) -> str:
    """On one line."""
    return " ".join(text.split())
