"""What `gpu_check.py` measures with: configs/base.yaml on a corpus, and mt's own updates of it."""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from flops import Dimensions, peak_of
from torch.profiler import ProfilerActivity, profile

from mt.config.load import load
from mt.config.schema import Config
from mt.data.batches import Batch
from mt.launch.prepare import Prepared, prepare
from mt.train.compiled import compile_layers
from mt.train.events import Update
from mt.train.loop import AHEAD, rate_of
from mt.train.update import Begun, begin, finish

ROOT = Path(__file__).resolve().parents[1]
TOY = (
    "model={dim: 32, ffn: 64, heads: 4, encoder_layers: 2, decoder_layers: 2, norm: post, dropout: 0.1}",
    "tokenizer.vocab_size=400",
    "train.batch_tokens=800",
    "train.schedule.warmup=20",
    "decode.max_length_extra=5",
)


@dataclass(frozen=True)
class Setting:
    """What is measured on."""

    folder: Path
    """Holds the corpus, the cache, and a run for each thing that is prepared."""
    src: Path
    tgt: Path
    device: str
    tiny: bool

    @property
    def precisions(self) -> tuple[str, ...]:
        """Those there are: mt has no fp16 without CUDA."""
        return ("fp32", "bf16", "fp16") if self.device == "cuda" else ("fp32", "bf16")

    def updates(self, full: int) -> int:
        """So many, or a few."""
        return max(4, full // 40) if self.tiny else full

    def overrides(self, *more: str) -> list[str]:
        """Settings of configs/base.yaml that are others here."""
        files = f"{{src: {json.dumps(str(self.src))}, tgt: {json.dumps(str(self.tgt))}}}"
        here = [f"data.train=[{files}]", "data.dev=none", "data.test={}", f"data.cache={self.folder / 'cache'}", "train.average.last=0"]
        return [*here, "train.schedule.warmup=400", *(TOY if self.tiny else ()), *more]

    def config(self, name: str, *more: str) -> Config:
        """configs/base.yaml on this corpus."""
        return load(ROOT / "configs" / "base.yaml", [*self.overrides(*more), f"run_dir={self.folder / name}"]).config

    def prepared(self, name: str, *more: str) -> Prepared:
        """A run, ready to train; tokenizer and store come from the cache from the second on."""
        (self.folder / name).mkdir()
        made = prepare(self.config(name, *more), device=self.device, say=lambda _line: None)
        made.state.share()
        return made


# ── a corpus ────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_corpus(folder: Path, *, pairs: int) -> tuple[Path, Path]:
    """A corpus of invented words with the lengths of Multi30k: about 12 words a sentence, some words often and most rarely."""
    rng = random.Random(1)
    consonants, vowels = "bcdfghklmnprstvwz", "aeiou"
    sides = [
        ["".join(rng.choice(kind) for _ in range(rng.randint(1, 5)) for kind in (consonants, vowels)) for _ in range(10_000)] for _ in "st"
    ]
    weights = [1 / (10 + rank) for rank in range(10_000)]
    chosen = [rng.choices(range(10_000), weights, k=min(40, max(3, round(rng.gauss(12, 4))))) for _ in range(pairs)]
    paths = folder / "train.src", folder / "train.tgt"
    for path, words in zip(paths, sides, strict=True):
        path.write_text("".join(" ".join(words[i] for i in line) + " .\n" for line in chosen), encoding="utf-8", newline="\n")
    return paths


# ── measuring ───────────────────────────────────────────────────────────────────────────────────────────────────────


def train(made: Prepared, count: int) -> Iterator[tuple[Update, Sequence[Batch]]]:
    """Updates as mt's own loop makes them, on mt's own batches, each with what it was made from."""
    state, cfg = made.state, made.config.train
    groups = made.data.groups(state.progress.cursor, size=cfg.accumulate)
    first, ahead, waited = state.progress.update + 1, deque[Begun](), 0.0
    start = time.perf_counter()
    for number in range(first, first + count):
        asked = time.perf_counter()
        micro, after = next(groups)
        waited += time.perf_counter() - asked
        ahead.append(begin(state, micro, cfg=cfg, lr=rate_of(state, cfg, made.plan, number), number=number, after=after))
        while len(ahead) > (AHEAD[state.device.type] if number < first + count - 1 else 0):
            begun = ahead.popleft()
            yield finish(state, begun, start=start, waited=waited), begun.micro
            start, waited = time.perf_counter(), 0.0
    groups.close()


def synchronised(device: torch.device) -> float:
    """The clock, once a device has done all that it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def speed_of(made: Prepared, *, updates: int, warm: int) -> dict[str, Any]:
    """Speed of so many updates after the first `warm`, with and without the wait for data, and what of the device they use."""
    device, tokenizers = made.state.device, made.data.tokenizers
    shape = Dimensions.of(made.config.model, vocab=tokenizers.tgt.size)
    rounds = train(made, warm + updates)
    for _ in range(warm):
        next(rounds)
    start = synchronised(device)
    found = list(rounds)
    seconds = synchronised(device) - start
    events, batches = [event for event, _ in found], [batch for _, micro in found for batch in micro]
    busy = seconds - sum(event.waited for event in events)
    tokens, source = sum(event.tokens for event in events), sum(event.src_tokens for event in events)
    real, padded = (sum(shape.of_batch(batch, pad=tokenizers.tgt.pad, padding=padding) for batch in batches) for padding in (False, True))
    peak = peak_of(name_of(device))
    return {
        "target tokens/s": tokens / seconds,
        "target tokens/s without waiting": tokens / busy,
        "source and target tokens/s": (tokens + source) / seconds,
        "ms an update": 1000 * seconds / updates,
        "waited for data": 1 - busy / seconds,
        "FLOP a target token": real / tokens,
        "TFLOP/s": real / busy / 1e12,
        "utilisation": real / busy / peak if peak else "unknown",
        "of it with padding": padded / busy / peak if peak else "unknown",
        "loss": events[-1].loss,
        "skipped": sum(event.skipped for event in events),
    }


def name_of(device: torch.device) -> str:
    """What a device calls itself."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def compiled(made: Prepared) -> None:
    """As with `train.compile`; on a CPU, where compiling takes long, only what torch makes of the layers before. Raises if it fails."""
    state = made.state
    if state.device.type == "cuda":
        said: list[str] = []
        compile_layers(state, cfg=made.config.train, say=said.append)
        if said:
            raise RuntimeError(said[0])
        return
    for layer in (*state.model.encoder, *state.model.decoder):
        layer.compile(dynamic=True, backend="eager")


def peak_memory(work: Callable[[], object], device: torch.device) -> int:
    """Bytes that are allocated at most while it works, beyond those there were."""
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    assert seen.profiler is not None
    changes = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(accumulate(event.nbytes() for event in sorted(changes, key=lambda event: event.start_ns())))
