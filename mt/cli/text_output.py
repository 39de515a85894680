"""The text side of `mt translate`: how translations are written, and where."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mt.cli.streams import DASH, Arriving
from mt.errors import DataError, MTError
from mt.files import open_binary, sha256
from mt.unpack import CHUNK_BYTES

if TYPE_CHECKING:
    from tqdm import tqdm

    from mt.decode.translation import Translation
    from mt.search.step import Hypothesis


class Format(StrEnum):
    """How translations are written."""

    text = "text"
    jsonl = "jsonl"
    tsv = "tsv"


def refuse_format(output_format: Format, *, n_best: int | None, alternatives: int | None, alignment: bool) -> None:
    """Raise MTError, in one line, for what the format has no place for."""
    for name, value in ("--n-best", n_best), ("--alternatives", alternatives):
        if value and value > 1 and output_format is Format.text:
            raise MTError(f"{name} {value} needs --format jsonl or tsv: plain text is one translation a line")
    if alignment and output_format is not Format.jsonl:
        raise MTError(f"--alignment needs --format jsonl: {output_format} has no place for it")


def answer(
    lines: Arriving,
    file: BinaryIO,
    search: Callable[..., Iterable[Translation]],
    warned: Callable[..., Iterable[Translation]],
    output_format: Format,
) -> None:
    """Translate lines as they come."""
    for number, translation in enumerate(warned(search(lines, paused=lines.paused), places=count(1)), start=1):
        file.write(written(translation, number, output_format).encode("utf-8", "surrogateescape"))
        file.flush()  # who sends line by line waits for the answer


def written(translation: Translation, number: int, output_format: Format) -> str:
    """One line (tsv: one for each hypothesis; for a blank line one without score and text)."""
    match output_format:
        case Format.text:
            return translation.text + "\n"
        case Format.tsv:
            rows = [f"{number}\t{found.score:.6f}\t{text}\n" for text, found in translation.hypotheses]
            return "".join(rows) or f"{number}\t\t\n"
        case Format.jsonl:
            hypotheses = [as_json(text, found) for text, found in translation.hypotheses]
            for one, utility in zip(hypotheses, translation.utilities, strict=False):  # there are none without --mbr
                one["utility"] = utility
            record: dict[str, Any] = {"line": number, "source": translation.source}
            for one, alignment in zip(hypotheses, translation.alignments, strict=False):  # there are none without --alignment
                record["source_units"] = alignment.source
                one |= {"alignment": str(alignment), "units": alignment.target}
            for one, following in zip(hypotheses, translation.following, strict=False):  # there are none without --alternatives
                one |= {"next": following.piece, "next_probability": following.probability}
            record |= {"hypotheses": hypotheses, "flags": translation.flags}
            return json.dumps(record, ensure_ascii=False) + "\n"


def as_json(text: str, found: Hypothesis) -> dict[str, Any]:
    """One of the hypotheses of a line; `token_log_probs` are those of the ids and of EOS, `parts` is there for a line in parts."""
    scores = {"log_prob": found.log_prob, "score": found.score, "ids": found.ids, "token_log_probs": found.tokens}
    more = {"parts": found.parts, "coverage": found.coverage}  # told where there is such a thing
    return {"text": text, **scores, **{name: value for name, value in more.items() if value}}


def progress(source: Path, output: Path, *, before: int = 0) -> tqdm[Any]:
    """A bar on stderr, in a terminal, for a file whose translations do not run through the same terminal."""
    shown = sys.stderr.isatty() and source != DASH and not (output == DASH and sys.stdout.isatty())
    return lines_bar(line_count(source) if shown else None, shown=shown, before=before)


def lines_bar(total: int | None, *, shown: bool, before: int = 0) -> tqdm[Any]:
    """A bar on stderr for lines that are translated; it goes away at the end."""
    from tqdm import tqdm

    return tqdm(
        desc="translating", total=total, initial=before, unit=" lines", disable=not shown, dynamic_ncols=True, leave=False, delay=1.0
    )


def line_count(path: Path) -> int | None:
    """How many lines a file has; None for what can be read only once, or not at all."""
    if not path.is_file():
        return None
    try:
        with open_binary(path) as stream:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""))
    except DataError:  # it is said when the file is read
        return None


# ── an output that is gone on with ──────────────────────────────────────────────────────────────────────────────────


def nowhere() -> nullcontext[BinaryIO]:
    """In place of a file that is written otherwise."""
    return nullcontext(io.BytesIO())


def refuse_resuming(source: Path, output: Path, *, document: bool, fail_on: object, by_line: Path | None) -> None:
    """Raise MTError, in one line, where nothing can be gone on with."""
    from mt.synthesize.unfinished import refuse_place

    if document:
        raise MTError("--resume-output goes with plain text; a document that was interrupted is translated again")
    if not source.is_file():
        raise MTError(f"--resume-output needs --input FILE: {'<stdin>' if source == DASH else source} is read only once")
    if fail_on:
        raise MTError("--fail-on does not go with --resume-output, as it would not know the lines of the process before")
    if by_line:
        raise MTError(f"{by_line}: what is asked of each line does not go with --resume-output")
    refuse_place(output)


def resumed(
    source: Path,
    output: Path,
    search: Callable[..., Iterable[Translation]],
    warned: Callable[..., Iterable[Translation]],
    output_format: Format,
    *,
    about: Mapping[str, Any],
) -> None:
    """Translate into a file that a killed process goes on with; `about` is what else decides the lines."""
    from mt.synthesize.resumed import resume
    from mt.translator import WINDOW

    def records(lines: Iterable[str], first: int) -> Iterator[str]:
        with progress(source, output, before=first - 1) as bar:
            translations = search(lines, first_line=first, window=WINDOW, done=bar.update)
            for number, translation in enumerate(warned(translations, places=count(first)), start=first):
                yield written(translation, number, output_format).removesuffix("\n")

    settings = {**about, "--format": str(output_format), "input": f"the file of SHA-256 {sha256(source)}"}
    resume(output, settings, source, records, say=lambda line: print(line, file=sys.stderr, flush=True))
