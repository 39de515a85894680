#!/usr/bin/env python3
"""Benchmarks. Times on a shared machine are noisy, so they are measured interleaved, in one run, and reported as a ratio where that can be.

bench.py train   real target tokens a second of the training step, on random ids with the lengths of a corpus, against a yardstick program
bench.py memory  peak memory of the training step with gradient checkpointing and without
bench.py decode  lines a second, on a trained run: greedy search with the cache against without it, or mt against CTranslate2 (--ct2)
bench.py serve   lines a second of many clients of `mt serve` against one that asks line by line; more clients than it takes
bench.py data    time and memory to prepare generated corpora of some sizes, to go through an epoch, and to seek in it
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any


def bench(args: argparse.Namespace) -> dict[str, Any]:
    """The figures of a benchmark. (What `data` measures is memory, too: the model, and torch with it, is not loaded for it.)"""
    if args.name == "data":
        from bench_data import bench_data

        return bench_data(args)
    if args.name == "decode":
        from bench_decode import bench_ct2, bench_decode

        return bench_ct2(args) if args.ct2 else bench_decode(args)
    if args.name == "serve":
        from bench_serve import bench_serve

        return bench_serve(args)
    from bench_model import bench_memory, bench_train

    return {"train": bench_train, "memory": bench_memory}[args.name](args)


def parser() -> argparse.ArgumentParser:
    """The options of all benchmarks."""
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(required=True, dest="name")
    train = commands.add_parser("train", help="speed of the training step")
    train.add_argument("--yardstick", metavar="PROGRAM", help="program to compare with; gets the same options")
    memory = commands.add_parser("memory", help="memory of the training step")
    for command in (train, memory):
        command.add_argument("--lengths", required=True, help="file of `source target` lengths, a pair a line, both counting EOS")
        for name, default in {"vocab": 8000, "dim": 256, "ffn": 1024, "heads": 4, "layers": 3, "batch-tokens": 4096}.items():
            command.add_argument(f"--{name}", type=int, default=default)
        command.add_argument("--dropout", type=float, default=0.3)
        command.add_argument("--updates", type=int, default=30, help="of one block")
    decode = commands.add_parser("decode", help="speed of searches")
    decode.add_argument("--model", required=True, metavar="RUN")
    decode.add_argument("--src", required=True)
    decode.add_argument("--ref", help="its translation: text in, text out is timed and scored as well; with --ct2 what comes out is")
    decode.add_argument("--ct2", action="store_true", help="the same ids in the same batches through CTranslate2, float32 and int8")
    decode.add_argument("--precision", nargs="+", default=["fp32"], choices=["fp32", "bf16"], help="with --ct2: of mt's own")
    serve = commands.add_parser("serve", help="speed of a server under load")
    serve.add_argument("--model", required=True, metavar="RUN")
    serve.add_argument("--src", required=True, help="lines that are asked for")
    serve.add_argument("--requests", type=int, default=5000)
    serve.add_argument("--clients", type=int, default=64)
    serve.add_argument("--one-by-one", type=int, default=500, help="lines of the client that asks line by line")
    serve.add_argument("--overload", type=int, default=400, help="requests at once")
    serve.add_argument("--threads", type=int, default=os.cpu_count())
    for command in (train, memory, decode):
        command.add_argument("--blocks", type=int, default=5)
        command.add_argument("--threads", type=int, default=os.cpu_count())
    data = commands.add_parser("data", help="time and memory of preparing and reading corpora")
    data.add_argument("--pairs", required=True, metavar="N[,N…]", help="sizes of the corpora, such as 1000000,3000000,10000000")
    data.add_argument("--folder", metavar="DIR", help="where corpora and caches are made; left out: a temporary folder (2.5 GB a million)")
    data.add_argument("--workers", type=int, default=0, help="processes that make batches")
    for command in (train, memory, decode, serve, data):
        command.add_argument("--json", metavar="OUT", help="write the figures here")
    return top


def main() -> None:
    """Run one benchmark and write its figures."""
    args = parser().parse_args()
    result = bench(args)
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
