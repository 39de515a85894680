"""Ids in, hypotheses out: the model as a `Step`, and the search that the settings ask for. Legend: B sentences, R rows, V vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mt.config.schema import MAX_COVERAGE_PENALTY, DecodeConfig
from mt.config.stage import MAX_BEAM
from mt.constraints.orders import NO_ORDERS, Orders
from mt.constraints.wrappers import constrained
from mt.data.batches import padded
from mt.decode.abreast import go_on
from mt.decode.alternatives import branched, next_ids
from mt.decode.mbr import Mbr
from mt.decode.search_engine import SearchEngine
from mt.errors import DecodeError
from mt.forced.attended import attended
from mt.forced.coverage import reranked
from mt.forced.given import enough_memory
from mt.model.cache import DecoderCache
from mt.model.device import Precision
from mt.model.transformer import Transformer
from mt.search.beam import beam_search, hypotheses_wanted
from mt.search.ensemble import Ensemble, Mix
from mt.search.greedy import greedy_search
from mt.search.sample import refuse_settings, sample_search, several
from mt.search.step import Hypothesis, Step, Suppress
from mt.tokenizer.spm import Tokenizers

if TYPE_CHECKING:
    from mt.decode.job import Job


@dataclass(frozen=True)
class Beam:
    """Beam search; width 1 is greedy search. Raises DecodeError for settings that cannot be met."""

    width: int = 5
    length_penalty: float = 1.0
    n_best: int = 1
    patience: float = 1.0
    coverage_penalty: float = 0.0
    """β of `mt.forced.coverage`, by which all that a search finished is ranked; 0: none."""
    mbr: Mbr | None = None
    """Choose among the n-best by expected utility."""

    @property
    def rows(self) -> int:
        """Decoder rows of a sentence."""
        return self.width

    @property
    def finished(self) -> int:
        """Hypotheses that end the search for a sentence."""
        return hypotheses_wanted(self.width, patience=self.patience, n_best=self.n_best, length_penalty=self.length_penalty)

    def __post_init__(self) -> None:
        if self.width > MAX_BEAM:
            raise DecodeError(f"beam {self.width}: give a width from 1 (greedy) to {MAX_BEAM}")
        finished = self.finished  # asks whether the settings can be met
        if not 0 <= self.coverage_penalty <= MAX_COVERAGE_PENALTY:
            raise DecodeError(f"coverage-penalty {self.coverage_penalty:g}: give a number from 0 (none) to {MAX_COVERAGE_PENALTY}")
        if self.coverage_penalty and finished == 1:
            raise DecodeError(f"coverage-penalty {self.coverage_penalty:g} ranks what a beam finished: give a beam of 2 or more")

    @classmethod
    def build(
        cls,
        cfg: DecodeConfig,
        *,
        width: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        coverage_penalty: float | None = None,
    ) -> Beam:
        """What a config asks for, less what is given here; a width of one's own takes the config's other settings as far as it can."""
        most = cfg.n_best if width is None else min(cfg.n_best, width)
        return cls(
            width=cfg.beam if width is None else width,
            length_penalty=cfg.length_penalty if length_penalty is None else length_penalty,
            n_best=most if n_best is None else n_best,
            patience=1.0 if width == 1 else cfg.patience,
            coverage_penalty=(0.0 if width == 1 else cfg.coverage_penalty) if coverage_penalty is None else coverage_penalty,
        )


@dataclass(frozen=True)
class Sampling:
    """Random sampling, `n_best` times a sentence. Raises DecodeError for settings out of range."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    length_penalty: float = 1.0
    n_best: int = 1
    mbr: Mbr | None = None
    """Choose among the samples by expected utility."""

    @property
    def rows(self) -> int:
        """Decoder rows of a sentence."""
        return self.n_best

    def __post_init__(self) -> None:
        refuse_settings(self.temperature, top_k=self.top_k, top_p=self.top_p)
        if not 1 <= self.n_best <= MAX_BEAM:
            raise DecodeError(f"n-best {self.n_best}: give a number of samples from 1 to {MAX_BEAM}")


def log_softmax(logits_RV: Tensor) -> Tensor:
    """Of each row; in the place of the logits on a CPU, whose kernel reads each number before it writes it."""
    return torch.log_softmax(logits_RV, dim=-1, out=logits_RV if logits_RV.device.type == "cpu" else None)


class ModelStep(Step[DecoderCache]):
    """The Transformer as a step; its state is the decoder's cache."""

    def __init__(self, model: Transformer, device: torch.device) -> None:
        self.model, self.device = model, device

    def start(self, sources: Sequence[Sequence[int]], *, pad: int) -> DecoderCache:
        """Encode source ids (EOS included): one row for each sentence."""
        src_BS = padded(sources, pad=pad).to(self.device)
        allowed_BS = src_BS != pad
        return self.model.start(self.model.encode(src_BS, allowed_BS), allowed_BS)

    def __call__(self, last_R: Tensor, state: DecoderCache) -> tuple[Tensor, DecoderCache]:
        """Log-probabilities (R, V) over the whole vocabulary, in fp32 or better."""
        go_on()
        logits_RV, state = self.model.step(last_R.to(self.device), state)
        return log_softmax(logits_RV.to(torch.promote_types(logits_RV.dtype, torch.float32))), state

    def reorder(self, state: DecoderCache, rows_R: Tensor) -> DecoderCache:
        """The cache of the rows that go on."""
        return state.reorder(rows_R)


PRECISIONS: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Engine(SearchEngine):
    """Searches with one model, or the mean of several, by torch."""

    def __init__(
        self,
        model: Transformer,
        tokenizers: Tokenizers,
        *,
        device: torch.device,
        others: Sequence[Transformer] = (),
        mix: Mix | None = None,
    ) -> None:
        self._models, self.tokenizers, self.device = (model, *others), tokenizers, device
        self.mix = mix or Mix()
        self.mix.refuse_other_than(len(self.models))

    @property
    def models(self) -> Sequence[Transformer]:
        """One, or those of an ensemble."""
        return self._models

    @property
    def precision(self) -> str:
        """What the matrices are in; fp64 where a test has made them so."""
        dtype = self.models[0].output.weight.dtype
        return next((name for name, numbers in PRECISIONS.items() if numbers == dtype), "fp64")

    def refuse(self, job: Job, *, prefixes: bool = False, required: bool = False) -> None:
        """There is nothing that it cannot do."""

    @torch.inference_mode()
    def search(
        self,
        sources: Sequence[Sequence[int]],
        settings: Beam | Sampling,
        *,
        limits: Sequence[int],
        seeds: Sequence[int] = (),
        orders: Orders = NO_ORDERS,
    ) -> list[list[Hypothesis]]:
        """For each source (tag if there is one, pieces, no EOS) its hypotheses, best first; samples in the order they were drawn.

        `limits`: longest outputs with EOS; `seeds` for sampling; `orders`: what the outputs are to obey.
        """
        assert not any(model.training for model in self.models)
        with enough_memory(len(sources)):
            return self._search(sources, settings, limits=limits, seeds=seeds, orders=orders)

    @torch.inference_mode()
    def alternatives(
        self,
        sources: Sequence[Sequence[int]],
        settings: Beam | Sampling,
        most: Sequence[int],
        *,
        limits: Sequence[int],
        seeds: Sequence[int] = (),
        orders: Orders = NO_ORDERS,
    ) -> list[list[Hypothesis]]:
        """For each source so many hypotheses, each beginning with another of the most probable ids after the prefix, in the order of these.

        Each is the best of a search that has this id forced; where none is asked for (0), the best without. All else is as in `search`.
        """
        prefixes = orders.prefixes or [()] * len(sources)
        with enough_memory(len(sources)):
            step, state = self._start(sources, 1, limits=limits, orders=orders)
            ids = next_ids(step, state, prefixes, bos=self.tokenizers.tgt.bos, k=max(1, *most))
        following: list[list[list[int]]] = [[[i] for i in own[:k]] if k else [[]] for own, k in zip(ids, most, strict=True)]
        rows = [place for place, many in enumerate(following) for _ in many]
        forced = branched(orders, following)
        found = iter(
            self.search(
                [sources[place] for place in rows],
                replace(settings, n_best=1),
                limits=[max(limits[place], forced.least(row)) for row, place in enumerate(rows)],
                seeds=[seeds[place] for place in rows] if seeds else (),
                orders=forced,
            )
        )
        return [[best for _ in many for best in next(found)] for many in following]

    def _start(
        self, sources: Sequence[Sequence[int]], samples: int, *, limits: Sequence[int], orders: Orders, banks: bool = False
    ) -> tuple[Step[Any], Any]:
        """The step of a search, and the state in which it begins; several samples of a source are sentences of their own."""
        src, tgt = self.tokenizers
        steps = [ModelStep(model, self.device) for model in self.models]
        begun = tuple(one.start([[*ids, src.eos] for ids in sources], pad=src.pad) for one in steps)
        if samples > 1:
            rows_R = torch.arange(len(sources), device=self.device).repeat_interleave(samples)
            begun = tuple(one.reorder(state, rows_R) for one, state in zip(steps, begun, strict=True))
        never = Suppress(Ensemble(steps, self.mix), (tgt.pad, tgt.bos, tgt.unk, *tgt.prefixes))
        return constrained(never, begun, orders, eos=tgt.eos, limits=limits, banks=banks)

    def _search(
        self,
        sources: Sequence[Sequence[int]],
        settings: Beam | Sampling,
        *,
        limits: Sequence[int],
        seeds: Sequence[int | str],
        orders: Orders,
    ) -> list[list[Hypothesis]]:
        tgt = self.tokenizers.tgt
        samples = settings.n_best if isinstance(settings, Sampling) else 1
        if samples > 1:
            limits, seeds = [limit for limit in limits for _ in range(samples)], several(seeds, samples)
            orders = branched(orders, [[[]] * samples] * len(sources))
        step, state = self._start(sources, samples, limits=limits, orders=orders, banks=isinstance(settings, Beam) and settings.width > 1)
        match settings:
            case Beam(width=1, length_penalty=alpha):
                found = greedy_search(step, state, bos=tgt.bos, eos=tgt.eos, limits=limits, length_penalty=alpha)
                return [[hypothesis] for hypothesis in found]
            case Beam():
                searched = beam_search(
                    step,
                    state,
                    bos=tgt.bos,
                    eos=tgt.eos,
                    limits=limits,
                    width=settings.width,
                    length_penalty=settings.length_penalty,
                    patience=settings.patience,
                    n_best=settings.finished if settings.coverage_penalty else settings.n_best,
                )
                return self._covered(sources, searched, settings) if settings.coverage_penalty else searched
            case Sampling():
                found = sample_search(
                    step,
                    state,
                    bos=tgt.bos,
                    eos=tgt.eos,
                    limits=limits,
                    seeds=seeds,
                    temperature=settings.temperature,
                    top_k=settings.top_k,
                    top_p=settings.top_p,
                    length_penalty=settings.length_penalty,
                )
                return [found[start : start + samples] for start in range(0, len(found), samples)]

    def _covered(self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]], settings: Beam) -> list[list[Hypothesis]]:
        """The best of what a beam finished, coverage counted; in batches of as many rows as the search had."""
        budget = len(sources) * settings.rows * (max(map(len, sources)) + 1)
        attention = partial(attended, self.models, tokenizers=self.tokenizers, device=self.device, batch_tokens=budget)
        ranked = reranked([list(ids) for ids in sources], found, attention, penalty=settings.coverage_penalty)
        return [own[: settings.n_best] for own in ranked]
