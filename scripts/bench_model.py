"""`bench.py train` and `memory`: speed and memory of the training step."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flops import Dimensions
from torch import Tensor

from mt.config.schema import ModelConfig, TrainConfig
from mt.data.batches import Batch, padded
from mt.data.plan import Order, Span
from mt.model.loss import LossOfBatch
from mt.model.process import TRAINED, keep_few_primitives, keep_freed_memory
from mt.model.transformer import Transformer
from mt.train.precision import choose_precision
from mt.train.state import State
from mt.train.update import update

PAD, BOS, FIRST = 0, 2, 4


# ── training ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Shape:
    """What is trained: the options that the yardstick has too, under its names."""

    lengths: str
    vocab: int
    dim: int
    ffn: int
    heads: int
    layers: int
    dropout: float
    batch_tokens: int
    updates: int
    threads: int

    def options(self) -> list[str]:
        """As command-line options."""
        return [text for name, value in vars(self).items() for text in (f"--{name.replace('_', '-')}", str(value))]


def random_batches(shape: Shape) -> Iterator[Batch]:
    """Endless batches of random ids, cut by mt's own plan. A line of the lengths file is `source target`, both counting EOS."""
    lengths_N2 = np.loadtxt(shape.lengths, dtype=np.int64)
    order = Order(lengths_N2 - 1, [Span(0, len(lengths_N2))], budget=shape.batch_tokens, seed=1)
    plan = [batch for window in range(order.windows) for batch in order.batches(0, window)]
    rng = np.random.default_rng(1)

    def rows(sizes: Sequence[int]) -> Tensor:
        return padded([rng.integers(FIRST, shape.vocab, n).tolist() for n in sizes], pad=PAD)

    while True:
        for indices in plan:
            src_BS, gold_BT = rows(lengths_N2[indices, 0].tolist()), rows(lengths_N2[indices, 1].tolist())
            inputs_BT = torch.cat([torch.full((len(indices), 1), BOS), gold_BT[:, :-1]], dim=1)
            tokens, src_tokens = int(lengths_N2[indices, 1].sum()), int(lengths_N2[indices, 0].sum())
            yield Batch(src_BS, inputs_BT, gold_BT, tokens=tokens, src_tokens=src_tokens, origins=())


def train_block(shape: Shape, precision: str, checkpointing: bool = False, warmup: int = 4) -> tuple[float, float]:
    """One block in a process of its own: (real target tokens a second, peak memory in MB)."""
    torch.set_num_threads(shape.threads)
    torch.manual_seed(0)
    keep_freed_memory()
    keep_few_primitives(TRAINED)
    device = torch.device("cpu")
    model_cfg = ModelConfig(
        dim=shape.dim,
        ffn=shape.ffn,
        heads=shape.heads,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        dropout=shape.dropout,
        gradient_checkpointing=checkpointing,
    )
    cfg = TrainConfig(precision=precision)  # type: ignore[arg-type]
    model = Transformer.build(model_cfg, src_vocab=shape.vocab, tgt_vocab=shape.vocab, joint=True)
    loss = LossOfBatch(model, smoothing=cfg.label_smoothing, pad=PAD).train()
    state = State(loss, cfg, precision=choose_precision(cfg.precision, device), device=device, origin={})
    batches, tokens, start = random_batches(shape), 0, 0.0
    for step in range(warmup + shape.updates):
        if step == warmup:
            start = time.perf_counter()
        event = update(state, [next(batches)], cfg=cfg, lr=1e-4, start=time.perf_counter())
        tokens += event.tokens if step >= warmup else 0
    return tokens / (time.perf_counter() - start), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def yardstick_block(program: str, shape: Shape) -> tuple[float, float]:
    """One block of the yardstick program: (real target tokens a second, peak memory in MB)."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, program, *shape.options(), "--blocks", "1", "--json", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        result = json.loads(out.read_text(encoding="utf-8"))
    return result["target_tokens_per_second"], result["peak_rss_mb"]


def matrix_peak(shape: Shape, dtype: torch.dtype) -> float:
    """GFLOP/s of matrix products: the best of those of the feed-forward layer and of a large square one."""
    torch.set_num_threads(shape.threads)
    rates = []
    for m, k, n in ((shape.batch_tokens, shape.dim, shape.ffn), (shape.batch_tokens, shape.ffn, shape.dim), (2048, 2048, 2048)):
        x, w = torch.randn(m, k, dtype=dtype), torch.randn(k, n, dtype=dtype)
        rates.append(2 * m * k * n / min(timed(lambda x=x, w=w: x @ w) for _ in range(20)))
    return max(rates) / 1e9


def flops_a_token(shape: Shape) -> float:
    """Operations that training takes for each real target token of the corpus, as `flops.py` counts them."""
    src_N, tgt_N = torch.from_numpy(np.loadtxt(shape.lengths, dtype=np.int64)).unbind(1)
    dimensions = Dimensions(shape.dim, 2 * shape.dim * shape.ffn, shape.layers, shape.layers, shape.vocab)
    return dimensions.training_flops(src_N, tgt_N) / int(tgt_N.sum())


def timed(work: Callable[[], Any]) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bench_train(args: argparse.Namespace) -> dict[str, Any]:
    """Blocks of mt (auto and fp32) and of the yardstick in turn; medians, and ratios to the yardstick."""
    shape = Shape(**{name: getattr(args, name) for name in Shape.__dataclass_fields__})
    found: dict[str, list[tuple[float, float]]] = {"auto": [], "fp32": [], "yardstick": []}
    for block in range(args.blocks):
        for precision in ("auto", "fp32"):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found[precision].append(pool.submit(train_block, shape, precision).result())
        if args.yardstick:
            found["yardstick"].append(yardstick_block(args.yardstick, shape))
        print(f"block {block + 1}: " + ", ".join(f"{name} {runs[-1][0]:.0f}" for name, runs in found.items() if runs), flush=True)
    speeds = {name: statistics.median(speed for speed, _ in runs) for name, runs in found.items() if runs}
    memory = {name: max(peak for _, peak in runs) for name, runs in found.items() if runs}
    ratios = {name: speeds[name] / speeds["yardstick"] for name in ("auto", "fp32")} if args.yardstick else {}
    print(f"{'':10} {'tokens/s':>9} {'peak MB':>8} {'ratio':>6}")
    for name, speed in speeds.items():
        print(f"{name:10} {speed:9.0f} {memory[name]:8.0f} {ratios.get(name, 1.0):6.2f}")
    resolved = {name: choose_precision(name, torch.device("cpu")) for name in ("auto", "fp32")}
    flops = flops_a_token(shape)
    peaks = {name: matrix_peak(shape, {"bf16": torch.bfloat16}.get(kind, torch.float32)) for name, kind in resolved.items()}
    shares = {name: speeds[name] * flops / 1e9 / peak for name, peak in peaks.items()}
    for name, share in shares.items():
        use = f"{share:.0%} of the {peaks[name]:.0f} GFLOP/s that its matrix products reach by themselves"
        print(f"{name} is {resolved[name]} here: {flops / 1e6:.1f} MFLOP a target token, {use}")
    blocks = {name: [speed for speed, _ in runs] for name, runs in found.items() if runs}
    facts = {"auto_is": resolved["auto"], "matrix_gflops": peaks, "share_of_peak": shares, "torch": torch.__version__}
    return {"target_tokens_per_second": speeds, "ratios": ratios, "peak_rss_mb": memory, "blocks": blocks, "shape": vars(shape), **facts}


def bench_memory(args: argparse.Namespace) -> dict[str, Any]:
    """Blocks with and without gradient checkpointing in turn, in bf16 or fp32 as `auto` has it; medians of speed and of peak memory."""
    shape = Shape(**{name: getattr(args, name) for name in Shape.__dataclass_fields__})
    nothing = Shape(**{**vars(shape), "updates": 1, "batch_tokens": 64})
    found: dict[str, list[tuple[float, float]]] = {"without": [], "with": [], "model alone": []}
    for block in range(args.blocks):
        for name, one, checkpointing in (("without", shape, False), ("with", shape, True), ("model alone", nothing, False)):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found[name].append(pool.submit(train_block, one, "auto", checkpointing).result())
        print(f"block {block + 1}: " + ", ".join(f"{name} {runs[-1][1]:.0f} MB" for name, runs in found.items()), flush=True)
    speeds, peaks = ({name: statistics.median(run[i] for run in runs) for name, runs in found.items()} for i in (0, 1))
    taken = {name: peaks[name] - peaks["model alone"] for name in ("without", "with")}
    ratios = {"memory": taken["with"] / taken["without"], "speed": speeds["with"] / speeds["without"]}
    for name in taken:
        print(f"{name:8} checkpointing: {peaks[name]:6.0f} MB, {taken[name]:6.0f} of it for the batch; {speeds[name]:6.0f} tokens/s")
    print(f"with checkpointing {ratios['memory']:.2f} of the memory for the batch, at {ratios['speed']:.2f} of the speed")
    return {"peak_rss_mb": peaks, "batch_mb": taken, "target_tokens_per_second": speeds, "ratios": ratios, "shape": vars(shape)}
