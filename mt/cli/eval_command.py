"""`mt eval`: scores of a run or of a file of translations, each with its signature and 95 % interval."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from mt.cli.eval_sets import EvalSet, named_sets, read_set
from mt.cli.judged import from_file, load_system, mistakes, strangers
from mt.cli.model_options import Precision
from mt.cli.models import How, Shares, entries
from mt.cli.streams import DASH, refuse_same
from mt.errors import MTError
from mt.files import write_atomic

if TYPE_CHECKING:
    from mt.evaluate.metrics import Scores


def eval_(
    context: typer.Context,
    model: Annotated[
        list[Path] | None,
        typer.Option(readable=False, metavar="RUN", help="Run directory: translate --src with it, then score; several: an ensemble."),
    ] = None,
    src: Annotated[Path | None, typer.Option(readable=False, metavar="FILE", help="Source text for --model, raw, also compressed.")] = None,
    hyp: Annotated[
        Path | None, typer.Option(readable=False, metavar="FILE", help="Translations to score, detokenised; - reads them from a pipe.")
    ] = None,
    ref: Annotated[
        list[Path] | None, typer.Option(readable=False, metavar="FILE", help="References, raw; repeat it for several per line.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option(metavar="NAME:SRC:REF", help="A further test set for --model; can be repeated.")] = None,
    metrics: Annotated[str, typer.Option(metavar="LIST", help="Which scores, separated by commas.")] = "bleu,chrf,ter",
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
) -> None:
    """Score a run (--model RUN --src FILE) or a file of translations (--hyp FILE) against references (--ref FILE).

    Prints sacreBLEU's BLEU, chrF2 and TER of raw, detokenised text, each with its 95 % bootstrap interval and the signature that
    lets others repeat it. Line n of one file belongs to line n of the other: different counts are an error.

    Examples:

    mt eval --model runs/demo --src test.en --ref test.de

    mt eval --hyp out.de --ref test.de --json scores.json
    """
    if context.args:
        raise MTError(f"{context.args[0]}: say what it is: --hyp FILE (translations), --ref FILE (references), or --src FILE for --model")
    mixed = {"ensemble": ensemble, "ensemble_weights": ensemble_weights}
    settings = {"checkpoint": checkpoint, "to": to, "beam": beam, "precision": precision, "weights": weights, **mixed}
    for_model = {"src": src, "test": test, **settings}
    _refuse_contradictions(model=model, hyp=hyp, ref=ref, for_model=for_model)
    sets = ([EvalSet("", src, ref)] if ref else []) + named_sets(test or [])
    if json_file:
        read = [path for one in sets for path in (one.src or hyp or DASH, *one.refs)]
        refuse_same(json_file, *read, *entries(model or []))
    with write_atomic(json_file) if json_file else nullcontext() as file:  # what is wrong with it is said before the work
        corpora = [read_set(one, hyp, max_lines=max_lines) for one in sets]

        from mt.config.languages import language
        from mt.evaluate.metrics import build_metric, score

        keys = [key.strip() for key in metrics.split(",")]
        for key in keys:
            build_metric(key, lang=lang, tokenize=tokenize, lowercase=lowercase)  # what it refuses, it refuses before the translation
        system = load_system(model, settings | {"checkpoint": checkpoint or "best"}) if model else from_file(hyp)
        results: list[dict[str, Any]] = []
        for one, lines in zip(sets, corpora, strict=True):
            target = lang or system.lang or language(one.refs[0].name)
            hypotheses = system.hypotheses(lines.given)
            scores = score(hypotheses, lines.refs, metrics=keys, lang=target, tokenize=tokenize, lowercase=lowercase, intervals=True)
            scores.warnings.extend([*strangers(one, system), *mistakes(one, hyp, lines, hypotheses)])
            _print(scores, name=one.name)
            files = {"source": str(one.src) if one.src else None, "references": [str(path) for path in one.refs]}
            results.append({"name": one.name or None, **scores.as_json(), "hypotheses": system.about, **files, "lang": target})
        if file:
            _write(file, results)


def _refuse_contradictions(*, model: list[Path] | None, hyp: Path | None, ref: list[Path] | None, for_model: dict[str, Any]) -> None:
    """Raise MTError, in one line, for options that do not make sense together."""
    given = [f"--{name.replace('_', '-')}" for name, value in for_model.items() if value]
    if model and hyp:
        raise MTError("--model and --hyp: give one of the two, a run that translates or a file of translations")
    if given and not model:
        raise MTError(f"{given[0]} goes with --model RUN" + (", not with --hyp, whose translations exist already" if hyp else ": add it"))
    if not model and not hyp:
        raise MTError("nothing to score: give --model RUN --src FILE, or --hyp FILE")
    if (hyp or "--src" in given) and not ref:
        raise MTError(f"{'--hyp' if hyp else '--src'} needs a reference: add --ref FILE")
    if model and ref and "--src" not in given:
        raise MTError("--ref with --model needs the source text: add --src FILE")
    if model and not ref and "--test" not in given:
        raise MTError("--model needs something to translate: add --src FILE --ref FILE, or --test NAME:SRC:REF")
    if hyp == DASH and sys.stdin.isatty():
        raise MTError(
            "--hyp - reads translations from a pipe, and nothing is piped in: give a file, or `mt translate … | mt eval --hyp - …`"
        )


def _print(scores: Scores, *, name: str) -> None:
    """Scores to stdout, a line each, in columns under the name of the set; warnings to stderr."""
    if name:
        print(f"{name} ({scores.lines} lines)")
    for one in scores.metrics:
        low, high = one.interval or (one.score, one.score)
        print(f"{one.name:<5}  {one.score:6.2f}  {f'[{low:.2f}, {high:.2f}]':<16}  {one.signature}", flush=True)
    for warning in scores.warnings:
        print(f"warning: {name + ': ' if name else ''}{warning}", file=sys.stderr)


def _write(file: TextIO, results: Sequence[dict[str, Any]]) -> None:
    """The first set's object, and under `tests` those of all named sets by their names."""
    tests = {result["name"]: result for result in results if result["name"]}
    json.dump({**results[0], "tests": tests}, file, ensure_ascii=False, indent=2)
    file.write("\n")
