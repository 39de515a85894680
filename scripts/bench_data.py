"""`bench.py data`: what it takes to check a corpus, prepare it, go through an epoch of it, and seek in it, in seconds and in memory.

Each phase is a process of its own (`bench_data.py PHASE FOLDER`) that does what `mt train` does and prints its figures as JSON. Meanwhile
the anonymous memory of it and of all processes below it is looked at twenty times a second: the sum of RssAnon, which counts what processes
share in each of them, and of Pss_Anon, which counts it once. Mapped files, which the system can drop at any time, are in neither.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

PHASES = ("check", "tokenizer", "store", "epoch", "seek")
EVERY = 0.05  # seconds between two looks at the memory
SEEKS = 5
CONFIG = """\
langs: {src: xx, tgt: yy}
data:
  train: [{src: train.xx, tgt: train.yy}]
  dev: none
  cache: cache
  filters: {duplicates: exact, copies: true, max_ratio: 6}
train: {batch_tokens: 4096}
"""


def bench_data(args: argparse.Namespace) -> dict[str, Any]:
    """All phases for each size; the corpora go with the temporary folder."""
    sizes = {}
    with tempfile.TemporaryDirectory(prefix="mt-bench-", dir=args.folder) as folder:
        for pairs in map(int, args.pairs.split(",")):
            where = Path(folder) / str(pairs)
            sizes[str(pairs)] = bench_size(where, pairs, workers=args.workers)
            shutil.rmtree(where)
    print_table(sizes)
    return {"sizes": sizes, "cores": len(os.sched_getaffinity(0)), "workers": args.workers}


def bench_size(folder: Path, pairs: int, *, workers: int) -> dict[str, Any]:
    """The phases for a corpus of so many pairs."""
    start = time.perf_counter()
    folder.mkdir(parents=True)
    text_bytes = write_corpus(folder, pairs)
    (folder / "bench.yaml").write_text(CONFIG, encoding="utf-8")
    print(f"{pairs} pairs: {text_bytes / 1e6:.0f} MB of text written in {time.perf_counter() - start:.0f} s", flush=True)
    result: dict[str, Any] = {"text_bytes": text_bytes}
    for phase in PHASES:
        result[phase] = measured([sys.executable, __file__, phase, str(folder), "--workers", str(workers)])
        print(f"  {phase}: {json.dumps(result[phase])}", flush=True)
    return result


def print_table(sizes: dict[str, Any]) -> None:
    """One row for each size."""
    columns = {
        "pairs": lambda n, _: n,
        "check s": lambda _, r: f"{r['check']['seconds']:.0f}",
        " MB": lambda _, r: f"{r['check']['peak_anonymous_mb']:.0f}",
        "tokenizer s": lambda _, r: f"{r['tokenizer']['seconds']:.0f}",
        "MB": lambda _, r: f"{r['tokenizer']['peak_anonymous_mb']:.0f}",
        "store s": lambda _, r: f"{r['store']['seconds']:.0f}",
        "pairs/s": lambda _, r: f"{r['store']['pairs_per_second']:.0f}",
        "MB ": lambda _, r: f"{r['store']['peak_anonymous_mb']:.0f}",
        "plan s": lambda _, r: f"{r['epoch']['plan_seconds']:.1f}",
        "tokens/s": lambda _, r: f"{r['epoch']['target_tokens_per_second']:.0f}",
        "MB  ": lambda _, r: f"{r['epoch']['peak_anonymous_mb']:.0f}",
        "seek s": lambda _, r: f"{r['seek']['slowest_seconds']:.2f}",
    }
    print("  ".join(f"{name.strip():>11}" for name in columns))
    for pairs, result in sizes.items():
        print("  ".join(f"{cell(pairs, result):>11}" for cell in columns.values()))


# ── a corpus ────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_corpus(folder: Path, pairs: int, *, block: int = 50_000) -> int:
    """train.xx and train.yy: words by Zipf's law, about ten a line and 60 bytes a side, one pair in 50 a copy of another; their bytes."""
    rng = np.random.default_rng(1)
    vocabularies = [words(rng, 200_000) for _ in range(2)]
    ranks = np.cumsum(1 / np.arange(1, 200_001))
    total = 0
    with open(folder / "train.xx", "wb") as src, open(folder / "train.yy", "wb") as tgt:
        for start in range(0, pairs, block):
            count = min(block, pairs - start)
            lengths = np.clip(np.exp(rng.normal(2.15, 0.5, count)), 1, 80)
            repeats = rng.random(count) < 0.02
            for file, vocabulary in ((src, vocabularies[0]), (tgt, vocabularies[1])):
                counts = np.maximum(1, np.rint(lengths * np.exp(rng.normal(0, 0.15, count)))).astype(int)
                drawn = np.searchsorted(ranks, rng.random(counts.sum()) * ranks[-1]).tolist()
                line, lines = 0, []
                for length in counts.tolist():
                    lines.append(" ".join([vocabulary[i] for i in drawn[line : line + length]]))
                    line += length
                for place in np.flatnonzero(repeats).tolist():
                    lines[place] = lines[place // 2]
                total += file.write(("\n".join(lines) + "\n").encode())
    return total


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Invented words, the frequent ones shorter."""
    syllables = ["".join(s) for s in zip(rng.choice(list("bcdfghklmnprstvw"), 900), rng.choice(list("aeiouäéy"), 900), strict=True)]
    endings = ["", "n", "s", "r", "st", "ng"]
    picks, ends = rng.integers(0, 900, (count, 5)), rng.integers(0, len(endings), count)
    sizes = np.clip(np.log10(np.arange(1, count + 1)) * 0.75 + rng.random(count), 1, 5).astype(int)
    return [
        "".join([syllables[i] for i in row[:n]]) + endings[e]
        for row, n, e in zip(picks.tolist(), sizes.tolist(), ends.tolist(), strict=True)
    ]


# ── memory ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def measured(command: list[str]) -> dict[str, Any]:
    """The figures that a command prints, and the peak of its memory."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    peak = {"rss": 0, "pss": 0, "processes": 0}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(EVERY):
            below = [*tree(process.pid)]
            peak["rss"] = max(peak["rss"], sum(field(pid, "status", "RssAnon:") for pid in below))
            peak["pss"] = max(peak["pss"], sum(field(pid, "smaps_rollup", "Pss_Anon:") for pid in below))
            peak["processes"] = max(peak["processes"], len(below))

    watch = threading.Thread(target=look)
    watch.start()
    output = process.communicate()[0]
    ended.set()
    watch.join()
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    memory = {"peak_anonymous_mb": peak["rss"] / 1024, "peak_anonymous_shared_once_mb": peak["pss"] / 1024, "processes": peak["processes"]}
    return {**json.loads(output.splitlines()[-1]), **memory}


def tree(root: int) -> Iterator[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += parents.get(pid, [])


def field(pid: int, file: str, name: str) -> int:
    """Kilobytes in a line of a file under /proc; 0 if the process is gone, or the file may not be read."""
    try:
        text = Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(name)), 0)


# ── phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that it takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def run_phase(phase: str, folder: Path, *, workers: int) -> dict[str, Any]:
    """Do what `mt data check` or `mt train` does in this phase; its figures."""
    if phase == "check":
        return check(folder)
    from mt.config.load import load
    from mt.data.cachedir import CacheDir
    from mt.launch import inputs
    from mt.launch.sources import fingerprints
    from mt.rundir import RunDir
    from mt.tokenizer.of_run import load_tokenizers

    config = load(folder / "bench.yaml", [f"run_dir={folder / 'run'}"]).config
    run, cache = RunDir(folder / "run"), CacheDir(config.data.cache)
    run.data.mkdir(parents=True, exist_ok=True)
    hashing, prints = timed(lambda: fingerprints(config, cache))
    if phase == "tokenizer":
        seconds, _ = timed(lambda: inputs.fit_tokenizers(config, run, cache, prints, say=say))
        return {"seconds": seconds, "hashing_seconds": hashing}
    tokenizers = load_tokenizers(run, joint=True)
    seconds, store = timed(lambda: inputs.obtain_store(config, cache, prints, tokenizers, say=say))
    if phase == "store":
        (tally,) = store.tallies.values()
        size = sum(file.stat().st_size for file in store.path.iterdir())
        return {
            "seconds": seconds,
            "pairs_per_second": tally.total / seconds,
            "kept": tally.kept,
            "dropped": dict(tally.dropped),
            "bytes": size,
        }
    data = inputs.training_data(config, store, tokenizers, workers=workers)
    return epoch(data, seconds) if phase == "epoch" else seeks(data)


def check(folder: Path) -> dict[str, Any]:
    """The data doctor over all of it; what it found, by name."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "mt", "data", "check", "--config", str(folder / "bench.yaml"), "--json", str(report)]
    seconds, done = timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=False))
    return {"seconds": seconds, "exit_code": done.returncode, "findings": [f["kind"] for f in json.loads(report.read_bytes())["findings"]]}


def epoch(data: Any, opening: float) -> dict[str, Any]:
    """Plan the first epoch, then go through it."""
    from mt.data.plan import Cursor

    planning, measure = timed(data.order.measure)
    batches = tokens = 0
    start = time.perf_counter()
    for micro, after in data.groups(Cursor(), size=1):
        batches += len(micro)
        tokens += sum(batch.tokens for batch in micro)
        if after.epoch:
            break
    seconds = time.perf_counter() - start
    assert abs(batches - measure.batches) <= 0.01 * batches, (batches, measure)
    return {
        "opening_seconds": opening,
        "plan_seconds": planning,
        "seconds": seconds,
        "batches": batches,
        "target_tokens_per_second": tokens / seconds,
        "real_tokens": measure.real / measure.padded,
    }


def seeks(data: Any) -> dict[str, Any]:
    """From any place in an epoch to its batch, nothing being known of the window before."""
    from mt.data.plan import Cursor

    rng, windows, found = random.Random(1), data.order.windows, []
    for _ in range(SEEKS):
        vars(data).pop("order", None)
        cursor = Cursor(rng.randrange(5), rng.randrange(windows), rng.randrange(10))
        seconds, _ = timed(lambda cursor=cursor: next(data.groups(cursor, size=1)))
        found.append(seconds)
    return {"seconds": found, "slowest_seconds": max(found)}


def say(line: str) -> None:
    """To stderr."""
    print(f"    {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("phase", choices=PHASES)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--workers", type=int, default=0)
    given = arguments.parse_args()
    print(json.dumps(run_phase(given.phase, given.folder, workers=given.workers)))
