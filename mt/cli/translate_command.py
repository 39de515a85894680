"""`mt translate`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mt.clean.flags import Flag
from mt.cli.control_options import (
    Alternatives,
    BanFile,
    GlossaryFile,
    MinLength,
    NoRepeat,
    Penalty,
    PrefixFile,
    Protect,
    RequireFile,
    RetryLoops,
    asked,
    protects,
    refuse_choosing,
    refuse_uneven,
)
from mt.cli.documents import InputFormat, document_kind, fill_in
from mt.cli.model_options import (
    BatchTokens,
    BeamWidth,
    Checkpoint,
    Device,
    Precision,
    Sample,
    Seed,
    Temperature,
    To,
    TopK,
    TopP,
    WhichWeights,
)
from mt.cli.models import How, Models, Shares, entries, load_models
from mt.cli.remarks import Alarm, with_warnings
from mt.cli.streams import DASH, Arriving, reading, refuse_same, writing
from mt.cli.text_output import Format, answer, nowhere, progress, refuse_format, refuse_resuming, resumed
from mt.config.schema import MAX_LENGTH_PENALTY
from mt.errors import MTError
from mt.files import sha256

if TYPE_CHECKING:
    from mt.config.schema import DecodeConfig
    from mt.decode.engine import Beam, Sampling


def translate(
    context: typer.Context,
    model: Models,
    checkpoint: Checkpoint = "best",
    to: To = None,
    input_file: Annotated[
        Path, typer.Option("--input", readable=False, metavar="FILE", help="Text or document, also compressed; - is stdin.")
    ] = DASH,
    output_file: Annotated[
        Path,
        typer.Option(
            "--output", readable=False, metavar="FILE", help="Appears whole or not at all, packed if it is called .gz; - is stdout."
        ),
    ] = DASH,
    beam: BeamWidth = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="The same as --beam 1.")] = False,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    length_penalty: Annotated[
        float | None,
        typer.Option(metavar="A", help="score = log-probability / length^A: larger favours longer ones.  [default: the run's]"),
    ] = None,
    coverage_penalty: Annotated[
        float | None,
        typer.Option(metavar="B", help="Of what a beam finished, rank lower what leaves parts of the source unread.  [default: the run's]"),
    ] = None,
    n_best: Annotated[int | None, typer.Option(min=1, metavar="N", help="Translations a line; jsonl and tsv only.")] = None,
    mbr: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Of N samples (--sample), or the N best of a beam, the one nearest to all.")
    ] = None,
    mbr_utility: Annotated[Literal["chrf", "bleu", "comet"] | None, typer.Option(help="Near by which score.  [default: chrf]")] = None,
    comet_model: Annotated[
        str | None, typer.Option(metavar="FILE|NAME", help="Checkpoint of the model for comet, or its name on the hub.")
    ] = None,
    alternatives: Alternatives = None,
    min_length: MinLength = 0,
    no_repeat_ngram: NoRepeat = 0,
    repetition_penalty: Penalty = 1.0,
    prefix_file: PrefixFile = None,
    ban: BanFile = None,
    require: RequireFile = None,
    glossary: GlossaryFile = None,
    protect: Protect = None,
    retry_loops: RetryLoops = None,
    batch_tokens: BatchTokens = None,
    output_format: Annotated[Format, typer.Option("--format", help="text; jsonl with scores; tsv: line, score, text.")] = Format.text,
    alignment: Annotated[bool, typer.Option("--alignment", help="With jsonl: which words belong to which, as in 0-0 2-1.")] = False,
    resume_output: Annotated[
        bool, typer.Option("--resume-output", help="Keep what is done in OUTPUT.partial: after a kill the same command goes on.")
    ] = False,
    fail_on: Annotated[
        list[Flag] | None, typer.Option(metavar="FLAG", help=f"End with code 3 if a line has it: {', '.join(Flag)}; can be repeated.")
    ] = None,
    weights: WhichWeights = None,
    precision: Precision = None,
    device: Device = "auto",
    input_format: Annotated[
        InputFormat, typer.Option(help="auto: by suffix, .po .pot .xlf .xliff .tmx .tsv are documents, all else text.")
    ] = InputFormat.auto,
    ensemble: How = None,
    ensemble_weights: Shares = None,
    retranslate: Annotated[bool, typer.Option("--retranslate", help="Also what has a translation in the document.")] = False,
) -> None:
    """Translate text: N lines in, N lines out, in order; a blank line stays blank, a line that is too long is translated in parts.

    A document gets the translations that it lacks, marked as not yet reviewed; all else in it stays as it is.

    Examples:

    mt translate --model runs/demo --input test.en --output test.de

    echo "Good morning." | mt translate --model runs/demo

    mt translate --model runs/demo --input app.po --output app.de.po
    """
    if context.args:
        raise MTError(f"{context.args[0]}: a file goes behind its option: --input {context.args[0]}")
    alarm = Alarm(fail_on or [])
    sampling = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
    refuse_contradictions(
        beam=beam,
        greedy=greedy,
        sample=sample,
        sampling=sampling,
        mbr=mbr,
        utility=mbr_utility,
        comet_model=comet_model,
        alpha=length_penalty,
    )
    refuse_choosing(alternatives, {"--n-best": n_best if n_best and n_best > 1 else None, "--mbr": mbr})
    text_only = {"--n-best": n_best if n_best and n_best > 1 else None, "--format": output_format if output_format != Format.text else None}
    text_only["--alternatives"] = alternatives
    kind = document_kind(input_format, input_file, output_file, text_only=text_only, retranslate=retranslate)
    beside = [path for path in (prefix_file, ban, require, glossary) if path]
    refuse_same(output_file, input_file, *beside, *entries(model))
    wishes = asked(
        min_length=min_length,
        no_repeat_ngram=no_repeat_ngram,
        repetition_penalty=repetition_penalty,
        ban=ban,
        glossary=glossary,
        prefix_file=prefix_file,
        require=require,
        protect=protect,
        retry_loops=retry_loops,
        kind=kind,
    )
    refuse_uneven(input_file, prefix_file, require)
    if resume_output:
        refuse_resuming(input_file, output_file, document=kind is not None, fail_on=fail_on, by_line=prefix_file or require)
    # What is wrong with either is said before torch is loaded.
    with reading(input_file) as source, nowhere() if resume_output else writing(output_file) as file:
        from mt.formats.exchange import Kind, kind_of, open_document

        name = "<stdin>" if input_file == DASH else str(input_file)
        talking = input_file == DASH and sys.stdin.isatty()  # asked before a packed document is read, and stdin closed with it
        document = open_document(source(), name, kind) if kind else None
        from mt.config.directions import sources

        translator = load_models(
            model, how=ensemble, shares=ensemble_weights, checkpoint=checkpoint, device=device, precision=precision, weights=weights
        )
        from mt.translator import WINDOW

        tgt = translator.target(to).lang
        control = wishes.of_run(translator.config.decode, fail_on=fail_on or ())
        settings = search_settings(
            translator.config.decode,
            width=1 if greedy else beam,
            n_best=n_best,
            length_penalty=length_penalty,
            coverage_penalty=coverage_penalty,
            sampling={"temperature": temperature, "top_k": top_k, "top_p": top_p} if sample else None,
            mbr=mbr,
            utility=mbr_utility or "chrf",
            comet_model=comet_model,
        )
        refuse_format(output_format, n_best=n_best, alternatives=alternatives, alignment=alignment)
        search = partial(
            translator.stream,
            to=to,
            settings=settings,
            control=control,
            prefixes=wishes.prefixes,
            required=wishes.required,
            align=alignment,
            alternatives=alternatives or 0,
            batch_tokens=batch_tokens,
            seed=1 if seed is None else seed,
            window=1 if talking else WINDOW,
        )
        warned = partial(with_warnings, most=translator.config.data.max_pieces, alarm=alarm, control=control)
        if document:
            as_table = kind_of(output_file) is Kind.tsv
            known = sources(translator.config, to=tgt)
            how = {"retranslate": retranslate, "as_table": as_table, "protected": protects(control)}
            fill_in(document, file, search, warned, sources=known, tgt=tgt, **how)
        elif resume_output:
            from mt.synthesize.produce import told_apart

            about = [told_apart(run, checkpoint, precision=translator.precision, weights=weights) for run in model]
            asked_for = {"--to": to, "--seed": seed, "--ensemble": str(translator.engine.mix)}
            asked_for |= {"control": str(replace(control, banned=(), glossary=None))}
            asked_for |= {f"--{path.name}": sha256(path) for path in (ban, glossary) if path}
            asked_for |= {name: value for name, value in (("--alignment", alignment), ("--alternatives", alternatives)) if value}
            asked_for |= {"data.max_pieces": translator.config.data.max_pieces, "decode": str(translator.config.decode)}
            resumed(input_file, output_file, search, warned, output_format, about={"model": about, "search": str(settings), **asked_for})
        else:
            if talking:
                print("reading from the terminal, a sentence a line; Ctrl-D ends", file=sys.stderr)
            with progress(input_file, output_file) as bar:
                answer(Arriving(source, name), file, partial(search, done=bar.update), warned, output_format)
    alarm.end()


def refuse_contradictions(
    *,
    beam: int | None,
    greedy: bool,
    sample: bool,
    sampling: dict[str, float | int | None],
    mbr: int | None = None,
    utility: str | None = None,
    comet_model: str | None = None,
    alpha: float | None = None,
) -> None:
    """Raise MTError, in one line, for options that do not make sense together."""
    given = [name for name, value in sampling.items() if value is not None]
    if alpha is not None and not 0 <= alpha <= MAX_LENGTH_PENALTY:  # NaN is refused too, which typer's bounds let through
        raise MTError(f"--length-penalty {alpha:g}: should be from 0 to {MAX_LENGTH_PENALTY}")
    if greedy and beam not in (None, 1):
        raise MTError(f"--greedy and --beam {beam}: give one of the two")
    if sample and (greedy or beam):
        raise MTError(f"--sample and {'--greedy' if greedy else f'--beam {beam}'}: give one of the two")
    if given and not sample:
        raise MTError(f"{given[0]} goes with --sample: add it")
    if utility and not mbr:
        raise MTError(f"--mbr-utility {utility} goes with --mbr N, the number of candidates: add it")
    if comet_model and utility != "comet":
        raise MTError(f"--comet-model {comet_model} goes with --mbr-utility comet: add it")
    if mbr and greedy:
        raise MTError(f"--mbr {mbr} chooses among several, and greedy search has one: give --beam {mbr} or --sample")


def search_settings(
    of_run: DecodeConfig,
    *,
    width: int | None,
    n_best: int | None,
    length_penalty: float | None,
    coverage_penalty: float | None,
    sampling: Mapping[str, Any] | None,
    mbr: int | None,
    utility: Literal["chrf", "bleu", "comet"],
    comet_model: str | None = None,
) -> Beam | Sampling:
    """What was asked for, and what is left out as the run has it; with `mbr` so many candidates, of which `n_best` are kept."""
    from mt.decode.engine import Beam, Sampling
    from mt.decode.mbr import Mbr

    chosen = Mbr(utility, n_best or 1, comet_model) if mbr else None
    if chosen and mbr and chosen.n_best > mbr:
        raise MTError(f"--n-best {n_best} of --mbr {mbr}: ask for fewer, or give more candidates")
    if sampling is None:
        wide = max(width or of_run.beam, mbr) if mbr else width
        beam = Beam.build(of_run, width=wide, n_best=mbr or n_best, length_penalty=length_penalty, coverage_penalty=coverage_penalty)
        return replace(beam, mbr=chosen)
    if coverage_penalty:
        raise MTError(f"--coverage-penalty {coverage_penalty:g} ranks what a beam finished, and samples are not ranked: leave out one")
    given = {name: value for name, value in sampling.items() if value is not None}
    alpha = of_run.length_penalty if length_penalty is None else length_penalty
    return Sampling(**given, length_penalty=alpha, n_best=mbr or n_best or 1, mbr=chosen)
