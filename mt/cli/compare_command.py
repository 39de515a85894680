"""`mt compare`: whether systems differ by more than chance on one test set, and where."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mt.cli.eval_sets import lines_of, read_parallel
from mt.cli.judged import load_system
from mt.cli.model_options import Precision, WhichWeights
from mt.cli.models import entries
from mt.cli.remarks import warn
from mt.cli.report_output import Report, as_report, refuse_other
from mt.cli.streams import refuse_same
from mt.errors import DataError, MTError
from mt.files import write_atomic
from mt.rundir import ExportDir, RunDir

if TYPE_CHECKING:
    from collections import Counter


TRAINING_LINES = 5_000_000
"""Of training text, so many lines are looked at for rare words."""


def compare(
    context: typer.Context,
    ref: Annotated[list[Path], typer.Option(readable=False, metavar="FILE", help="References, raw; repeat it for several per line.")],
    hyp: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help="Translations of one system, detokenised; repeat it for each system.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]RUN", help="Run directory: translate --src with it; repeat it for each run.")
    ] = None,
    src: Annotated[
        Path | None, typer.Option(readable=False, metavar="FILE", help="Source text, raw: for --model, and for buckets.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which one the others are compared with.  [default: the first, files before runs]")
    ] = None,
    metrics: Annotated[
        str, typer.Option(metavar="LIST", help="Which scores, separated by commas: bleu, chrf, chrf++, ter.")
    ] = "bleu,chrf,ter",
    show: Annotated[int, typer.Option(min=0, max=20, metavar="N", help="Lines that differ most to print, either way.")] = 3,
    json_file: Annotated[
        Path | None, typer.Option("--json", readable=False, metavar="FILE", help="Write all, unrounded, here too.")
    ] = None,
    report: Report = None,
    train: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="Training text in the language of --src, for rare words.  [default: that of a --model]"
        ),
    ] = None,
    rare: Annotated[int, typer.Option(min=1, metavar="N", help="A word is rare if seen less than N times in training.")] = 5,
    checkpoint: Annotated[str, typer.Option(metavar="best|last|STEP|NAME", help="Checkpoint of each --model.")] = "best",
    to: Annotated[str | None, typer.Option(metavar="LANG", help="What --model translates to, where it has several languages.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, metavar="N", help="Beam width of --model; 1 is greedy.  [default: the run's]")] = None,
    precision: Precision = None,
    weights: WhichWeights = None,
    max_lines: Annotated[int | None, typer.Option(min=1, metavar="N", help="Use the first N lines only.")] = None,
    lang: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Target language; it chooses BLEU's tokenizer.  [default: the run's, or the reference's suffix]"),
    ] = None,
    tokenize: Annotated[str | None, typer.Option(metavar="NAME", help="BLEU's tokenizer, by sacreBLEU's name.")] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case in BLEU and chrF.")] = False,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Samples of the paired bootstrap.")] = 1000,
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Trials of the approximate randomisation.")] = 10000,
    seed: Annotated[int, typer.Option(min=1, metavar="S", help="Of both; the default is sacreBLEU's.")] = 12345,
) -> None:
    """Compare two systems or more on one test set: do they differ by more than chance, and where?

    Prints scores with 95 % intervals; p-values of paired bootstrap and approximate randomisation, as sacreBLEU's --paired-bs and
    --paired-ar have them; wins by sentence, BLEU's parts, buckets, and the lines that differ most. docs/evaluation.md explains each.

    Examples:

    mt compare --ref test.de --src test.en --hyp old=old.de --hyp new=new.de --report compare.html

    mt compare --ref test.de --src test.en --model runs/base --model runs/big
    """
    if context.args:
        raise MTError(f"{context.args[0]}: say what it is: --hyp FILE (translations), --ref FILE (references), --src FILE or --model RUN")
    refuse_other(report, json_file)
    files, runs = _named(hyp or [], "--hyp"), _named(model or [], "--model")
    names = _order([*files, *runs], baseline)
    if (runs or train) and not src:
        raise MTError(
            "--model needs something to translate: add --src FILE" if runs else "--train is for words of the source: add --src FILE"
        )
    written = [path for path in (json_file, report) if path]
    for path in written:
        refuse_same(path, *files.values(), *ref, *filter(None, (src, train)), *entries(list(runs.values())))
    with ExitStack() as stack:  # what is wrong with a file is said before the work
        into = {path: stack.enter_context(write_atomic(path)) for path in written}
        whole = read_parallel([*ref, *files.values(), *([src] if src else [])], max_lines=max_lines)
        references, sources = whole[: len(ref)], whole[-1] if src else None
        outputs = dict(zip(files, whole[len(ref) :], strict=False))

        from mt.config.languages import language
        from mt.evaluate.buckets import divisions
        from mt.evaluate.compare import EXAMPLES
        from mt.evaluate.compare import compare as judge
        from mt.evaluate.layout import as_text
        from mt.evaluate.metrics import build_metric
        from mt.evaluate.significance import Resampling
        from mt.evaluate.wording import about, outline

        keys = [key.strip() for key in metrics.split(",")]
        for key in keys:
            build_metric(key, lang=lang, tokenize=tokenize, lowercase=lowercase)  # what it refuses, it refuses before the translation
        settings = {"checkpoint": checkpoint, "to": to, "beam": beam, "precision": precision, "weights": weights}
        spoken = None
        for name, run in runs.items():
            system = load_system([run], {**settings, "ensemble": None, "ensemble_weights": None})
            spoken = spoken or system.lang
            outputs[name] = system.hypotheses(sources or [])
        target = lang or spoken or language(ref[0].name)
        langs = language(src.name) if src else None, target
        found = judge(
            {name: outputs[name] for name in names},
            references,
            lang=target,
            sources=sources,
            metrics=keys,
            tokenize=tokenize,
            lowercase=lowercase,
            resampling=Resampling(samples, trials, seed),
            divisions=divisions(sources, references[0], langs=langs, counts=_counts(sources, train, [*runs.values()]), rare=rare),
        )
        print(about(found), as_text(outline(found, examples=show)), sep="\n\n", end="")
        for text in found.warnings:
            warn(text)
        if json_file:
            paths = {"references": [*map(str, ref)], "source": str(src) if src else None, "lang": target}
            origins = {name: str(files[name]) if name in files else {"model": str(runs[name]), **settings} for name in names}
            json.dump({**found.as_json(), **paths, "hypotheses": origins}, into[json_file], ensure_ascii=False, indent=1)
            into[json_file].write("\n")
        if report:
            title = f"{', '.join(names[1:])} against {names[0]}"
            into[report].write(as_report(report, outline(found, examples=EXAMPLES), title=title, about=about(found)))


def _counts(sources: list[str] | None, train: Path | None, runs: list[Path]) -> Counter[str] | None:
    """How often the words of the source were seen in training, as far as that is known."""
    from mt.evaluate.buckets import seen

    if sources is None or not (train or runs):
        return None
    trained = [run for run in runs if not ExportDir(run).is_there()]
    if not train and not trained:
        print("no buckets of rare words: an export does not know its training text; name it with --train FILE", file=sys.stderr)
        return None
    return seen(islice(lines_of(train) if train else _trained_on(trained[0]), TRAINING_LINES), sources)


def _named(values: list[str], option: str) -> dict[str, Path]:
    """Systems by name: that before the first =, else the file's name without its suffixes, the whole path where another is called so."""
    given = [_parts(value) for value in values]
    short = [path.name.split(".")[0] or path.name for _, path in given]
    found: dict[str, Path] = {}
    for (name, path), own in zip(given, short, strict=True):
        called = name or (own if short.count(own) == 1 else str(path))
        if called in found:
            raise MTError(f"{option} {path}: another system is called {called}; give it a name of its own: {option} NAME={path}")
        found[called] = path
    return found


def _parts(value: str) -> tuple[str, Path]:
    """The name and the path of NAME=PATH; without a name where the whole is one, of a file or folder that is there."""
    name, equals, path = value.partition("=")
    return (name.strip(), Path(path)) if equals and path and not Path(value).exists() else ("", Path(value))


def _order(names: list[str], baseline: str | None) -> list[str]:
    """The names of all systems, the baseline first. Raises MTError where one is missing, or two are called alike."""
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise MTError(f"two systems are called {twice}: give one a name of its own, as in --hyp NAME=FILE or --model NAME=RUN")
    if len(names) < 2:
        what = f"only {names[0]} was given" if names else "nothing was given"
        raise MTError(f"{what} to compare: give two systems or more, each with --hyp FILE or --model RUN (`mt eval` scores one)")
    if baseline is None:
        return names
    if baseline not in names:
        raise MTError(f"--baseline {baseline}: no system is called so; choose from {', '.join(names)}")
    return [baseline, *(name for name in names if name != baseline)]


def _trained_on(run: Path) -> Iterator[str]:
    """The sources that a run was trained on, as far as their files are still there; never from a network."""
    from mt.config.load import load
    from mt.config.schema import HubDataset
    from mt.formats.readers import read_pairs

    config = load(RunDir(run).config).config
    for corpus in config.data.train:
        try:
            if isinstance(corpus, HubDataset):
                raise DataError(f"{corpus.called()}: is not on this machine")
            yield from (pair.src for pair in read_pairs(corpus, langs=config.langs))
        except MTError as problem:
            warn(f"rare words: {problem}; name the text that was trained on with --train FILE")
