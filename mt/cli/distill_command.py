"""`mt distill`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mt.clean.flags import MAX_RATIO, MAX_REPEATS
from mt.cli.model_options import BatchTokens, BeamWidth, Checkpoint, Device, Precision, To, WhichWeights
from mt.cli.models import entries, ready, warned
from mt.cli.streams import refuse_same
from mt.cli.synthesis_options import MaxRatio, MaxRepeats, Output, refuse_limits, say
from mt.errors import MTError


def distill(
    context: typer.Context,
    model: Annotated[Path, typer.Option(readable=False, metavar="RUN", help="Run of the teacher.")],
    src: Annotated[Path, typer.Option(readable=False, metavar="FILE", help="Source text that the student will be trained on.")],
    output_file: Output,
    tgt: Annotated[
        Path | None, typer.Option(readable=False, metavar="FILE", help="Its translation: the nearest of the teacher's is taken.")
    ] = None,
    n_best: Annotated[int | None, typer.Option(min=2, metavar="N", help="With --tgt: nearest of how many.  [default: the beam]")] = None,
    metric: Annotated[Literal["chrf", "bleu"] | None, typer.Option(help="With --tgt: near by which score.  [default: chrf]")] = None,
    checkpoint: Checkpoint = "best",
    to: To = None,
    beam: BeamWidth = None,
    max_ratio: MaxRatio = MAX_RATIO,
    max_repeats: MaxRepeats = MAX_REPEATS,
    batch_tokens: BatchTokens = None,
    weights: WhichWeights = None,
    precision: Precision = None,
    device: Device = "auto",
) -> None:
    """Let a large model translate training text, for a small one to be trained on its translations: N lines in, N lines out, in order.

    With --tgt, the one of the teacher's translations that is nearest to the given one, by sacreBLEU's score of the sentence.

    A translation that is empty, a copy, a loop, cut off or of a wild length becomes a blank line, which training leaves out; how many, and
    why, is told. Killed at any time, the same command goes on where it was, and comes to the same.

    Examples:

    mt distill --model runs/big --src train.en --output distilled.de

    mt distill --model runs/big --src train.en --tgt train.de --beam 8 --output near.de
    """
    if context.args:
        raise MTError(f"{context.args[0]}: a file goes behind its option: --src {context.args[0]}")
    given = {"--n-best": n_best, "--metric": metric}
    if not tgt and (alone := [name for name, value in given.items() if value]):
        raise MTError(f"{alone[0]} goes with --tgt, by which one of several translations is chosen: add it")
    refuse_limits(max_ratio=max_ratio, max_repeats=max_repeats)
    refuse_same(output_file, src, *([tgt] if tgt else []), *entries([model]))
    from mt.decode.engine import Beam
    from mt.synthesize.produce import Job, load_model, produce
    from mt.synthesize.unfinished import refuse_place

    refuse_place(output_file)
    ready([model])
    translator, about = load_model(model, checkpoint, device=device, precision=precision, weights=weights)
    warned(translator)
    width = beam or translator.config.decode.beam
    if tgt and width == 1:
        raise MTError("--tgt chooses among several translations, and greedy search has one: give --beam 2 or more")
    job = Job(
        made="tgt",
        given=src,
        search=Beam.build(translator.config.decode, width=width, n_best=(n_best or width) if tgt else 1),
        to=to,
        batch_tokens=batch_tokens,
        max_ratio=max_ratio,
        max_repeats=max_repeats,
        references=tgt,
        metric=metric or "chrf",
    )
    produce(job, output_file, translator, about, say=say)
