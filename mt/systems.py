"""Ways to search with one model, side by side: how good what comes out is, and how fast it comes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mt.config.schema import DecodeConfig
from mt.config.stage import MAX_BEAM
from mt.decode.engine import Beam, Sampling
from mt.decode.mbr import Mbr
from mt.errors import DecodeError
from mt.evaluate.metrics import Scores, score
from mt.translator import Translator

SYSTEMS = ("greedy", "beam-1", "beam-4", "beam-5", "beam-10", "sample", "rerank-10", "mbr-16", "mbr-64")
"""Those that are compared if none are named."""
WARM = 8
"""Lines that are translated beforehand: the first batch of a process waits for memory and kernels."""


@dataclass(frozen=True)
class Measured:
    """One system in one precision."""

    system: str
    precision: str
    scores: Scores
    seconds: float
    """Text in, text out; loading and scoring are not in it."""

    @property
    def lines_per_second(self) -> float:
        """Speed."""
        return self.scores.lines / self.seconds

    def as_json(self) -> dict[str, Any]:
        """Unrounded."""
        about = {"system": self.system, "precision": self.precision, "seconds": self.seconds, "lines_per_second": self.lines_per_second}
        return about | {"metrics": [asdict(one) for one in self.scores.metrics], "lines": self.scores.lines}


def search_of(system: str, cfg: DecodeConfig) -> Beam | Sampling:
    """What a name asks for; the rest is the run's. Raises DecodeError for a name that there is not.

    greedy · beam-W · sample · rerank-N: of the N best of a beam the one nearest to all · mbr-N: the same of N samples.
    """
    kind, _, number = system.partition("-")
    n = int(number) if number.isdecimal() and number.isascii() and len(number) < 5 else 0
    match kind:
        case "greedy" if not number:
            return Beam.build(cfg, width=1, n_best=1)
        case "beam" if 0 < n <= MAX_BEAM:
            return Beam.build(cfg, width=n, n_best=1)
        case "sample" if not number:
            return Sampling(length_penalty=cfg.length_penalty)
        case "rerank" if 1 < n <= MAX_BEAM:
            return replace(Beam.build(cfg, width=n, n_best=n), mbr=Mbr())
        case "mbr" if 1 < n <= MAX_BEAM:
            return Sampling(n_best=n, length_penalty=cfg.length_penalty, mbr=Mbr())
    ways = "greedy, beam-N, sample, rerank-N (of a beam) or mbr-N (of samples)"
    raise DecodeError(f"system {system!r}: give {ways}, such as {SYSTEMS[2]}, N up to {MAX_BEAM}")


def measured(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    systems: Sequence[str] = SYSTEMS,
    *,
    to: str | None = None,
    seed: int = 1,
    batch_tokens: int | None = None,
) -> Iterator[Measured]:
    """Each system in turn, as soon as it is measured."""
    searches = [(system, search_of(system, translator.config.decode)) for system in systems]
    lang = translator.target(to).lang
    for system, search in searches:  # what the model cannot do is said before anything is measured
        try:
            translator.translate([], to=to, settings=search, batch_tokens=batch_tokens)
        except DecodeError as error:
            raise DecodeError(f"system {system} (--systems): {error}") from None
    for system, search in searches:
        translator.translate(sources[:WARM], to=to, settings=search, seed=seed, batch_tokens=batch_tokens)
        begun = time.perf_counter()
        found = translator.translate(sources, to=to, settings=search, seed=seed, batch_tokens=batch_tokens)
        seconds = time.perf_counter() - begun
        scores = score([one.text for one in found], [references], lang=lang, metrics=("bleu", "chrf"))
        yield Measured(system, translator.precision, scores, seconds)
