"""Lines that a model makes of lines: N of N, in windows, those that are no use left blank. Training drops such pairs, and counts them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from mt.checkpoint import Weights, weights_file
from mt.clean.filters import TextFilters
from mt.clean.flags import MAX_RATIO, MAX_REPEATS
from mt.clean.tally import Tally
from mt.config.cleaning import FilterConfig
from mt.config.directions import sources
from mt.config.languages import differs, language, quoted
from mt.data.meter import Meter, Say
from mt.decode.engine import Beam, Sampling
from mt.decode.translation import Translation
from mt.errors import DataError
from mt.evaluate.metrics import closeness_by
from mt.files import read_lines, sha256
from mt.formats.pairs import Pair, counted
from mt.rundir import ExportDir, RunDir
from mt.synthesize.unfinished import Unfinished, unfinished
from mt.translator import WINDOW, Translator

CUT_OFF = "ended by the length limit"
"""Why a translation is of no use that would have gone on: most of them are loops."""

Choose = Callable[[Translation, str], tuple[str, bool]]
"""Takes a text of a translation, given the reference; True: the length limit ended it."""


@dataclass(frozen=True)
class Job:
    """What is made of what, and how; all that decides the lines."""

    made: Literal["src", "tgt"]
    """The side of the training pairs that is made here."""
    given: Path
    """The other side."""
    search: Beam | Sampling
    to: str | None = None
    batch_tokens: int | None = None
    seed: int = 1
    max_ratio: float = MAX_RATIO
    """Longest side / shortest side of a pair that is of use, in characters."""
    max_repeats: float = MAX_REPEATS
    """Share of n-grams that may have come before; in a loop it is near 1."""
    references: Path | None = None
    """Of several hypotheses the one nearest to the reference is taken, where there are references."""
    metric: str = "chrf"
    """How near."""

    def settings(self, translator: Translator, model: str) -> dict[str, Any]:
        """By the names that the user knows."""
        cfg = translator.config
        return {
            "model": model,
            "search": str(self.search),
            "--to": self.to,
            "--seed": self.seed,
            "--batch-tokens": self.batch_tokens or cfg.decode.batch_tokens,
            "--max-ratio": self.max_ratio,
            "--max-repeats": self.max_repeats,
            "--metric": self.metric if self.references else None,
            "input": f"the file of SHA-256 {sha256(self.given)}",
            "references": f"the file of SHA-256 {sha256(self.references)}" if self.references else None,
            "data.max_pieces": cfg.data.max_pieces,
            "decode.max_length_factor": cfg.decode.max_length_factor,
            "decode.max_length_extra": cfg.decode.max_length_extra,
        }


def load_model(run: Path, checkpoint: str, *, device: str, precision: str | None, weights: Weights | None) -> tuple[Translator, str]:
    """A model, and what tells it from others."""
    name = checkpoint if ExportDir(run).is_there() else RunDir(run).find(checkpoint).name
    translator = Translator.load(run, name, device=device, precision=precision, weights=weights)
    return translator, told_apart(run, name, precision=translator.precision, weights=weights)


def told_apart(run: Path, checkpoint: str, *, precision: str, weights: Weights | None) -> str:
    """What tells a model from others."""
    if (exported := ExportDir(run)).is_there():
        return f"{exported.path.name} (weights of SHA-256 {sha256(exported.weights)}, in {precision})"
    path = RunDir(run).find(checkpoint)
    return f"{path.name} (weights of SHA-256 {sha256(weights_file(path, weights))}, in {precision})"


def produce(job: Job, output: Path, translator: Translator, model: str, *, say: Say) -> None:
    """Make the file, or go on where a process was killed that was making it; say what became of the lines.

    Raises DataError where it was begun with another model, input or options.
    """
    refuse_inputs(job)
    reason = TextFilters(FilterConfig(copies=True, max_ratio=job.max_ratio, max_repeats=job.max_repeats), None)
    target = translator.target(job.to).lang
    choose = chooser(job, lang=target)
    if stranger := wrong_language(job, sources(translator.config, to=target)):
        say(f"warning: {stranger}")
    with (
        unfinished(output, job.settings(translator, model)) as work,
        closing(Meter("translating", say)) as meter,
        told_if_interrupted(work, say=say),
    ):
        if work.lines:
            say(f"{output}: goes on after {counted(work.lines, 'line')}")
        rows = islice(rows_of(job), work.lines, None)
        while window := list(islice(rows, WINDOW)):
            lines, tally = [], Tally()
            found = translator.stream(
                [line for line, _ in window],
                to=job.to,
                settings=job.search,
                batch_tokens=job.batch_tokens,
                seed=job.seed,
                window=WINDOW,
                first_line=work.lines + 1,
            )
            for number, ((line, reference), translation) in enumerate(zip(window, found, strict=True), start=work.lines + 1):
                text, cut_off = choose(translation, reference)
                pair = Pair(*((text, line) if job.made == "src" else (line, text)), f"{job.given.name}:{number}")
                why = CUT_OFF if cut_off else reason(pair)
                tally.add(why, pair.origin, *pair.sides)
                lines.append("" if why else text)
            work.add(lines, tally)
            meter.add(len(window))
        work.finish()
    say(work.tally.line(output.name))
    for why, dropped in work.tally.examples.items():
        say(f"  {why}: blank, as of {', '.join(one.origin for one in dropped)}")


@contextmanager
def told_if_interrupted(work: Unfinished, *, say: Say) -> Iterator[None]:
    """Within, whoever ends the process is told that nothing is lost."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        say(f"{work.output}: {counted(work.lines, 'line')} done; the same command goes on from there")
        raise


def wrong_language(job: Job, known: Collection[str]) -> str | None:
    """What is wrong where the file, by its name, is in another language than those that the model translates from."""
    code = language(job.given.name)
    if not code or not differs(code, known):
        return None
    which = "the reverse model, which translates from the language of your text" if job.made == "src" else "the right model"
    return f"by its name {job.given} is in {code!r}, but the model translates from {quoted(known)}: is it {which}?"


def rows_of(job: Job) -> Iterator[tuple[str, str]]:
    """The lines that are translated, each with its reference, which is blank where there are none."""
    lines = read_lines(job.given)
    yield from zip(lines, read_lines(job.references), strict=True) if job.references else ((line, "") for line in lines)


def refuse_inputs(job: Job) -> None:
    """Raise DataError, before hours of work, for a pipe, for text that cannot be read, and where there are not as many references."""
    paths = [job.given, *([job.references] if job.references else [])]
    for path in paths:
        if path == Path("-") or (path.exists() and not path.is_file() and not path.is_dir()):
            raise DataError(f"{path}: is a pipe or device, and is read more than once; write it to a file")
    counts = [sum(1 for _ in read_lines(path)) for path in paths]
    if counts[0] != counts[-1]:
        what = f"{job.given} has {counts[0]} lines, {job.references} has {counts[1]}"
        raise DataError(f"{what}: line n of one must answer line n of the other")


def chooser(job: Job, *, lang: str | None) -> Choose:
    """The best hypothesis, or the one nearest to the reference; one that the length limit ended only where there is no other."""
    closeness = closeness_by(job.metric, lang=lang)

    def choose(translation: Translation, reference: str) -> tuple[str, bool]:
        found = [one for one in translation.hypotheses if not one[1].truncated] or translation.hypotheses
        if not found:
            return "", False
        text, hypothesis = max(found, key=lambda one: closeness(one[0], reference)) if reference.strip() else found[0]
        return text, hypothesis.truncated

    return choose
