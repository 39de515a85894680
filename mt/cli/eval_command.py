"""`mt eval`: scores of a run or of a file of translations, each with its signature and 95 % interval."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TextIO

import typer

from mt.cli.model_options import Precision
from mt.cli.models import How, Shares, entries, load_models
from mt.cli.streams import DASH, reading, refuse_same
from mt.errors import DataError, MTError
from mt.files import decode_lines, write_atomic

if TYPE_CHECKING:
    from mt.evaluate.metrics import Scores


class EvalSet(NamedTuple):
    """What is scored: `src` is what a run translates; there is none when the translations come from a file."""

    name: str
    src: Path | None
    refs: list[Path]


class Lines(NamedTuple):
    """The lines of a set: `given` is the source text, or the translations themselves; `refs` has a list for each reference file."""

    given: list[str]
    refs: list[list[str]]


class System(NamedTuple):
    """What is judged: `hypotheses` makes translations of given lines, from `sources` to `lang` where known; `about` says what it is."""

    hypotheses: Callable[[list[str]], list[str]]
    sources: tuple[str, ...]
    lang: str | None
    about: str | dict[str, Any]


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
    sets = ([EvalSet("", src, ref)] if ref else []) + _named_sets(test or [])
    if json_file:
        read = [path for one in sets for path in (one.src or hyp or DASH, *one.refs)]
        refuse_same(json_file, *read, *entries(model or []))
    with write_atomic(json_file) if json_file else nullcontext() as file:  # what is wrong with it is said before the work
        corpora = [_read(one, hyp, max_lines=max_lines) for one in sets]

        from mt.config.languages import language
        from mt.evaluate.metrics import build_metric, score

        keys = [key.strip() for key in metrics.split(",")]
        for key in keys:
            build_metric(key, lang=lang, tokenize=tokenize, lowercase=lowercase)  # what it refuses, it refuses before the translation
        system = _load(model, settings | {"checkpoint": checkpoint or "best"}) if model else _file(hyp)
        results: list[dict[str, Any]] = []
        for one, lines in zip(sets, corpora, strict=True):
            target = lang or system.lang or language(one.refs[0].name)
            hypotheses = system.hypotheses(lines.given)
            scores = score(hypotheses, lines.refs, metrics=keys, lang=target, tokenize=tokenize, lowercase=lowercase, intervals=True)
            scores.warnings.extend([*_strangers(one, system), *_mistakes(one, hyp, lines, hypotheses)])
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


def _named_sets(values: list[str]) -> list[EvalSet]:
    """The sets that `--test NAME:SRC:REF` stand for."""
    sets: dict[str, EvalSet] = {}
    for value in values:
        name, *files = value.split(":")
        if not name or len(files) != 2 or not all(files):
            raise MTError(f"--test {value}: expected NAME:SRC:REF, a name and two files with colons between them")
        if name in sets:
            raise MTError(f"--test {value}: another set is called {name}; give each its own name")
        sets[name] = EvalSet(name, Path(files[0]), [Path(files[1])])
    return list(sets.values())


def _read(one: EvalSet, hyp: Path | None, *, max_lines: int | None) -> Lines:
    """All lines of a set, then the first `max_lines` of them; raises DataError, with names, when the files differ in length."""
    given = one.src or hyp or DASH
    lines = _lines(given)
    refs = [_lines(path) for path in one.refs]
    for path, ref in zip(one.refs, refs, strict=True):
        if len(ref) != len(lines):
            where = _parting(lines, ref)
            counts = f"{_named(given)} has {len(lines)} lines, {_named(path)} has {len(ref)}"
            about = f"; by their lengths they part about line {where}" if where else ""
            raise DataError(f"{counts}: line n of one must answer line n of the other{about}")
    return Lines(lines[:max_lines], [ref[:max_lines] for ref in refs])


def _lines(path: Path) -> list[str]:
    """Of a file or of stdin."""
    with reading(path) as source:
        return list(decode_lines(source(), _named(path)))


def _named(path: Path) -> str:
    """As messages call it."""
    return "<stdin>" if path == DASH else str(path)


def _parting(lines: list[str], ref: list[str]) -> int | None:
    """Where two files of different lengths seem to part; None if that cannot be told."""
    import numpy as np

    from mt.doctor.alignment import surplus_at

    return surplus_at(np.array([len(line) for line in lines]), np.array([len(line) for line in ref]))


def _strangers(one: EvalSet, system: System) -> list[str]:
    """A warning where files are, by their names, in other languages than those that the run translates."""
    from mt.config.languages import differs, language

    sides = ((one.src, system.sources), (one.refs[0], (system.lang,) if system.lang else ()))
    named = [(path, code, langs) for path, langs in sides if path and (code := language(path.name)) and differs(code, langs)]
    wrong = [f"{path} is in {code!r}, not {' or '.join(map(repr, langs))}" for path, code, langs in named]
    return [f"by name {', and '.join(wrong)}: are these files for this run?"] if wrong else []


def _mistakes(one: EvalSet, hyp: Path | None, lines: Lines, hypotheses: list[str]) -> list[str]:
    """Warnings about files that are taken for each other: translations that are the source, or a reference, or in its language not."""
    from mt.config.languages import language, same_language

    found = []
    ours, theirs = (language(path.name) if path else None for path in (hyp, one.refs[0]))
    if ours and theirs and not same_language(ours, theirs):
        found.append(f"by their names {hyp} is in {ours}, {one.refs[0]} in {theirs}: are these the translations, not the source?")
    if any(ref == hypotheses for ref in lines.refs) and len(hypotheses) > 1:
        found.append("each translation is the reference itself: was the same file given twice?")
    if one.src:
        copies = sum(bool(source.strip()) and source == hypothesis for source, hypothesis in zip(lines.given, hypotheses, strict=True))
        if 2 * copies > len(hypotheses):
            found.append(f"{copies} of {len(hypotheses)} translations are the source, unchanged: has the model learnt to translate?")
    return found


def _load(models: list[Path], settings: dict[str, Any]) -> System:
    """A run or several, loaded with the settings that the JSON repeats; None there is the default."""
    from mt.config.directions import sources

    loading = {name: settings[name] for name in ("checkpoint", "precision", "weights")}
    translator = load_models(models, how=settings["ensemble"], shares=settings["ensemble_weights"], **loading)
    asked = {name: settings[name] for name in ("to", "beam")}
    lang = translator.target(settings["to"]).lang
    mixed = ("ensemble", "ensemble_weights")
    alone = {"model": str(models[0]), **{name: value for name, value in settings.items() if name not in mixed}}
    about = alone if len(models) == 1 else {**alone, "models": [str(one) for one in models], **{name: settings[name] for name in mixed}}
    return System(
        lambda lines: [one.text for one in translator.translate(lines, **asked)], sources(translator.config, to=lang), lang, about
    )


def _file(hyp: Path | None) -> System:
    """Translations that exist already."""
    return System(lambda lines: lines, (), None, str(hyp))


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
