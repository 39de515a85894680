"""`mt export`: a run as a model of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mt.cli.model_options import Checkpoint, WhichWeights
from mt.cli.proof_options import ProofRef, ProofSrc, ProofTo, Proven, Tolerance, prover, say
from mt.cli.remarks import waiting
from mt.cli.usage import Command, Group
from mt.errors import MTError

POSITIONAL: Any = {"cls": Command, "context_settings": {"allow_extra_args": True}}

export_app = typer.Typer(cls=Group, help="Write a run as a model of another program.", no_args_is_help=True)

Run = Annotated[Path, typer.Argument(readable=False, metavar="RUN", help="Run directory that `mt train` wrote.")]
Out = Annotated[Path, typer.Argument(readable=False, metavar="OUT", help="Folder for the model; must not be there yet, or be empty.")]


Average = Annotated[int | None, typer.Option(min=1, metavar="N", help="Instead of one checkpoint: the mean of the N newest.")]


@export_app.command(**POSITIONAL, short_help="For CTranslate2: fast on processors, without torch.")
def ct2(
    context: typer.Context,
    run: Run,
    out: Out,
    quantization: Annotated[
        Literal["int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"] | None,
        typer.Option(help="How the weights are kept.  [default: float32]"),
    ] = None,
    checkpoint: Checkpoint = "best",
    average: Average = None,
    weights: WhichWeights = None,
    proof: Proven = True,
    proof_src: ProofSrc = None,
    proof_ref: ProofRef = None,
    to: ProofTo = None,
    tolerance: Tolerance = None,
) -> None:
    """Write a run as a model of CTranslate2, which is fast on processors, with all that `mt translate` needs beside it.

    Before the folder gets its name, run and export translate a sample, greedily and with the run's beam: lines that are equal, BLEU and
    lines a second of both are told. If more lines differ than --tolerance allows, the command fails, and nothing is left.

    Examples:

    mt export ct2 runs/demo demo-ct2 --quantization int8

    mt translate --model demo-ct2 --input test.en
    """
    refuse_more(context)
    prove = prover(run, wanted=proof, src=proof_src, ref=proof_ref, to=to, tolerance=tolerance)
    waiting(f"exporting {run} for CTranslate2")
    from mt.export.ct2 import export

    export(run, out, checkpoint, average=average, weights=weights, quantization=quantization, prove=prove, say=say)


@export_app.command(**POSITIONAL, short_help="For the transformers library: loads with its Auto classes.")
def hf(
    context: typer.Context,
    run: Run,
    out: Out,
    checkpoint: Checkpoint = "best",
    average: Average = None,
    weights: WhichWeights = None,
    proof: Proven = True,
    proof_src: ProofSrc = None,
    proof_ref: ProofRef = None,
    to: ProofTo = None,
    tolerance: Tolerance = None,
) -> None:
    """Write a run as a folder that AutoModelForSeq2SeqLM and AutoTokenizer of the transformers library load, without code of ours.

    Pre-norm models become Pegasus, post-norm ones Marian; README.md in the folder says how to use it. Its fast tokenizer has to give the
    ids that the run's gives. Before the folder gets its name, run and export translate a sample, greedily and with the run's beam: lines
    that are equal, BLEU and lines a second of both are told. If more lines differ than --tolerance allows, the command fails, and nothing
    is left.

    Examples:

    mt export hf runs/demo demo-hf

    mt export hf runs/demo demo-hf --proof-src test.en --proof-ref test.de
    """
    refuse_more(context)
    prove = prover(run, wanted=proof, src=proof_src, ref=proof_ref, to=to, tolerance=tolerance)
    waiting(f"exporting {run} for transformers")
    from mt.export.hf import export

    export(run, out, checkpoint, average=average, weights=weights, prove=prove, say=say)


def refuse_more(context: typer.Context) -> None:
    """Raise MTError, in one line, for words after run and folder."""
    if context.args:
        raise MTError(f"{context.args[0]}: one run at a time: {context.command_path} RUN OUT")
