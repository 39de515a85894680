"""`mt backtranslate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mt.clean.flags import MAX_RATIO, MAX_REPEATS
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
from mt.cli.models import entries, ready, warned
from mt.cli.streams import refuse_same
from mt.cli.synthesis_options import MaxRatio, MaxRepeats, Output, refuse_limits, say
from mt.cli.translate_command import refuse_contradictions
from mt.errors import MTError


def backtranslate(
    context: typer.Context,
    model: Annotated[Path, typer.Option(readable=False, metavar="RUN", help="Run of the reverse model: from your target language.")],
    input_file: Annotated[
        Path,
        typer.Option("--input", readable=False, metavar="FILE", help="Text in your target language, a sentence a line, also compressed."),
    ],
    output_file: Output,
    checkpoint: Checkpoint = "best",
    to: To = None,
    beam: BeamWidth = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    max_ratio: MaxRatio = MAX_RATIO,
    max_repeats: MaxRepeats = MAX_REPEATS,
    batch_tokens: BatchTokens = None,
    weights: WhichWeights = None,
    precision: Precision = None,
    device: Device = "auto",
) -> None:
    """Translate text in your target language back, to have more pairs to train on: N lines in, N lines out, in order.

    A translation that is empty, a copy, a loop, cut off or of a wild length becomes a blank line, which training leaves out; how many, and
    why, is told. Killed at any time, the same command goes on where it was, and comes to the same.

    Train on it with {src: back.en, tgt: mono.de, synthetic: true} among data.train.

    Examples:

    mt backtranslate --model runs/de-en --input mono.de --output back.en

    mt backtranslate --model runs/de-en --input mono.de.gz --output back.en.gz --sample --top-k 10
    """
    if context.args:
        raise MTError(f"{context.args[0]}: a file goes behind its option: --input {context.args[0]}")
    sampling = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
    refuse_contradictions(beam=beam, greedy=False, sample=sample, sampling=sampling)
    refuse_limits(max_ratio=max_ratio, max_repeats=max_repeats)
    refuse_same(output_file, input_file, *entries([model]))
    from mt.decode.engine import Beam, Sampling
    from mt.synthesize.produce import Job, load_model, produce
    from mt.synthesize.unfinished import refuse_place

    refuse_place(output_file)
    ready([model])
    translator, about = load_model(model, checkpoint, device=device, precision=precision, weights=weights)
    warned(translator)
    search: Beam | Sampling = Beam.build(translator.config.decode, width=beam, n_best=1)
    if sample:
        search = Sampling(temperature=1.0 if temperature is None else temperature, top_k=top_k or 0, top_p=1.0 if top_p is None else top_p)
    job = Job(
        made="src",
        given=input_file,
        search=search,
        to=to,
        batch_tokens=batch_tokens,
        seed=1 if seed is None else seed,
        max_ratio=max_ratio,
        max_repeats=max_repeats,
    )
    produce(job, output_file, translator, about, say=say)
