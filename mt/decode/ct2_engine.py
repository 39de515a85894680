"""CTranslate2 as what runs a model: the same searches by the same definitions, in the numbers that the model was exported in.

Where the two differ, this is what becomes of it:

- CTranslate2 counts an end in the length only where it returns it, so it does.
- What is never generated (padding, unknown, tags) it leaves out of the softmax that it searches by, mt does not. What was found is scored
  again by the full one, and ranked by that.
- At the limit it stops without an end; mt forces one there. So its limit is one less, and the end is added, and counted: what a search
  came to before the limit is ranked together with what it cut off there.
- Its limit is one for all sentences of a call: those of one limit are a call.

Legend: B sentences, V vocabulary.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from mt.constraints.orders import NO_ORDERS, Orders
from mt.decode.abreast import THREADS, go_on, workers_on
from mt.decode.engine import Beam, Sampling
from mt.decode.search_engine import SearchEngine
from mt.errors import ConfigError, DecodeError, RunError
from mt.extras import install
from mt.files import fingerprint
from mt.forced.given import enough_memory
from mt.rundir import AGAIN, ExportDir
from mt.search.ensemble import Mix
from mt.search.step import Hypothesis
from mt.tokenizer.spm import Tokenizers

if TYPE_CHECKING:
    from mt.decode.job import Job
    from mt.model.transformer import Transformer

PROGRAM = "ctranslate2"
"""As an export names it."""

COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "auto": "default", None: "default"}
"""Its names for precisions; the default is what the model was exported in, as far as the device has it."""

LIKELY = math.log(0.5)
"""An end that is more probable than this is what the model wanted, whether it was forced or not."""

REASONS = {
    "--sample": "CTranslate2 has no generator of its own for each line",
    "--coverage-penalty": "CTranslate2's acts during the search, not on what was found",
    "--alternatives": "CTranslate2 has no prefix of its own for each of them",
    "--alignment": "CTranslate2 does not tell what all heads looked at",
}
"""Why it cannot do some of what it refuses; the rest only mt's own searches know."""


def library() -> Any:
    """The library. Raises ConfigError, with the cure, where it is not installed."""
    try:
        import ctranslate2
    except ImportError:
        raise ConfigError(f"CTranslate2 is an extra: {install('export')}") from None
    ctranslate2.set_log_level(logging.ERROR)  # what numbers it computes in is told otherwise
    return ctranslate2


def refuse_damaged(folder: Path, files: Any) -> None:
    """Raise RunError, naming the file, where one is not as it was written: the library says little of it, or nothing."""
    if not isinstance(files, dict):
        raise RunError(f"{ExportDir(folder).facts_file}: is damaged; {AGAIN}")
    for name, before in files.items():
        try:
            changed = fingerprint(folder / name) != before
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            raise RunError(f"{folder / name}: {'is missing' if missing else f'cannot be read ({error.strerror})'}; {AGAIN}") from None
        if changed:
            raise RunError(f"{folder / name}: is damaged, or is not of this export; {AGAIN}")


class Ct2Engine(SearchEngine):
    """Searches with a model that was exported for CTranslate2. Raises RunError where it cannot be loaded in these numbers, or there."""

    mix = Mix()

    def __init__(
        self,
        folder: Path,
        tokenizers: Tokenizers,
        *,
        device: str = "auto",
        precision: str | None = None,
        files: Any = None,
    ) -> None:
        """`files`: the fingerprints of what it reads, as mt.json has them; none in older exports."""
        ct2 = library()
        cuda = ct2.get_cuda_device_count() > 0
        if device not in ("auto", "cpu", *(("cuda",) if cuda else ())):
            raise ConfigError(f"device {device}: CTranslate2 does not run there; there are: {'cuda, cpu' if cuda else 'cpu'}")
        self.folder, self.tokenizers = folder, tokenizers
        self.device = torch.device("cuda" if cuda and device != "cpu" else "cpu")
        numbers = COMPUTE_TYPES[precision]
        if numbers != "default" and numbers not in (has := ct2.get_supported_compute_types(self.device.type)):
            others = [name for name, theirs in COMPUTE_TYPES.items() if name and theirs in has]
            there = f"choose auto{', '.join(['', *others])}"
            raise ConfigError(f"precision {precision}: CTranslate2 does not compute in {numbers} on this {self.device.type}; {there}")
        refuse_damaged(folder, {} if files is None else files)
        workers = workers_on(self.device)
        threads = {"inter_threads": workers, "intra_threads": max(1, THREADS.all() // workers)}
        try:
            self._model = ct2.Translator(str(folder), device=self.device.type, compute_type=numbers, **threads)
        except (RuntimeError, ValueError) as error:
            raise RunError(f"{folder}: CTranslate2 cannot run it ({str(error).splitlines()[0].rstrip('.')}); export it again") from None
        tgt = tokenizers.tgt
        self._ids = {piece: i for i, piece in enumerate(tgt.pieces(range(tgt.size)))}
        self._end = tgt.pieces([tgt.eos])[0]
        self._never = [[piece] for piece in tgt.pieces([tgt.pad, tgt.bos, *tgt.prefixes])]
        self.version: str = ct2.__version__

    @property
    def precision(self) -> str:
        """What it computes in, by its own name."""
        found: str = self._model.compute_type
        return found

    @property
    def models(self) -> Sequence[Transformer]:
        """There is none that torch could compute with: raises DecodeError."""
        raise DecodeError(f"{self.folder}: is exported for CTranslate2, which can only translate here; give the run that it was made from")

    def refuse(self, job: Job, *, prefixes: bool = False, required: bool = False) -> None:
        """Raise DecodeError, naming the option, for what it cannot do."""
        control = job.speller.control
        asked = {
            "--sample": isinstance(job.search, Sampling),
            "--coverage-penalty": isinstance(job.search, Beam) and job.search.coverage_penalty,
            "--alternatives": job.alternatives,
            "--alignment": job.align,
            "--min-length": control.min_length,
            "--no-repeat-ngram": control.no_repeat_ngram,
            "--repetition-penalty": control.repetition_penalty != 1,
            "--ban": control.banned,
            "--glossary": control.glossary,
            "--protect": control.protect and control.protect.patterns,
            "--retry-loops": control.retry_loops,
            "--prefix-file": prefixes,
            "--require": required,
        }
        for name, wanted in asked.items():
            if wanted:
                raise self._unable(name)

    def _unable(self, name: str) -> DecodeError:
        reason = REASONS.get(name, "only mt's own searches know it")
        return DecodeError(f"{name}: {reason}; leave it out, or give the run that {self.folder} was exported from")

    def search(
        self,
        sources: Sequence[Sequence[int]],
        settings: Beam | Sampling,
        *,
        limits: Sequence[int],
        seeds: Sequence[int] = (),  # noqa: ARG002 (nothing is sampled)
        orders: Orders = NO_ORDERS,  # noqa: ARG002 (`refuse` has seen to it)
    ) -> list[list[Hypothesis]]:
        """For each source (tag if there is one, pieces, no EOS) its hypotheses, best first. `limits`: longest outputs with EOS."""
        assert isinstance(settings, Beam)
        pieces = [self.tokenizers.src.pieces(ids) for ids in sources]
        places: dict[int, list[int]] = {}
        for place, limit in enumerate(limits):
            places.setdefault(limit, []).append(place)
        found: dict[int, list[Hypothesis]] = {}
        with enough_memory(len(sources)):
            for limit, own in places.items():
                go_on()
                found |= zip(own, self._searched([pieces[place] for place in own], settings, limit), strict=True)
        return [found[place] for place in range(len(sources))]

    def _searched(self, pieces: Sequence[list[str]], settings: Beam, limit: int) -> list[list[Hypothesis]]:
        """The hypotheses of sources that have one limit."""
        found = self._outputs(pieces, settings, limit, most=1)
        if settings.width > 1:  # at the limit what is cut off may take the place of what had ended: in twice as many there is room for both
            places = [place for place, outputs in enumerate(found) if not all(ended for _, ended in outputs)]
            again = self._outputs([pieces[place] for place in places], settings, limit, most=2) if places else []
            for place, outputs in zip(places, again, strict=True):
                found[place] = outputs
        wanted = [outputs[: settings.n_best] if all(ended for _, ended in outputs) else outputs for outputs in found]
        scores = iter(self._log_probs([(source, output) for source, own in zip(pieces, wanted, strict=True) for output, _ in own]))
        hypotheses = []
        for own in wanted:
            ranked = []
            for output, ended in own:
                *totals, log_prob = accumulate(tokens := next(scores))
                ids, cut = [self._ids[piece] for piece in output], not ended and tokens[-1] <= LIKELY
                alpha = settings.length_penalty
                ranked.append(Hypothesis.ended(ids, log_prob=log_prob, length_penalty=alpha, truncated=cut, totals=totals))
            hypotheses.append(sorted(ranked, key=lambda one: -one.score)[: settings.n_best])
        return hypotheses

    def _outputs(self, pieces: Sequence[list[str]], settings: Beam, limit: int, *, most: int) -> list[list[tuple[list[str], bool]]]:
        """Pieces of the outputs, best first, without their ends, and whether they had any: `most` times as many as end a search."""
        results = self._model.translate_batch(
            pieces,
            beam_size=settings.width,
            patience=settings.patience * most,
            num_hypotheses=settings.finished * most,
            length_penalty=settings.length_penalty,
            max_input_length=0,
            max_decoding_length=max(1, limit - 1),
            min_decoding_length=0,
            disable_unk=True,
            suppress_sequences=self._never,
            return_end_token=True,
        )
        return [
            [(output[:-1], True) if output[-1:] == [self._end] else (output[: limit - 1], False) for output in result.hypotheses]
            for result in results
        ]

    def _log_probs(self, pairs: Sequence[tuple[list[str], list[str]]]) -> list[list[float]]:
        """Of each piece of outputs and of their ends, by the softmax over the whole vocabulary."""
        results = self._model.score_batch([source for source, _ in pairs], [output for _, output in pairs], max_input_length=0)
        return [[float(value) for value in result.log_probs] for result in results]

    def alternatives(self, *_: Any, **__: Any) -> NoReturn:
        """It has none: raises DecodeError, as `refuse` does before."""
        raise self._unable("--alternatives")

    def first_step(self, sources: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Log-probabilities (B, V) of the first piece of the output of each source, nothing suppressed."""
        pieces = [self.tokenizers.src.pieces(ids) for ids in sources]
        options = {"beam_size": 1, "max_input_length": 0, "max_decoding_length": 1, "min_decoding_length": 0, "return_logits_vocab": True}
        results = self._model.translate_batch(pieces, **options)
        logits_BV = torch.tensor(np.stack([np.array(result.logits[0][0], dtype=np.float32) for result in results]))
        found: NDArray[np.float32] = torch.log_softmax(logits_BV.double(), dim=-1).float().numpy()
        return found
