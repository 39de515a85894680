"""`mt eval`: scores of a run or of a file of translations, each with its signature and 95 % interval."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from mt.cli.eval_sets import EvalSet, named_sets, read_set
from mt.cli.judged import from_file, load_system, mistakes, strangers
from mt.cli.model_options import Precision
from mt.cli.models import How, Shares, entries
from mt.cli.report_output import Report, as_report, refuse_other
from mt.cli.streams import refuse_same
from mt.errors import MTError
from mt.files import write_atomic

LABELS = ("docid", "origlang")
"""What sacreBLEU's sets may tell of their lines."""

if TYPE_CHECKING:
    from mt.evaluate.metrics import Scores


def eval_(
    context: typer.Context,
    model: Annotated[
        list[Path] | None,
        typer.Option(readable=False, metavar="RUN", help="Run directory: translate --src with it, then score; several: an ensemble."),
    ] = None,
    src: Annotated[Path | None, typer.Option(readable=False, metavar="FILE", help="Source text, raw: what --model translates.")] = None,
    hyp: Annotated[
        Path | None, typer.Option(readable=False, metavar="FILE", help="Translations to score, detokenised; - reads them from a pipe.")
    ] = None,
    ref: Annotated[
        list[Path] | None, typer.Option(readable=False, metavar="FILE", help="References, raw; repeat it for several per line.")
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:SRC:REF|SET:PAIR", help="A further test set, or one of sacreBLEU's, as wmt20:en-de; can be repeated."),
    ] = None,
    metrics: Annotated[
        str, typer.Option(metavar="LIST", help="Which scores, with commas: bleu, chrf, chrf++, ter, comet, comet-kiwi.")
    ] = "bleu,chrf,ter",
    groups: Annotated[
        str | None,
        typer.Option(metavar="FILE|docid|origlang", help="Scores by label, too: a file with one a line, or what sacreBLEU's set has."),
    ] = None,
    comet_model: Annotated[
        str | None, typer.Option(metavar="FILE|NAME", help="Checkpoint of the model for comet or comet-kiwi, or its name on the hub.")
    ] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="best|last|STEP|NAME", help="Checkpoint of --model.  [default: best]")] = None,
    to: Annotated[str | None, typer.Option(metavar="LANG", help="What --model translates to, where it has several languages.")] = None,
    ensemble: How = None,
    ensemble_weights: Shares = None,
    beam: Annotated[int | None, typer.Option(min=1, metavar="N", help="Beam width; 1 is greedy.  [default: the run's]")] = None,
    precision: Precision = None,
    weights: Annotated[Literal["raw", "ema"] | None, typer.Option(help="Weights of --model: as trained, or their moving average.")] = None,
    max_lines: Annotated[int | None, typer.Option(min=1, metavar="N", help="Use the first N lines only.")] = None,
    lang: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Target language; it chooses BLEU's tokenizer.  [default: the run's, or the reference's suffix]"),
    ] = None,
    tokenize: Annotated[str | None, typer.Option(metavar="NAME", help="BLEU's tokenizer, by sacreBLEU's name.")] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case in BLEU and chrF.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", readable=False, metavar="FILE", help="Write the scores, unrounded, here too.")
    ] = None,
    report: Report = None,
) -> None:
    """Score a run (--model RUN --src FILE) or a file of translations (--hyp FILE) against references (--ref FILE).

    Prints sacreBLEU's BLEU, chrF2 and TER of raw, detokenised text, each with its 95 % bootstrap interval and the signature that
    lets others repeat it. Line n of one file belongs to line n of the other: different counts are an error.

    Examples:

    mt eval --model runs/demo --src test.en --ref test.de

    mt eval --hyp out.de --ref test.de --json scores.json

    mt eval --hyp out.de --test wmt20:en-de --groups origlang --report scores.html
    """
    if context.args:
        raise MTError(f"{context.args[0]}: say what it is: --hyp FILE (translations), --ref FILE (references), or --src FILE for --model")
    mixed = {"ensemble": ensemble, "ensemble_weights": ensemble_weights}
    settings = {"checkpoint": checkpoint, "to": to, "beam": beam, "precision": precision, "weights": weights, **mixed}
    refuse_other(report, json_file)
    _refuse_contradictions(model=model, hyp=hyp, src=src, ref=ref, test=test, for_model=settings)
    sets = ([EvalSet("", src, ref)] if ref else []) + named_sets(test or [])
    _refuse_groups(groups, sets)
    written = [path for path in (json_file, report) if path]
    read = [file for one in sets for file in (one.src, hyp, *one.refs) if file] + ([Path(groups)] if groups else [])
    for path in written:
        refuse_same(path, *read, *entries(model or []))
    with ExitStack() as stack:  # what is wrong with a file is said before the work
        into = {path: stack.enter_context(write_atomic(path)) for path in written}
        corpora = [read_set(one, hyp, max_lines=max_lines, groups=groups) for one in sets]

        from mt.config.languages import language
        from mt.evaluate.metrics import build_metric, score
        from mt.evaluate.neural import MODELS, neural_score, require
        from mt.evaluate.sheet import Scored, sheet

        keys = [key.strip() for key in metrics.split(",")]
        counted, neural = [key for key in keys if key not in MODELS], [key for key in keys if key in MODELS]
        for key in counted:
            build_metric(key, lang=lang, tokenize=tokenize, lowercase=lowercase)  # what it refuses, it refuses before the translation
        for key in neural:
            require(key, sources=all(lines.sources for lines in corpora))
        system = load_system(model, settings | {"checkpoint": checkpoint or "best"}) if model else from_file(hyp)
        results: list[dict[str, Any]] = []
        scored: list[Scored] = []
        for one, lines in zip(sets, corpora, strict=True):
            target = lang or system.lang or language(one.refs[0].name)
            hypotheses = system.hypotheses((lines.sources if model else lines.hypotheses) or [])
            scores = score(
                hypotheses,
                lines.refs,
                metrics=counted,
                lang=target,
                tokenize=tokenize,
                lowercase=lowercase,
                intervals=True,
                labels=lines.labels,
            )
            scores.metrics.extend(neural_score(key, hypotheses, lines.refs, lines.sources or [], model=comet_model) for key in neural)
            scores.warnings.extend([*strangers(one, system), *mistakes(one, hyp, lines, hypotheses)])
            _print(scores, name=one.name)
            scored.append(Scored(one.name, scores, hypotheses, lines.refs, lines.sources, target))
            files = {"source": str(one.src) if one.src else None, "references": [str(path) for path in one.refs]}
            results.append({"name": one.name or None, **scores.as_json(), "hypotheses": system.about, **files, "lang": target})
        if json_file:
            _write(into[json_file], results)
        if report:
            named = hyp.name if hyp else ", ".join(path.name for path in model or [])
            about = "scores of raw, detokenised text by sacreBLEU; 95 % intervals by bootstrap"
            into[report].write(as_report(report, sheet(scored), title=f"Scores of {named}", about=about))


def _refuse_contradictions(
    *,
    model: list[Path] | None,
    hyp: Path | None,
    src: Path | None,
    ref: list[Path] | None,
    test: list[str] | None,
    for_model: dict[str, Any],
) -> None:
    """Raise MTError, in one line, for options that do not make sense together."""
    given = [f"--{name.replace('_', '-')}" for name, value in for_model.items() if value]
    if model and hyp:
        raise MTError("--model and --hyp: give one of the two, a run that translates or a file of translations")
    if given and not model:
        raise MTError(f"{given[0]} goes with --model RUN" + (", not with --hyp, whose translations exist already" if hyp else ": add it"))
    if not model and not hyp:
        raise MTError("nothing to score: give --model RUN --src FILE, or --hyp FILE")
    if hyp and not ref and not test:
        raise MTError("--hyp needs a reference: add --ref FILE")
    if hyp and test and (ref or len(test) > 1):
        raise MTError("--test with --hyp: a file is the translation of one test set; give a single --ref FILE or --test")
    if src and not ref:
        raise MTError("--src needs a reference: add --ref FILE")
    if model and ref and not src:
        raise MTError("--ref with --model needs the source text: add --src FILE")
    if model and not ref and not test:
        raise MTError("--model needs something to translate: add --src FILE --ref FILE, or --test NAME:SRC:REF")


def _refuse_groups(groups: str | None, sets: list[EvalSet]) -> None:
    """Raise MTError where lines cannot have the labels that are asked for."""
    if groups is None:
        return
    if groups in LABELS:
        if without := [one.name or "the test set" for one in sets if groups not in one.labels]:
            raise MTError(f"--groups {groups}: {without[0]} has none; give a file with one label a line")
    elif len(sets) > 1:
        raise MTError(f"--groups {groups}: labels of one file cannot be of several test sets; score one at a time")


def _print(scores: Scores, *, name: str) -> None:
    """Scores to stdout, a line each, in columns under the name of the set, then those of groups; warnings to stderr."""
    from mt.evaluate.layout import columns
    from mt.evaluate.sheet import GROUPS, span
    from mt.evaluate.sheet import groups as sheet_of_groups
    from mt.formats.pairs import counted

    if name:
        print(f"{name} ({counted(scores.lines, 'line')})")
    width = max(5, *(len(one.name) for one in scores.metrics))
    for one in scores.metrics:
        print(f"{one.name:<{width}}  {one.score:6.2f}  {span(one):<16}  {one.signature}", flush=True)
    if scores.groups:
        table = sheet_of_groups(scores, most=GROUPS)
        print("", *columns([table.head, *table.rows]), sep="\n")
        if len(scores.groups) > GROUPS:
            print(f"the {GROUPS} largest groups of {len(scores.groups)}; --json and --report have all")
    for warning in scores.warnings:
        print(f"warning: {name + ': ' if name else ''}{warning}", file=sys.stderr)


def _write(file: TextIO, results: Sequence[dict[str, Any]]) -> None:
    """The first set's object, and under `tests` those of all named sets by their names."""
    tests = {result["name"]: result for result in results if result["name"]}
    json.dump({**results[0], "tests": tests}, file, ensure_ascii=False, indent=2)
    file.write("\n")
