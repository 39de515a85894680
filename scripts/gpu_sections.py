"""The sections of `gpu_check.py`: generators of (name, figures), so that one that is cut short has told what it had."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from flops import peak_of
from gpu_measure import ROOT, Setting, compiled, name_of, peak_memory, speed_of, synchronised, train
from torch.profiler import ProfilerActivity, profile

from mt.decode.engine import ModelStep
from mt.decode.parts import Part, batches_of
from mt.files import read_lines
from mt.search.greedy import greedy_search
from mt.search.step import Suppress
from mt.train.events import Update
from mt.translator import PRECISIONS, Translator

LOSS_TOLERANCE = {"first": 0.005, "last": 0.02}
"""How far from fp32 a loss may be, relative: that of the first update, and the mean of the last tenth."""
KERNELS = ("flash", "efficient", "cudnn", "math", "products")
"""Kinds of attention, each a part of the names of its operations; products are mt's own, on a CPU."""

Figures = Iterator[tuple[str, Any]]


def device(setting: Setting) -> Figures:
    """What is measured, and where."""
    start = time.perf_counter()
    made = setting.prepared("device")
    where, sides = made.state.device, made.data.tokenizers
    yield "name", name_of(where)
    yield "bf16 TFLOP/s at most", (peak_of(name_of(where)) or 0) / 1e12 or "unknown"
    if where.type == "cuda":
        yield "memory GiB", torch.cuda.get_device_properties(where).total_memory / 2**30
        yield "devices", torch.cuda.device_count()
        yield "CUDA", torch.version.cuda
    yield "torch", torch.__version__
    yield "precision auto", made.state.precision
    yield "parameters", sum(p.numel() for p in made.state.model.parameters())
    yield "pieces", sides.tgt.size
    yield "pairs", len(made.data.store)
    yield "updates an epoch", made.updates_per_epoch
    yield "real tokens of a batch", made.epoch.real / made.epoch.padded
    yield "seconds to prepare", time.perf_counter() - start


def speed(setting: Setting) -> Figures:
    """Training in each precision, as it is."""
    for precision in sorted(setting.precisions):
        count = setting.updates(60 if precision == "fp32" else 240)
        yield precision, speed_of(setting.prepared(precision, f"train.precision={precision}"), updates=count, warm=setting.updates(20))


def losses(setting: Setting) -> Figures:
    """Losses in all precisions from the same start, without dropout; they have to be those of fp32 within a tolerance."""
    count, found = setting.updates(80), {}
    for precision in setting.precisions:
        made = setting.prepared(f"loss-{precision}", f"train.precision={precision}", "model.dropout=0")
        told = [event.loss for event, _ in train(made, count) if not event.skipped]
        tail = told[-max(1, len(told) // 10) :]
        found[precision] = {"first": told[0], "last": sum(tail) / len(tail)}
        apart = {name: abs(value / found["fp32"][name] - 1) for name, value in found[precision].items()}
        agrees = all(apart[name] <= LOSS_TOLERANCE[name] for name in apart)
        yield precision, {**found[precision], **{f"{name}, off fp32 by": value for name, value in apart.items()}, "agrees": agrees}
    yield "tolerance", LOSS_TOLERANCE


def memory(setting: Setting) -> Figures:
    """Memory of an update with and without gradient checkpointing, beyond weights and optimiser, and what it costs in time."""
    for wanted in ("false", "true"):
        made = setting.prepared(f"memory-{wanted}", "train.precision=bf16", f"model.gradient_checkpointing={wanted}")
        list(train(made, 1))  # now the optimiser has its moments
        taken = peak_memory(lambda made=made: list(train(made, 3)), made.state.device)  # type: ignore[misc]
        measured = speed_of(made, updates=setting.updates(60), warm=2)
        name = "with checkpointing" if wanted == "true" else "without"
        yield name, {"peak MiB": taken / 2**20, "target tokens/s": measured["target tokens/s without waiting"], "loss": measured["loss"]}


def attention(setting: Setting) -> Figures:
    """Which kernels an update calls for attention, by the profiler, and how often: by kind, and by their names."""
    for precision in setting.precisions:
        made = setting.prepared(f"attention-{precision}", f"train.precision={precision}")
        list(train(made, 2))
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            list(train(made, 1))
        names = re.compile("_scaled_dot_product_|^AttentionByProducts")
        calls = Counter({event.key: event.count for event in seen.key_averages() if names.search(event.key)})
        kinds = Counter({kind: sum(n for name, n in calls.items() if kind in name.lower()) for kind in KERNELS})
        yield precision, {**kinds, **{name.removeprefix("aten::"): n for name, n in calls.items()}}


def synchronisation(setting: Setting) -> Figures:
    """How often an update makes the host wait for the device, and where."""
    made = setting.prepared("synchronisation", "train.precision=bf16")
    if made.state.device.type != "cuda":
        list(train(made, 1))
        yield "waits an update", "there is no device to wait for"
        return
    list(train(made, 3))
    count = setting.updates(40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            list(train(made, count))
        finally:
            torch.cuda.set_sync_debug_mode("default")
    places = Counter(f"{Path(one.filename).name}:{one.lineno}" for one in caught if "synchroniz" in str(one.message))
    yield "waits an update", sum(places.values()) / count
    yield "where", {place: number / count for place, number in places.most_common()}


def decoding(setting: Setting) -> Figures:
    """Greedy search over lines of the corpus, to as many pieces as each has: where a model that has learnt little ends says nothing."""
    made = setting.prepared("decoding", "train.precision=bf16")
    list(train(made, setting.updates(200)))
    lines = [line for line, _ in zip(read_lines(setting.src), range(40 if setting.tiny else 2000), strict=False)]
    outputs: dict[str, list[list[int]]] = {}
    for precision in ("fp32", "bf16"):
        model = copy.deepcopy(made.state.model).narrowed(PRECISIONS[precision]).eval()
        translator = Translator(model, made.data.tokenizers, config=made.config, device=made.state.device)
        searched(translator, lines[:10])
        start = synchronised(made.state.device)
        outputs[precision] = searched(translator, lines)
        seconds = synchronised(made.state.device) - start
        same = sum(a == b for a, b in zip(outputs["fp32"], outputs[precision], strict=True)) / len(lines)
        tokens = sum(map(len, outputs[precision]))
        yield precision, {"lines/s": len(lines) / seconds, "tokens/s": tokens / seconds, "as in fp32": same}


@torch.inference_mode()
def searched(translator: Translator, lines: Sequence[str]) -> list[list[int]]:
    """What greedy search finds, in batches as `mt translate` makes them, with the end mark suppressed up to the length of the source."""
    src, tgt = translator.tokenizers
    parts = [Part(0, 0, ids) for own in translator.encoded(lines) for ids in own]
    found: list[list[int]] = []
    for batch in batches_of(sorted(parts, key=lambda part: -len(part.ids)), budget=translator.config.decode.batch_tokens, extra=1):
        step = ModelStep(translator.model, translator.engine.device)
        state = step.start([[*part.ids, src.eos] for part in batch], pad=src.pad)
        hidden = Suppress(step, (tgt.pad, tgt.bos, tgt.unk, tgt.eos))
        best = greedy_search(hidden, state, bos=tgt.bos, eos=tgt.eos, limits=[len(part.ids) + 1 for part in batch])
        found += [one.ids for one in best]
    return found


def compilation(setting: Setting) -> Figures:
    """`train.compile` off and on."""
    count, losses_of = setting.updates(80), {}
    for name in ("off", "on"):
        made = setting.prepared(f"compile-{name}", "train.precision=bf16", "model.dropout=0")
        start = synchronised(made.state.device)
        if name == "on":
            compiled(made)
        warm = setting.updates(20)
        first = [event.loss for event, _ in train(made, warm)]
        seconds = synchronised(made.state.device) - start
        losses_of[name] = first
        apart = max(abs(a / b - 1) for a, b in zip(first, losses_of["off"], strict=True))
        yield name, {**speed_of(made, updates=count, warm=0), f"seconds of the first {warm}": seconds, "losses, off by": apart}


def ranks(setting: Setting) -> Figures:
    """Two ranks, started by torchrun, against one that makes the same updates alone."""
    if setting.device == "cuda" and torch.cuda.device_count() < 2:
        yield "two ranks", "one device: not run"
        return
    count = setting.updates(160)
    alike = ("train.precision=bf16", "model.dropout=0", f"train.max_updates={count}")
    alone = [event for event, _ in train(setting.prepared("one-rank", *alike, "train.accumulate=2"), count)]
    yield "one rank", told(alone)
    changes = [word for change in setting.overrides(*alike) for word in ("--set", change)]
    run = setting.folder / "two-ranks"
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "mt", "train", "--device", setting.device]
    where = ["--config", str(ROOT / "configs" / "base.yaml"), "--run-dir", str(run)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    done = subprocess.run([sys.executable, *command, *where, *changes], env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"two ranks ended with {done.returncode}: {done.stderr[-2000:]}")
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    together = [Update(**{name: value for name, value in line.items() if name != "event"}) for line in lines if line["event"] == "update"]
    yield "two ranks", told(together)
    apart = max(abs(a.loss / b.loss - 1) for a, b in zip(alone, together, strict=True))
    yield "losses, off by", apart


def told(events: Sequence[Update]) -> dict[str, float]:
    """Speed of updates but the first few, by their own clocks."""
    later = events[len(events) // 4 :]
    return {"target tokens/s": sum(event.tokens for event in later) / sum(event.seconds for event in later), "loss": events[-1].loss}
