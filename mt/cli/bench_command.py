"""`mt bench`: quality and speed of several searches with one model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from mt.cli.model_options import BatchTokens, Checkpoint, Device, To, WhichWeights
from mt.cli.models import Models, entries, load_models
from mt.cli.score_command import read_pairs
from mt.cli.streams import refuse_same
from mt.config.schema import DecodeConfig
from mt.errors import DataError, MTError
from mt.files import write_atomic

SYSTEM_NAMES = "greedy, beam-N, sample, rerank-N (of a beam), mbr-N (of samples)"


def bench(
    context: typer.Context,
    model: Models,
    src: Annotated[Path, typer.Option(readable=False, metavar="FILE", help="Source text, raw, also compressed.")],
    ref: Annotated[Path, typer.Option(readable=False, metavar="FILE", help="Its references, raw.")],
    systems: Annotated[
        str | None, typer.Option(metavar="LIST", help=f"Which, with commas: {SYSTEM_NAMES}.  [default: nine of them]")
    ] = None,
    precision: Annotated[
        Literal["auto", "fp32", "bf16", "fp16", "both"] | None,
        typer.Option(help="Numbers of the weights; both: fp32, then bf16.  [default: the run's]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Of sample and mbr-N.")] = 1,
    max_lines: Annotated[int | None, typer.Option(min=1, metavar="N", help="Use the first N lines only.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", readable=False, metavar="FILE", help="Write all, unrounded and with signatures, here too.")
    ] = None,
    checkpoint: Checkpoint = "best",
    to: To = None,
    batch_tokens: BatchTokens = None,
    weights: WhichWeights = None,
    device: Device = "auto",
) -> None:
    """Compare searches with one model: BLEU, chrF2 and lines a second of greedy search, beams, sampling, reranking and MBR.

    A line for each: seconds are those from text to text, loading the model is not in them. Other programs make them longer.

    Examples:

    mt bench --model runs/demo --src test.en --ref test.de

    mt bench --model runs/demo --src test.en --ref test.de --systems greedy,beam-5 --precision both --json bench.json
    """
    if context.args:
        raise MTError(f"{context.args[0]}: say what it is: --src FILE (source) or --ref FILE (references)")
    if json_file:
        refuse_same(json_file, src, ref, *entries(model))
    with write_atomic(json_file) if json_file else nullcontext() as file:  # what is wrong with a file is said before torch is loaded
        pairs = read_pairs(src, ref)[:max_lines]
        if not pairs:
            raise DataError(f"{src}: has no lines, so that there is nothing to compare")

        from mt.systems import SYSTEMS, Measured, measured, search_of

        found: list[Measured] = []
        chosen = SYSTEMS if systems is None else [name.strip() for name in systems.split(",")]
        for name in chosen:
            search_of(name, DecodeConfig())  # says so if there is none
        for numbers in ("fp32", "bf16") if precision == "both" else (precision,):
            translator = load_models(model, how=None, shares=None, checkpoint=checkpoint, device=device, precision=numbers, weights=weights)
            sources, references = zip(*pairs, strict=True)
            for one in measured(translator, sources, references, chosen, to=to, seed=seed, batch_tokens=batch_tokens):
                if not found:  # nothing is printed where the model cannot be asked
                    print(f"{'system':<12}{'numbers':<13}{'BLEU':>7}{'chrF2':>8}{'lines/s':>10}")
                bleu, chrf = one.scores.metrics
                print(f"{one.system:<12}{one.precision:<13}{bleu.score:>7.2f}{chrf.score:>8.2f}{one.lines_per_second:>10.2f}", flush=True)
                found.append(one)
        for metric in found[0].scores.metrics:
            print(f"{metric.name}  {metric.signature}")
        if file:
            about = {"model": [str(one) for one in model], "checkpoint": checkpoint, "source": str(src), "reference": str(ref)}
            json.dump({**about, "lines": len(pairs), "seed": seed, "systems": [one.as_json() for one in found]}, file, indent=1)
            file.write("\n")
