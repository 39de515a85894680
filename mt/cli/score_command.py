"""`mt score`: how probable a run finds translations that are there already."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mt.cli.model_options import BatchTokens, Checkpoint, Device, Precision, To, WhichWeights
from mt.cli.models import How, Models, Shares, entries, load_models
from mt.cli.streams import DASH, reading, refuse_same
from mt.config.schema import MAX_LENGTH_PENALTY
from mt.errors import DataError, MTError
from mt.files import decode_lines, read_lines, write_atomic
from mt.formats.pairs import counted

if TYPE_CHECKING:
    from mt.search.step import Hypothesis


def score(
    context: typer.Context,
    model: Models,
    src: Annotated[Path | None, typer.Option(readable=False, metavar="FILE", help="Source text, also compressed.")] = None,
    tgt: Annotated[Path | None, typer.Option(readable=False, metavar="FILE", help="Its translation: line n of one answers line n.")] = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", readable=False, metavar="FILE", help="Instead: what `mt translate --format jsonl` wrote; - is stdin."),
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(metavar="A", help="score = log-probability / length^A.  [default: the run's]")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", readable=False, metavar="FILE", help="Write all, unrounded and by token, here too.")
    ] = None,
    checkpoint: Checkpoint = "best",
    to: To = None,
    ensemble: How = None,
    ensemble_weights: Shares = None,
    batch_tokens: BatchTokens = None,
    weights: WhichWeights = None,
    precision: Precision = None,
    device: Device = "auto",
) -> None:
    """Give the log-probability of translations, natural, end of sentence included, and score = log-probability / length^A.

    A line for each translation: number of its line, log-probability, score (a blank line has neither); the perplexity of all comes last,
    on stderr. With --input the ids in the file are scored, not their text cut anew: they are what `mt translate` reported.

    Examples:

    mt score --model runs/demo --src test.en --tgt test.de

    mt translate --model runs/demo --input test.en --format jsonl | mt score --model runs/demo --input -
    """
    if context.args:
        raise MTError(f"{context.args[0]}: say what it is: --src FILE (source), --tgt FILE (translation) or --input FILE (both, as jsonl)")
    if (input_file is None) != (src is not None and tgt is not None) or (input_file and (src or tgt)):
        raise MTError("nothing to score: give --src FILE --tgt FILE, or --input FILE that `mt translate --format jsonl` wrote")
    if length_penalty is not None and not 0 <= length_penalty <= MAX_LENGTH_PENALTY:
        raise MTError(f"--length-penalty {length_penalty:g}: should be from 0 to {MAX_LENGTH_PENALTY}")
    if json_file:
        refuse_same(json_file, *(path for path in (src, tgt, input_file) if path), *entries(model))
    # What is wrong with a file is said before torch is loaded.
    with write_atomic(json_file) if json_file else nullcontext() as file, reading(input_file) if input_file else nullcontext() as source:
        pairs = read_pairs(src, tgt) if src and tgt else []

        translator = load_models(
            model, how=ensemble, shares=ensemble_weights, checkpoint=checkpoint, device=device, precision=precision, weights=weights
        )
        from mt.scorer import of_records, of_texts, scored

        name = "<stdin>" if input_file == DASH else str(input_file)
        candidates = of_records(translator, decode_lines(source(), name), name, to=to) if source else of_texts(translator, pairs, to=to)
        found: list[tuple[int, Hypothesis]] = []
        for line, one in scored(translator, candidates, length_penalty=length_penalty, batch_tokens=batch_tokens):
            print(f"{line}\t{one.log_prob:.6f}\t{one.score:.6f}" if one else f"{line}\t\t")
            if one:
                found.append((line, one))
        about = summary([one for _, one in found])
        print(
            "perplexity {perplexity:.4f}: log-probability {log_prob:.2f} of {tokens} tokens, ends included".format(**about), file=sys.stderr
        )
        if file:
            translations = [
                {"line": line, "log_prob": one.log_prob, "score": one.score, "ids": one.ids, "token_log_probs": one.tokens}
                for line, one in found
            ]
            json.dump(
                {**about, "model": [str(one) for one in model], "checkpoint": checkpoint, "translations": translations}, file, indent=1
            )
            file.write("\n")


def summary(found: list[Hypothesis]) -> dict[str, Any]:
    """What all translations come to."""
    from mt.scorer import perplexity

    tokens, log_prob = sum(len(one.tokens) for one in found), sum(one.log_prob for one in found)
    return {"perplexity": perplexity(found), "log_prob": log_prob, "tokens": tokens}


def read_pairs(src: Path, tgt: Path) -> list[tuple[str, str]]:
    """The lines of both files. Raises DataError where there are more of one."""
    sides = [list(read_lines(path)) for path in (src, tgt)]
    if len(sides[0]) != len(sides[1]):
        counts = f"{src} has {counted(len(sides[0]), 'line')}, {tgt} has {len(sides[1])}"
        raise DataError(f"{counts}: line n of one must answer line n of the other")
    return list(zip(*sides, strict=True))
