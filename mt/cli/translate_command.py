"""`mt translate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from mt.decode.engine import Beam, Sampling
    from mt.translator import Translation, Translator

STDIN = Path("-")


class Format(StrEnum):
    """How translations are written."""

    text = "text"
    jsonl = "jsonl"
    tsv = "tsv"


def translate(
    model: Annotated[Path, typer.Option("--model", metavar="RUN", help="Run directory that `mt train` wrote.")],
    checkpoint: Annotated[str, typer.Option("--checkpoint", metavar="C", help="best, last, average, or a number of updates.")] = "best",
    input_file: Annotated[Path, typer.Option("--input", metavar="FILE", help="Text, one sentence a line, also compressed; - is stdin.")] = STDIN,
    output_file: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Instead of stdout; written whole or not at all.")] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, metavar="N", help="Beam width, instead of the run's decode.beam.")] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="The same as --beam 1.")] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching for the best.")] = False,
    temperature: Annotated[float | None, typer.Option("--temperature", metavar="T", help="Below 1 sharpens, above flattens; 0 is greedy.")] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", metavar="K", help="Sample from the K most probable tokens; 0 is all.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", metavar="P", help="Sample from the fewest tokens with this probability.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of sampling; a line's sample does not depend on the batch.")] = None,
    length_penalty: Annotated[
        float | None,
        typer.Option("--length-penalty", metavar="A", min=0, help="score = log-probability / length^A: larger favours longer translations."),
    ] = None,
    n_best: Annotated[int | None, typer.Option("--n-best", min=1, metavar="N", help="Translations for each line; jsonl and tsv only.")] = None,
    batch_tokens: Annotated[int | None, typer.Option("--batch-tokens", min=1, metavar="N", help="Rows × longest source of a batch.")] = None,
    output_format: Annotated[Format, typer.Option("--format", help="text; jsonl with scores; tsv: line, score, text.")] = Format.text,
    weights: Annotated[str | None, typer.Option("--weights", metavar="raw|ema", help="Which weights; the moving average if there is one.")] = None,
    precision: Annotated[str, typer.Option("--precision", metavar="P", help="fp32, bf16 or fp16.")] = "fp32",
    device: Annotated[str, typer.Option("--device", metavar="D", help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Translate text: N lines in, N lines out, in order; a blank line stays blank, a line that is too long is translated in parts.

    Examples:

    mt translate --model runs/demo --input test.en --output test.de

    echo "Good morning." | mt translate --model runs/demo
    """
    from mt.files import decode_lines, read_lines
    from mt.translator import Translator

    sampling = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
    refuse_contradictions(beam=beam, greedy=greedy, sample=sample, sampling=sampling, n_best=n_best, output_format=output_format)
    lines = decode_lines(sys.stdin.buffer, "<stdin>") if input_file == STDIN else read_lines(input_file)
    translator = Translator.load(model, checkpoint, device=device, precision=precision, weights=weights)  # type: ignore[arg-type]
    settings: Beam | Sampling
    if sample:
        settings = sampling_settings(translator, temperature=temperature, top_k=top_k, top_p=top_p, length_penalty=length_penalty)
    else:
        settings = beam_settings(translator, width=1 if greedy else beam, n_best=n_best, length_penalty=length_penalty)
    terminal = input_file == STDIN and sys.stdin.isatty()
    options = {"window": 1} if terminal else {}
    found = translator.stream(lines, settings=settings, batch_tokens=batch_tokens, seed=seed or 1, **options)
    with opened(output_file) as file:
        for number, translation in enumerate(warned(found, translator), start=1):
            file.write(written(translation, number, output_format))
            if terminal:
                file.flush()


def refuse_contradictions(
    *, beam: int | None, greedy: bool, sample: bool, sampling: dict[str, float | int | None], n_best: int | None, output_format: Format
) -> None:
    """Raise MTError, in one line, for options that do not make sense together."""
    from mt.errors import MTError

    given = [name for name, value in sampling.items() if value is not None]
    if greedy and beam not in (None, 1):
        raise MTError(f"--greedy and --beam {beam}: give one of the two")
    if sample and (greedy or beam):
        raise MTError("--sample and a beam: give one of the two")
    if given and not sample:
        raise MTError(f"{given[0]} goes with --sample: add it")
    if n_best and n_best > 1 and output_format is Format.text:
        raise MTError(f"--n-best {n_best} needs --format jsonl or tsv: plain text is one translation a line")
    if n_best and n_best > 1 and sample:
        raise MTError("--n-best goes with beam search, not with --sample")


def beam_settings(translator: Translator, *, width: int | None, n_best: int | None, length_penalty: float | None) -> Beam:
    """The run's settings, less what the options change. Raises DecodeError if more translations are asked for than the beam holds."""
    from dataclasses import replace

    from mt.decode.beam import hypotheses_wanted
    from mt.decode.engine import Beam

    settings = Beam.build(translator.config.decode)
    if width is not None:
        settings = replace(settings, width=width, patience=settings.patience if width > 1 else 1.0, n_best=min(settings.n_best, width))
    if n_best is not None:
        settings = replace(settings, n_best=n_best)
    if length_penalty is not None:
        settings = replace(settings, length_penalty=length_penalty)
    hypotheses_wanted(settings.width, patience=settings.patience, n_best=settings.n_best, length_penalty=settings.length_penalty)
    return settings


def sampling_settings(
    translator: Translator, *, temperature: float | None, top_k: int | None, top_p: float | None, length_penalty: float | None
) -> Sampling:
    """What the options ask for. Raises DecodeError for values out of range."""
    from mt.decode.engine import Sampling
    from mt.decode.sample import refuse_settings

    settings = Sampling(
        temperature=1.0 if temperature is None else temperature,
        top_k=top_k or 0,
        top_p=1.0 if top_p is None else top_p,
        length_penalty=translator.config.decode.length_penalty if length_penalty is None else length_penalty,
    )
    refuse_settings(settings.temperature, top_k=settings.top_k, top_p=settings.top_p)
    return settings


@contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """The output file, or stdout."""
    from mt.files import write_atomic

    if path is None or path == STDIN:
        yield sys.stdout
        return
    with write_atomic(path) as file:
        yield file


def written(translation: Translation, number: int, output_format: Format) -> str:
    """One line (tsv: one for each hypothesis; a blank one for a blank line)."""
    match output_format:
        case Format.text:
            return translation.text + "\n"
        case Format.tsv:
            rows = [f"{number}\t{found.score:.6f}\t{text}\n" for text, found in translation.hypotheses]
            return "".join(rows) or f"{number}\t0\t\n"
        case Format.jsonl:
            hypotheses = [
                {"text": text, "log_prob": found.log_prob, "score": found.score, "ids": found.ids} for text, found in translation.hypotheses
            ]
            record = {"line": number, "source": translation.source, "hypotheses": hypotheses, "flags": translation.flags}
            return json.dumps(record, ensure_ascii=False) + "\n"


def warned(translations: Iterable[Translation], translator: Translator) -> Iterator[Translation]:
    """The same translations; what users should know about them goes to stderr."""
    truncated, unknown, unknown_lines = [], 0, 0
    tokenizer = translator.tokenizers.src
    for number, translation in enumerate(translations, start=1):
        if "split" in translation.flags:
            most = translator.config.data.max_pieces
            print(f"warning: line {number}: longer than {most} pieces (data.max_pieces), translated in parts", file=sys.stderr)
        if "truncated" in translation.flags:
            truncated.append(number)
        count = tokenizer.encode(translation.source).count(tokenizer.unk)
        unknown += count
        unknown_lines += bool(count)
        yield translation
    if unknown:
        print(f"warning: {unknown} unknown in {unknown_lines} lines: characters that the tokenizer never saw", file=sys.stderr)
    if truncated:
        print(f"warning: {len(truncated)} translations ended by the length limit (first: line {truncated[0]})", file=sys.stderr)
