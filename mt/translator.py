"""Text in, text out: the only module that knows text and tensors; validation, `mt translate`, `mt eval` and the API all use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from mt.checkpoint import Weights, check_model, load_weights, read_state, read_weights
from mt.config.directions import sources, targets
from mt.config.load import load
from mt.config.schema import MAX_BATCH_TOKENS, Config, Langs
from mt.constraints.control import NO_CONTROL, Control, Wish, Wishes
from mt.constraints.spelling import Speller
from mt.decode.abreast import abreast, workers_on
from mt.decode.ct2_engine import PROGRAM, Ct2Engine
from mt.decode.engine import PRECISIONS, Beam, Engine, Sampling
from mt.decode.job import Job, Target
from mt.decode.mbr import choice
from mt.decode.parts import Part, batches_of, spaced, split
from mt.decode.search_engine import SearchEngine
from mt.decode.translation import Following, Translation, flags_on, second_tries, whole_lines
from mt.decode.windows import windows
from mt.errors import DecodeError, RunError
from mt.forced.attended import attended
from mt.forced.links import Alignment, Units, alignments, given_of
from mt.formats.pairs import one_line
from mt.model.device import Precision, choose_device, fastest
from mt.model.packed import pack
from mt.model.transformer import Transformer
from mt.rundir import ExportDir, RunDir
from mt.search.ensemble import Mix
from mt.search.step import Hypothesis
from mt.tokenizer.of_run import check_fingerprints, load_tokenizers
from mt.tokenizer.spm import Tokenizers

WINDOW = 4096
"""Lines sorted by length together; everywhere the same, as in bf16 the company a line is in can decide between two outputs of one score."""

WIDE = 10
"""With a wider beam, or more samples, batches are smaller: what takes memory are the rows of the decoder."""


class Translator:
    """A model with everything needed around it."""

    def __init__(
        self,
        model: Transformer | SearchEngine,
        tokenizers: Tokenizers,
        *,
        config: Config,
        device: torch.device,
        others: Sequence[Transformer] = (),
        mix: Mix | None = None,
    ) -> None:
        self.tokenizers, self.config = tokenizers, config
        self.engine: SearchEngine
        if isinstance(model, Transformer):
            self.engine = Engine(model, tokenizers, device=device, others=others, mix=mix)
        else:
            self.engine = model

    @classmethod
    def load(
        cls,
        run: str | Path,
        checkpoint: str = "best",
        *,
        device: str = "auto",
        precision: str | None = None,
        weights: Weights | None = None,
    ) -> Translator:
        """Read a run directory, or one that `mt export ct2` wrote. Raises MTError for what is missing, broken or does not fit.

        `checkpoint` is best, last, average or a number of updates; `precision` fp32, bf16, fp16 or auto, if left out the
        run's; `weights` raw or ema, if left out the moving average where there is one. An export has one checkpoint, in its own numbers.
        """
        if precision not in (None, "auto", *PRECISIONS):
            raise RunError(f"precision {precision}: choose auto, {', '.join(PRECISIONS)}")
        if (exported := ExportDir(run)).is_there():
            exported.refuse_choice(checkpoint=None if checkpoint == "best" else checkpoint, weights=weights)
            return cls.exported(exported, device=device, precision=precision)
        path = (rundir := RunDir(run)).find(checkpoint)
        config = load(rundir.config).config
        tokenizers = load_tokenizers(rundir, joint=config.tokenizer.joint)
        state = read_state(path)
        check_fingerprints(state, tokenizers, source=path)
        check_model(state, config.model, source=path, config=rundir.config)
        where = choose_device(device)
        model = Transformer.build(config.model, src_vocab=tokenizers.src.size, tgt_vocab=tokenizers.tgt.size, joint=tokenizers.joint)
        load_weights(model, read_weights(path, weights), source=path)
        wanted = precision or config.decode.precision
        numbers = PRECISIONS[fastest(where) if wanted == "auto" else cast("Precision", wanted)]
        return cls(pack(model.to(where).narrowed(numbers).eval()), tokenizers, config=config, device=where)

    @classmethod
    def exported(cls, folder: ExportDir, *, device: str = "auto", precision: str | None = None) -> Translator:
        """Read what `mt export ct2` wrote."""
        facts = folder.facts(program=PROGRAM)
        config = load(folder.config).config
        tokenizers = load_tokenizers(RunDir(folder.path), joint=config.tokenizer.joint)
        check_fingerprints(facts, tokenizers, source=folder.path)
        engine = Ct2Engine(folder.path, tokenizers, device=device, precision=precision, files=facts.get("files"))
        return cls(engine, tokenizers, config=config, device=engine.device)

    @classmethod
    def ensemble(cls, runs: Sequence[str | Path], checkpoint: str = "best", *, mix: Mix | None = None, **named: Any) -> Translator:
        """Several runs as one model, with the settings of the first; `named` is what `load` takes.

        They may differ in all but their vocabulary. Raises RunError where they do not have the same.
        """
        if found := next((run for run in runs if ExportDir(run).is_there()), None):
            raise RunError(f"{found}: is an export, and only runs make an ensemble (several --model); give the run it was made from")
        first, *rest = [cls.load(run, checkpoint, **named) for run in runs]
        for run, other in zip(runs[1:], rest, strict=True):
            if [one.fingerprint for one in other.tokenizers] != [one.fingerprint for one in first.tokenizers]:
                raise RunError(f"{run}: has another vocabulary than {runs[0]}; only models with the same tokenizer make an ensemble")
        others = [other.model for other in rest]
        return cls(first.model, first.tokenizers, config=first.config, device=first.engine.device, others=others, mix=mix)

    @property
    def model(self) -> Transformer:
        """The model, of several the first. Raises DecodeError for an export, which torch cannot compute with."""
        return self.engine.models[0]

    @property
    def precision(self) -> str:
        """What is computed in, as the engine calls it: fp32, bf16 or fp16, or a type of CTranslate2."""
        return self.engine.precision

    @property
    def langs(self) -> Langs | None:
        """The languages of the run, if it knows them."""
        return self.config.langs

    @property
    def targets(self) -> tuple[str, ...]:
        """The languages that `to` can ask for; none where the model needs no telling."""
        return tuple(self.tokenizers.src.tags)

    def target(self, to: str | None = None) -> Target:
        """Where translations go when `to` is asked for. Raises DecodeError if the model does not know it, or has to be told."""
        known = ", ".join(self.targets)
        if not known:
            langs = targets(self.config)
            if to is not None:
                where = f" (it goes to {', '.join(langs)})" if langs else ""
                raise DecodeError(f"--to {to}: this model was trained without target-language tags{where}; leave --to out")
            return Target(langs[0] if len(langs) == 1 else None, [])
        if to is None and len(self.targets) > 1:
            raise DecodeError(f"this model translates to {known}: choose one with --to (in Python: to=…)")
        if to not in (None, *self.targets):
            raise DecodeError(f"--to {to}: this model does not know that language; it translates to {known}")
        lang = self.targets[0] if to is None else to
        return Target(lang, [self.tokenizers.src.tag(lang)])

    def translate(
        self,
        lines: Iterable[str],
        *,
        to: str | None = None,
        beam: int | None = None,
        settings: Beam | Sampling | None = None,
        control: Control = NO_CONTROL,
        prefixes: Iterable[str] | None = None,
        required: Iterable[Sequence[str]] | None = None,
        align: bool = False,
        alternatives: int = 0,
        batch_tokens: int | None = None,
        seed: int = 1,
    ) -> list[Translation]:
        """One translation a line, in order.

        The run's config decides how to search; `beam` changes the width alone, `settings` everything. `control` says what all translations
        are to obey, `prefixes` how each begins and `required` what each says: one for each line. `align` asks for the links between words,
        `alternatives` for so many hypotheses that differ in the piece after the prefix, most probable piece first. `batch_tokens` (rows ×
        longest source) is for speed and memory, `seed` for sampling. A model of several target languages has to be told which: `to`.
        Raises DecodeError for settings that cannot be met, and for a language the model does not know.
        """
        return list(
            self.stream(
                lines,
                to=to,
                beam=beam,
                settings=settings,
                control=control,
                prefixes=prefixes,
                required=required,
                align=align,
                alternatives=alternatives,
                batch_tokens=batch_tokens,
                seed=seed,
            )
        )

    def stream(
        self,
        lines: Iterable[str],
        *,
        to: str | None = None,
        beam: int | None = None,
        settings: Beam | Sampling | None = None,
        control: Control = NO_CONTROL,
        prefixes: Iterable[str] | None = None,
        required: Iterable[Sequence[str]] | None = None,
        align: bool = False,
        alternatives: int = 0,
        batch_tokens: int | None = None,
        seed: int = 1,
        window: int = WINDOW,
        paused: Callable[[], bool] = lambda: False,
        first_line: int = 1,
        done: Callable[[int], object] = lambda _: None,
    ) -> Iterator[Translation]:
        """As `translate`, but in bounded memory: so many lines at a time are read, sorted by length, translated and given back in order.

        Fewer where `paused`, which is asked after each line, says that the next one is not to be waited for. `first_line` is the number of
        the first of the lines, where there were others before: what is sampled for a line is decided by its number. `done` is told how
        many more lines are translated, long before they are given back.
        """
        if isinstance(lines, str):
            raise TypeError("lines is one string; give a list of them")
        target = self.target(to)
        search = settings or Beam.build(self.config.decode, width=beam)
        budget = batch_tokens or self.config.decode.batch_tokens
        if budget > MAX_BATCH_TOKENS:
            raise DecodeError(f"batch-tokens {budget}: give a number from 1 to {MAX_BATCH_TOKENS}")
        if alternatives and search.mbr:
            raise DecodeError("alternatives are told apart by what comes next, and MBR chooses among them: leave out one")
        budget = max(1, budget * WIDE // max(search.rows * max(1, alternatives), WIDE) // workers_on(self.engine.device))
        choose = choice(search.mbr, target.lang, sampled=isinstance(search, Sampling)) if search.mbr else None
        control = control.of_run(protect=self.config.decode.protect, retry_loops=self.config.decode.retry_loops)
        first, second = (
            Job(search, Speller(one, self.tokenizers, spaced=spaced(target.lang)), choose, target, budget, seed, align, alternatives)
            for one in (control, control.second())
        )
        self.engine.refuse(first, prefixes=prefixes is not None, required=required is not None)
        wishes = Wishes(prefixes, required)
        for chunk in windows(lines, window, paused):
            given = chunk, wishes.of(chunk), range(first_line, first_line + len(chunk))
            found = self._window(*given, job=first, done=done)
            yield from second_tries(found, partial(self._window, job=second, done=lambda _: None), given) if control.retry_loops else found
            first_line += len(chunk)
        wishes.end()

    def _window(
        self, lines: Sequence[str], wishes: Sequence[Wish], numbers: Sequence[int], *, job: Job, done: Callable[[int], object]
    ) -> Iterator[Translation]:
        search, speller, target, tgt = job.search, job.speller, job.target, self.tokenizers.tgt
        ids_of_lines = self.encoded(lines)
        parts = [
            Part(number, place, ids, own)
            for number, (line, wish, all_ids) in enumerate(zip(lines, wishes, ids_of_lines, strict=True))
            for place, (ids, own) in enumerate(zip(all_ids, speller.spread(line, wish, all_ids), strict=True))
        ]
        found: dict[tuple[int, int], list[Hypothesis]] = {}
        done(sum(not own for own in ids_of_lines))
        batches = batches_of(parts, budget=job.budget, extra=len(target.prefix) + 1)
        search_of = partial(self._searched, numbers=numbers, job=job)
        for batch, hypotheses in zip(batches, abreast(search_of, batches, self.engine.device, rows=len(parts) * search.rows), strict=True):
            found |= {(part.line, part.place): best for part, best in zip(batch, hypotheses, strict=True)}
            done(sum(part.place == 0 for part in batch))
        joined = partial(whole_lines, tgt=tgt, lang=target.lang, length_penalty=search.length_penalty, ranked=not job.alternatives)
        wholes = [joined([found[number, place] for place in range(len(own))]) for number, own in enumerate(ids_of_lines)]
        chosen = [(whole, []) for whole in wholes] if job.choose is None else job.choose(wholes, lines)
        aligned = self.aligned(ids_of_lines, [whole for whole, _ in chosen], job) if job.align else [[]] * len(lines)
        for line, wish, own, (whole, utilities), links in zip(lines, wishes, ids_of_lines, chosen, aligned, strict=True):
            text = whole[0][0] if whole else ""
            terms = [(term, speller.says(text, term.target)) for term in speller.terms(line)]
            met = speller.obeyed(text, wish) and all(honoured for _, honoured in terms)
            protected = speller.protected.judged(line, text)
            lost = not all(kept for _, kept in protected)
            unknown = sum(ids.count(self.tokenizers.src.unk) for ids in own)
            flags = flags_on(line, whole, parts=len(own), unknown=unknown, unmet=not met, lost=lost)
            place = len(speller.prefix(wish.prefix))
            begun = [Following.of(one, place, tgt) for _, one in whole] if job.alternatives else []
            yield Translation(line, whole, flags, unknown, terms, utilities, links, begun, protected)

    def _searched(self, batch: Sequence[Part], *, numbers: Sequence[int], job: Job) -> list[list[Hypothesis]]:
        """The hypotheses of each part of a batch."""
        orders = job.speller.orders([part.wish for part in batch])
        limits = [max(self.limit(part.ids), orders.least(place)) for place, part in enumerate(batch)]
        # A part's seed is that of its line and of its place there: nothing sampled depends on batches or windows.
        seeds = [(job.seed << 64) + (numbers[part.line] << 32) + part.place for part in batch]
        sources = [job.target.prefix + part.ids for part in batch]
        if job.alternatives:
            most = [job.alternatives if part.place == 0 else 0 for part in batch]
            return self.engine.alternatives(sources, job.search, most, limits=limits, seeds=seeds, orders=orders)
        return self.engine.search(sources, job.search, limits=limits, seeds=seeds, orders=orders)

    def aligned(
        self, ids_of_lines: Sequence[list[list[int]]], found: Sequence[list[tuple[str, Hypothesis]]], job: Job
    ) -> list[list[Alignment]]:
        """The alignment of each hypothesis of each line, given the ids of the line's parts."""
        (src, tgt), engine, tag = self.tokenizers, self.engine, job.target.prefix
        outputs = [
            given_of([tag + ids for ids in own], hypothesis)
            for own, hypotheses in zip(ids_of_lines, found, strict=True)
            for _, hypothesis in hypotheses
        ]
        apart = all(map(spaced, sources(self.config, to=job.target.lang)))
        rest = alignments(
            outputs,
            partial(attended, engine.models, tokenizers=self.tokenizers, device=engine.device, batch_tokens=job.budget),
            source_units=partial(Units.words if apart else Units.pieces, tokenizer=src),
            target_units=partial(Units.words if spaced(job.target.lang) else Units.pieces, tokenizer=tgt),
            tag=len(tag),
        )
        return [[next(rest) for _ in hypotheses] for hypotheses in found]

    def encoded(self, lines: Sequence[str]) -> list[list[list[int]]]:
        """For each line the ids of its parts: none if it is blank, several if it has more than data.max_pieces."""
        src, most = self.tokenizers.src, self.config.data.max_pieces
        texts = [one_line(line) if line.strip() else "" for line in lines]

        def parts(text: str, ids: list[int]) -> list[list[int]]:
            if len(ids) <= most:
                return [ids] if ids else []
            return [found for part in split(text, src, most=most) if part.strip() and (found := src.encode(part))]

        return [parts(text, ids) for text, ids in zip(texts, src.encode_batch(texts), strict=True)]

    def limit(self, ids: Sequence[int]) -> int:
        """Longest output for a source, EOS counted."""
        cfg = self.config.decode
        return int(cfg.max_length_factor * len(ids)) + cfg.max_length_extra
