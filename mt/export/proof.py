"""The proof of an export: a sample, translated by the run and by the program that the model was written for, side by side.

Which program it is, is not known here: `Other` is all that is asked of it. Compared are texts, as a user gets them, and where the program
tells them the log-probabilities of what may come first, before anything is suppressed. Legend: B sentences, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from mt.constraints.control import Control
from mt.decode.engine import Beam, ModelStep
from mt.errors import RunError
from mt.evaluate.layout import columns
from mt.evaluate.metrics import score
from mt.formats.pairs import counted
from mt.formats.placeholders import Protected
from mt.translator import Translator

SAMPLE = 200
"""Lines of a sample, unless all of a file are asked for."""
WARM = 8
"""Lines that are translated beforehand, as the first of a process wait for memory and kernels."""
FIRST_STEPS = 32
"""Sentences whose first step is compared."""
SHOWN = 3
"""Of lines that differ, so many are shown."""
CLOSE = 1e-3
"""In float32, log-probabilities of the first step that are further apart than this are no rounding."""

POOR_BLEU = 20.0
"""A run whose own BLEU on the sample is less is unsure of most lines: other numbers, other choices."""

OTHERWISE = "the export does not translate as the run does"

PLAIN = Control(protect=Protected(()), retry_loops=False)
"""What a run asks for beside the search is its own, and no part of the comparison."""

Say = Callable[[str], object]


class Sample(NamedTuple):
    """What is translated."""

    lines: list[str]
    references: list[str] | None
    called: str
    """What it is, as in `valid.en (dev set)`."""
    to: str | None = None
    """Target language, for a model that has several."""


class Other(Protocol):
    """A model in the program that it was exported for, loaded."""

    called: str
    """The program and its numbers, as in `CTranslate2 4.8.5, int8`."""
    tolerance: float
    """Per cent of the lines that may come out otherwise, for the numbers the model is in."""
    exact: bool
    """Whether these are float32, so that nothing differs but rounding."""

    def translate(self, lines: Sequence[str], search: Beam, *, to: str | None) -> list[str]:
        """One text a line, by the same search: width 1 is greedy. What is asked for beside it is the default."""
        ...

    def first_step(self, lines: Sequence[str], *, to: str | None) -> NDArray[np.float32] | None:
        """Log-probabilities (B, V) of the first piece of each line's translation, nothing suppressed; None where they are not told."""
        ...


Prove = Callable[[Translator, Other], dict[str, Any] | None]
"""What looks at an export before it has its name, and tells what it saw, if anything; it raises an error where that will not do."""


@dataclass(frozen=True)
class Compared:
    """One search of both."""

    search: str
    lines: int
    differing: list[tuple[int, str, str]]
    """Number of the line, ours, theirs."""
    seconds: tuple[float, float]
    bleu: tuple[float, float] | None

    @property
    def equal(self) -> int:
        """Lines that are the same."""
        return self.lines - len(self.differing)

    @property
    def speeds(self) -> tuple[float, float]:
        """Lines a second."""
        return self.lines / self.seconds[0], self.lines / self.seconds[1]


@dataclass(frozen=True)
class Proof:
    """What came of it."""

    sample: str
    other: str
    searches: list[Compared]
    apart: float | None
    """The largest difference of a log-probability of the first step."""
    tolerance: float
    exact: bool

    def lines(self) -> Iterator[str]:
        """For the user."""
        yield f"proof: {counted(self.searches[0].lines, 'line')} of {self.sample}, translated by the run and by {self.other}"
        scored = self.searches[0].bleu is not None
        rows = [["search", "equal", *(["BLEU run", "export", "difference"] if scored else []), "lines/s run", "export"]]
        for one in self.searches:
            scores = [f"{one.bleu[0]:.2f}", f"{one.bleu[1]:.2f}", f"{one.bleu[1] - one.bleu[0]:+.2f}"] if one.bleu else []
            rows.append([one.search, f"{one.equal} of {one.lines}", *scores, *(f"{speed:.1f}" for speed in one.speeds)])
        yield from columns(rows)
        if self.apart is not None:
            yield f"log-probabilities of the first piece: {self.apart:.2g} apart at most"
        for one in self.searches:
            for number, ours, theirs in one.differing[:SHOWN]:
                yield f"{one.search}, line {number}: {ours!r} became {theirs!r}"

    def failure(self) -> str | None:
        """Why the export is not to be used, or None."""
        miscomputed = self.exact and self.apart is not None and not self.apart <= CLOSE
        for one in self.searches:
            if 100 * len(one.differing) > self.tolerance * one.lines:
                what = f"{one.search}: {len(one.differing)} of {counted(one.lines, 'line')} differ, more than {self.tolerance:g} %"
                if not miscomputed and one.bleu and one.bleu[0] < POOR_BLEU:
                    return f"not exported: {what}; {self._poor(one.bleu[0])}"
                return f"{OTHERWISE}: {what}"
        if miscomputed:
            return f"{OTHERWISE}: the log-probabilities of the first piece are {self.apart:.2g} apart, more than {CLOSE:g}"
        return None

    def _poor(self, bleu: float) -> str:
        """What to say of a run that rounding tips over, and what helps."""
        finer = "" if self.exact else ", or export it in float32 (--quantization)"
        why = "and outputs of such a model flip at the smallest rounding"
        return f"the run itself translates poorly so far (BLEU {bleu:.2f} here), {why}: train it longer{finer}"

    def as_json(self) -> dict[str, Any]:
        """Unrounded, for whoever gets the folder."""
        searches = [
            {
                "search": one.search,
                "lines": one.lines,
                "equal": one.equal,
                **({"bleu": {"run": one.bleu[0], "export": one.bleu[1]}} if one.bleu else {}),
                "lines_per_second": dict(zip(("run", "export"), one.speeds, strict=True)),
            }
            for one in self.searches
        ]
        return {"sample": self.sample, "by": self.other, "tolerance": self.tolerance, "first_step_apart": self.apart, "searches": searches}


def proven(native: Translator, other: Other, sample: Sample, *, tolerance: float | None, say: Say) -> Proof:
    """Translate a sample by both, greedily and with the run's beam, and tell what came of it.

    `tolerance`: per cent of the lines that may differ; None: as the numbers of the model suggest. Raises RunError where more do.
    """
    widths = dict.fromkeys((1, native.config.decode.beam))
    found = Proof(
        sample.called,
        other.called,
        [compared(native, other, sample, width=width) for width in widths],
        first_steps_apart(native, other, sample),
        other.tolerance if tolerance is None else tolerance,
        other.exact,
    )
    for line in found.lines():
        say(line)
    if why := found.failure():
        raise RunError(f"{why}; --tolerance N lets N per cent differ, --no-proof asks nothing")
    return found


def compared(native: Translator, other: Other, sample: Sample, *, width: int) -> Compared:
    """The sample by one search, ours first; each has translated a few lines before it is timed."""
    cfg = native.config.decode
    search = Beam(width, length_penalty=cfg.length_penalty, patience=cfg.patience if width > 1 else 1.0)

    def ours(lines: Sequence[str]) -> list[str]:
        return [one.text for one in native.translate(lines, settings=search, control=PLAIN, to=sample.to)]

    def theirs(lines: Sequence[str]) -> list[str]:
        return other.translate(lines, search, to=sample.to)

    outputs, seconds = [], []
    for translate in ours, theirs:
        translate(sample.lines[:WARM])
        begun = time.perf_counter()
        outputs.append(translate(sample.lines))
        seconds.append(time.perf_counter() - begun)
    pairs = enumerate(zip(*outputs, strict=True), start=1)
    bleu = None
    if sample.references is not None:
        lang = native.target(sample.to).lang
        one, two = (score(texts, [sample.references], lang=lang, metrics=("bleu",))["bleu"].score for texts in outputs)
        bleu = one, two
    differing = [(number, a, b) for number, (a, b) in pairs if a != b]
    return Compared("greedy" if width == 1 else f"beam {width}", len(sample.lines), differing, (seconds[0], seconds[1]), bleu)


def first_steps_apart(native: Translator, other: Other, sample: Sample) -> float | None:
    """The largest difference of a log-probability of a first piece, in the first sentences that are translated whole."""
    lines = [line for line, parts in zip(sample.lines, native.encoded(sample.lines), strict=True) if len(parts) == 1][:FIRST_STEPS]
    theirs_BV = other.first_step(lines, to=sample.to) if lines else None
    if theirs_BV is None:
        return None
    ours_BV = first_step(native, lines, to=sample.to)
    return float(np.abs(ours_BV - theirs_BV).max())


@torch.inference_mode()
def first_step(native: Translator, lines: Sequence[str], *, to: str | None = None) -> NDArray[np.float32]:
    """Log-probabilities (B, V) of the first piece of each line's translation, over the whole vocabulary; of lines in one part each."""
    src, tgt = native.tokenizers
    prefix, device = native.target(to).prefix, native.engine.device
    step = ModelStep(native.model, device)
    state = step.start([[*prefix, *parts[0], src.eos] for parts in native.encoded(lines)], pad=src.pad)
    logp_BV, _ = step(torch.full((len(lines),), tgt.bos), state)
    found: NDArray[np.float32] = logp_BV.float().cpu().numpy()
    return found
