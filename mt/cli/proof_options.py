"""The options of every export that say what it is proven on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mt.cli.eval_sets import read_parallel
from mt.cli.remarks import waiting
from mt.cli.streams import DASH
from mt.errors import DataError, MTError
from mt.formats.pairs import counted

if TYPE_CHECKING:
    from mt.export.proof import Other, Prove, Sample
    from mt.translator import Translator

ProofSrc = Annotated[
    Path | None,
    typer.Option(readable=False, metavar="FILE", help="Text that run and export both translate.  [default: 200 lines of the dev set]"),
]
ProofRef = Annotated[Path | None, typer.Option(readable=False, metavar="FILE", help="References of --proof-src, for BLEU.")]
ProofTo = Annotated[str | None, typer.Option(metavar="LANG", help="Target language of --proof-src, for a model that has several.")]
Proven = Annotated[bool, typer.Option("--proof/--no-proof", help="Whether both translate a sample, and nothing is written if they differ.")]
Tolerance = Annotated[
    float | None,
    typer.Option(min=0, max=100, metavar="N", help="Lines that may differ, in per cent.  [default: 1 in float32, more in fewer bits]"),
]


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)


def prover(run: Path, *, wanted: bool, src: Path | None, ref: Path | None, to: str | None, tolerance: float | None) -> Prove | None:
    """What looks at an export before it gets its name; None where none is wanted, or where there is nothing to look at it with.

    Raises MTError, in one line, for options that do not make sense together, and for files that do not.
    """
    given = {"--proof-src": src, "--proof-ref": ref, "--to": to, "--tolerance": tolerance}
    if not wanted:
        if names := [name for name, value in given.items() if value is not None]:
            raise MTError(f"{names[0]} and --no-proof: give one of the two")
        return None
    if not src and (alone := next((name for name in ("--proof-ref", "--to") if given[name]), None)):
        raise MTError(f"{alone} goes with --proof-src FILE: add it")
    texts = read_parallel([path for path in (src, ref) if path]) if src else []
    if src and not any(line.strip() for line in texts[0]):
        raise DataError(f"{src}: has nothing to translate; give a file with some sentences, or --no-proof")

    def prove(native: Translator, other: Other) -> dict[str, Any] | None:
        from mt.export.proof import Sample, proven

        # Whoever gets the export need not know where its files lay.
        called = "<stdin>" if src == DASH else src.name if src else ""
        sample = Sample(texts[0], texts[1] if ref else None, called, to) if src else sample_of(run)
        if sample is None:
            say("proof: none, as there is neither the dev set of the run any more nor what it was trained on; give --proof-src FILE")
            return None
        waiting(f"proof: {counted(len(sample.lines), 'line')} of {sample.called}, translated by both")
        return proven(native, other, sample, tolerance=tolerance, say=say).as_json()

    return prove


def sample_of(run: Path) -> Sample | None:
    """Out of what is left of the data of a run."""
    from mt.export.proof import SAMPLE, Sample
    from mt.launch.probe import probe_of
    from mt.rundir import RunDir

    probe = probe_of(RunDir(run), SAMPLE)
    return probe and Sample([pair.src for pair in probe.pairs], [pair.tgt for pair in probe.pairs], probe.called, probe.to)
