"""`bench.py decode`: speed of the searches, with the cache against without it, and against CTranslate2."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.data.batches import padded
from mt.decode.abreast import abreast, workers_on
from mt.decode.engine import Beam, ModelStep
from mt.decode.parts import Part, batches_of
from mt.evaluate.metrics import score
from mt.files import read_lines
from mt.model.process import SEARCHED, keep_few_primitives, keep_freed_memory
from mt.model.transformer import Transformer
from mt.search.greedy import greedy_search
from mt.search.step import Hypothesis, Step, Suppress
from mt.translator import Translator

Batches = Sequence[Sequence[Part]]
Prefix = tuple[Tensor, Tensor, Tensor]

CPU = torch.device("cpu")
BEAMS = {"greedy": 1, "beam 5": 5}
REST = 0.5
"""Seconds between one program and the next: the idle threads of the first spin for a while."""


def batched(translator: Translator, src: str) -> list[list[Part]]:
    """The lines of a file as `mt translate` has them in batches for each of its workers, from long to short."""
    parts = [Part(line, place, ids) for line, own in enumerate(translator.encoded(list(read_lines(src)))) for place, ids in enumerate(own)]
    return list(
        batches_of(sorted(parts, key=lambda part: -len(part.ids)), budget=translator.config.decode.batch_tokens // workers_on(CPU), extra=1)
    )


def speed_of(seconds: Sequence[float], lines: int) -> float:
    """Lines a second, by the median of the times."""
    return lines / statistics.median(seconds)


# ── with the cache and without ──────────────────────────────────────────────────────────────────────────────────────


class UncachedStep(Step[Prefix]):
    """The model without a cache: the decoder reads the whole prefix again at each step; only the last position is projected."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def start(self, sources: Sequence[Sequence[int]], *, pad: int) -> Prefix:
        """Encode source ids (EOS included)."""
        src_BS = padded(sources, pad=pad)
        allowed_BS = src_BS != pad
        return self.model.encode(src_BS, allowed_BS), allowed_BS, torch.empty(len(sources), 0, dtype=torch.int64)

    def __call__(self, last_R: Tensor, state: Prefix) -> tuple[Tensor, Prefix]:
        """Log-probabilities (R, V)."""
        memory_RSD, allowed_RS, prefix_RT = state
        prefix_RT = torch.cat([prefix_RT, last_R[:, None]], dim=1)
        states_RTD = self.model.decode(memory_RSD, allowed_RS, prefix_RT)
        return torch.log_softmax(self.model.output(states_RTD[:, -1]), dim=-1), (memory_RSD, allowed_RS, prefix_RT)

    def reorder(self, state: Prefix, rows_R: Tensor) -> Prefix:
        """The rows that go on."""
        memory, allowed, prefix = state
        return memory[rows_R], allowed[rows_R], prefix[rows_R]


def greedy(translator: Translator, batches: Batches, *, cached: bool, forced: int | None) -> list[Hypothesis]:
    """Greedy search over batches of sources; `forced`: exactly so many tokens each."""
    src, tgt = translator.tokenizers
    hidden = [tgt.pad, tgt.bos, tgt.unk, *([tgt.eos] if forced else [])]
    found: list[Hypothesis] = []
    with torch.inference_mode():
        for batch in batches:
            limits = [forced + 1 if forced else translator.limit(part.ids) for part in batch]
            step: Any = ModelStep(translator.model, CPU) if cached else UncachedStep(translator.model)
            state = step.start([[*part.ids, src.eos] for part in batch], pad=src.pad)
            found += greedy_search(Suppress(step, hidden), state, bos=tgt.bos, eos=tgt.eos, limits=limits)
    return found


def bench_decode(args: argparse.Namespace) -> dict[str, Any]:
    """Lines a second with and without the cache: free greedy search, batched as `mt translate` does, and 100 forced tokens for 64 lines."""
    torch.set_num_threads(args.threads)
    keep_freed_memory()
    keep_few_primitives(SEARCHED)
    translator = Translator.load(args.model, device="cpu")
    batches = batched(translator, args.src)
    parts = [part for batch in batches for part in batch]
    cases = {"free": (batches, None), "100 forced tokens": ([parts[len(parts) // 2 :][:64]], 100)}
    result: dict[str, Any] = {}
    for name, (work, forced) in cases.items():
        seconds: dict[bool, list[float]] = {True: [], False: []}
        outputs: dict[bool, list[Hypothesis]] = {}
        for _ in range(args.blocks):
            for cached in (True, False):
                start = time.perf_counter()
                outputs[cached] = greedy(translator, work, cached=cached, forced=forced)
                seconds[cached].append(time.perf_counter() - start)
        count = sum(map(len, work))
        speed = {cached: speed_of(seconds[cached], count) for cached in seconds}
        same = sum(a.ids == b.ids for a, b in zip(outputs[True], outputs[False], strict=True))
        ratio = speed[True] / speed[False]
        print(f"{name}: {speed[True]:.1f} lines/s with the cache, {speed[False]:.1f} without: {ratio:.2f} ×; {same} of {count} the same")
        result[name] = {"cached": speed[True], "uncached": speed[False], "ratio": ratio, "same": same, "lines": count}
    result["ratios"] = {name: result[name]["ratio"] for name in cases}
    if args.ref:
        result["translate"] = translated(translator, list(read_lines(args.src)), list(read_lines(args.ref)))
    return result


def translated(translator: Translator, lines: list[str], references: list[str]) -> dict[str, Any]:
    """Text in, text out, greedy and with a beam of 5: lines a second and BLEU."""
    found: dict[str, Any] = {}
    lang = translator.langs.tgt if translator.langs else None
    for name, beam in BEAMS.items():
        start = time.perf_counter()
        texts = [one.text for one in translator.translate(lines, beam=beam)]
        speed = len(lines) / (time.perf_counter() - start)
        bleu = score(texts, [references], metrics=("bleu",), lang=lang).metrics[0]
        print(f"translate, {name}: {speed:.1f} lines/s, BLEU {bleu.score:.2f} ({bleu.signature})")
        found[name] = {"lines_per_second": speed, "bleu": bleu.score, "signature": bleu.signature}
    return found


# ── against CTranslate2 ─────────────────────────────────────────────────────────────────────────────────────────────

Search = Callable[[int], list[list[int]]]
"""From a width to the best ids for each part, in the order of the batches."""


def limit_of(translator: Translator, batch: Sequence[Part]) -> int:
    """The longest output of a batch, EOS counted: one for all of them, as CTranslate2 has it."""
    return max(translator.limit(part.ids) for part in batch)


def own_search(translator: Translator, batches: Batches) -> Search:
    """The searches of mt; the ids of the batches are at hand."""
    work = [([part.ids for part in batch], [limit_of(translator, batch)] * len(batch)) for batch in batches]
    alpha = translator.config.decode.length_penalty

    def search(width: int) -> list[list[int]]:
        settings = Beam(width, length_penalty=alpha)

        def best(batch: tuple[list[list[int]], list[int]]) -> list[list[int]]:
            ids, limits = batch
            return [found[0].ids for found in translator.engine.search(ids, settings, limits=limits)]

        return [ids for found in abreast(best, work, CPU) for ids in found]

    return search


@contextmanager
def their_searches(translator: Translator, batches: Batches, args: argparse.Namespace) -> Iterator[dict[str, Search]]:
    """Those of CTranslate2, in float32 and int8; what it gives is made ids of, which is in the time and hardly takes any."""
    import ctranslate2

    from mt.export.ct2 import conventions, export

    src, tgt = translator.tokenizers
    ids_of = {piece: i for i, piece in enumerate(tgt.pieces(range(tgt.size)))}
    work = [([src.pieces(part.ids) for part in batch], limit_of(translator, batch) - 1) for batch in batches]  # less the end
    options = conventions(translator.tokenizers, translator.config)["translate_batch"] | {"num_hypotheses": 1, "patience": 1}

    def search_of(model: Any) -> Search:
        def search(width: int) -> list[list[int]]:
            found = []
            for pieces, limit in work:
                found += model.translate_batch(pieces, **(options | {"beam_size": width, "max_decoding_length": limit}))
            return [[ids_of[piece] for piece in one.hypotheses[0]] for one in found]

        return search

    with tempfile.TemporaryDirectory() as folder:
        export(args.model, Path(folder, "model"))
        threads = {"inter_threads": 1, "intra_threads": args.threads}
        types = ("float32", "int8")
        yield {
            f"ct2 {kind}": search_of(ctranslate2.Translator(str(Path(folder, "model")), device="cpu", compute_type=kind, **threads))
            for kind in types
        }


def bench_ct2(args: argparse.Namespace) -> dict[str, Any]:
    """Lines a second of greedy search and of a beam of 5 in turn, ids in and ids out, the same batches; BLEU of what came out."""
    torch.set_num_threads(args.threads)
    keep_freed_memory()
    keep_few_primitives(SEARCHED)
    models = {f"mt {precision}": Translator.load(args.model, device="cpu", precision=precision) for precision in args.precision}
    translator = next(iter(models.values()))
    batches = batched(translator, args.src)
    parts = [part for batch in batches for part in batch]
    result: dict[str, Any] = {"lines": len(parts), "threads": args.threads, "lines_per_second": {}, "same": {}, "bleu": {}, "ratios": {}}
    with their_searches(translator, batches, args) as theirs:
        searches = {name: own_search(model, batches) for name, model in models.items()} | theirs
        seconds: dict[tuple[str, str], list[float]] = {(beam, name): [] for beam in BEAMS for name in searches}
        outputs: dict[tuple[str, str], list[list[int]]] = {}
        for block in range(args.blocks):
            for (beam, name), times in seconds.items():
                time.sleep(REST)
                start = time.perf_counter()
                outputs[beam, name] = searches[name](BEAMS[beam])
                times.append(time.perf_counter() - start)
            print(
                f"block {block + 1}: " + ", ".join(f"{beam} {name} {times[-1]:.2f} s" for (beam, name), times in seconds.items()),
                flush=True,
            )
    for (beam, name), times in seconds.items():
        case, first = f"{beam}, {name}", outputs[beam, f"mt {args.precision[0]}"]
        result["lines_per_second"][case] = speed = speed_of(times, len(parts))
        result["same"][case] = same = sum(a == b for a, b in zip(outputs[beam, name], first, strict=True)) / len(parts)
        result["ratios"] |= {
            f"{beam}, {own} / {name}": speed_of(seconds[beam, own], len(parts)) / speed for own in models if name in theirs
        }
        scored = ""
        if args.ref:
            result["bleu"][case] = bleu = bleu_of(translator, parts, outputs[beam, name], args)
            scored = f", BLEU {bleu:.2f}"
        print(f"{case:22} {speed:8.1f} lines/s, {100 * same:.1f} % as {args.precision[0]}{scored}")
    for name, ratio in result["ratios"].items():
        print(f"{name}: {ratio:.2f}")
    return result


def bleu_of(translator: Translator, parts: Sequence[Part], outputs: Sequence[list[int]], args: argparse.Namespace) -> float:
    """Of outputs in the order of their parts."""
    found: dict[int, list[tuple[int, list[int]]]] = {}
    for part, ids in zip(parts, outputs, strict=True):
        found.setdefault(part.line, []).append((part.place, ids))
    references = list(read_lines(args.ref))
    texts = [" ".join(translator.tokenizers.tgt.decode(ids) for _, ids in sorted(found.get(line, []))) for line in range(len(references))]
    return score(texts, [references], metrics=("bleu",), lang=translator.langs.tgt if translator.langs else None).metrics[0].score
