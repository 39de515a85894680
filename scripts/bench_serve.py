"""`bench.py serve`: what a server takes, over real connections: lines a second of many clients against one who asks line by line.

The server is a process of its own (`mt serve`), the clients are here. The one client asks a server that waits for nobody and translates
one line at a time (`--batch-wait 0 --max-batch 1`), before and after the many. Then more clients than there are places in the queue ask at
once: who is refused, how quickly, and whether all are answered afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from mt.files import read_lines


class Answered(NamedTuple):
    """A request: its status (0: no answer), its seconds, and the translation."""

    status: int
    seconds: float
    text: str


def bench_serve(args: argparse.Namespace) -> dict[str, Any]:
    """All phases."""
    lines = [line for line in read_lines(Path(args.src)) if line.strip()]
    asked = list(islice(cycle(lines), args.requests))
    few = list(islice(cycle(lines), args.one_by_one))
    alone = ["--batch-wait", "0", "--max-batch", "1"]
    single, before, cpu_before = one_by_one(args, alone, few)
    with server(args, []) as (address, process):
        asyncio.run(clients(address, asked[:200], args.clients))  # what is made once is made
        metrics, spent = counted(address), cpu_seconds(process)
        began = time.perf_counter()
        many = asyncio.run(clients(address, asked, args.clients))
        seconds, spent = time.perf_counter() - began, cpu_seconds(process) - spent
        after = counted(address)
        overload = overloaded(address, asked, args.overload, args.clients)
    _, later, cpu_after = one_by_one(args, alone, few)
    batches = after["mt_batch_sentences_count"] - metrics["mt_batch_sentences_count"]
    sentences = after["mt_batch_sentences_sum"] - metrics["mt_batch_sentences_sum"]
    expected = {line: one.text for line, one in zip(few, single, strict=True)}
    figures = {
        "one_by_one": {"before": before, "after": later, "cpu_ms": 1000 * statistics.mean((cpu_before, cpu_after))},
        "clients": args.clients,
        "requests": len(many),
        "errors": sum(one.status != 200 for one in many),
        "differ": sum(one.text != expected[line] for line, one in zip(asked, many, strict=True) if line in expected),
        "mean_batch": sentences / batches,
        "p50_ms": 1000 * quantile([one.seconds for one in many], 0.5),
        "p95_ms": 1000 * quantile([one.seconds for one in many], 0.95),
        "lines_per_second": len(many) / seconds,
        "cpu_ms": 1000 * spent / len(many),
        "overload": overload,
        "threads": args.threads,
    }
    figures["ratios"] = {
        "batched": figures["lines_per_second"] / statistics.mean((before, later)),
        "cpu": figures["one_by_one"]["cpu_ms"] / figures["cpu_ms"],
    }
    print_table(figures)
    return figures


def one_by_one(args: argparse.Namespace, words: Sequence[str], lines: Sequence[str]) -> tuple[list[Answered], float, float]:
    """The answers, lines a second, and the server's processor time for one, in seconds."""
    with server(args, words) as (address, process):
        asyncio.run(clients(address, lines[:20], 1))
        began, spent = time.perf_counter(), cpu_seconds(process)
        found = asyncio.run(clients(address, lines, 1))
        return found, len(lines) / (time.perf_counter() - began), (cpu_seconds(process) - spent) / len(lines)


def cpu_seconds(process: int) -> float:
    """Processor time that a process has had, all its threads together: it depends less than the clock on what else the machine does."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def overloaded(address: tuple[str, int], lines: Sequence[str], at_once: int, usual: int) -> dict[str, Any]:
    """So many requests at once, each on its own connection; then as many as usual."""
    found = asyncio.run(clients(address, lines[:at_once], at_once))
    afterwards = asyncio.run(clients(address, lines[: 5 * usual], usual))
    refused = [one.seconds for one in found if one.status == 503]
    return {
        "at_once": at_once,
        "statuses": dict(Counter(str(one.status) for one in found)),
        "refused_p95_ms": 1000 * quantile(refused, 0.95) if refused else None,
        "errors_afterwards": sum(one.status != 200 for one in afterwards),
    }


def quantile(values: Sequence[float], share: float) -> float:
    """The value that so many are not above."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# ── the server ──────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def server(args: argparse.Namespace, words: Sequence[str]) -> Iterator[tuple[tuple[str, int], int]]:
    """`mt serve` with these options: its address, and the number of the process."""
    command = [sys.executable, "-m", "mt", "serve", "--model", args.model, "--port", "0", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment, bufsize=1) as process:
        assert process.stderr
        said = []
        while (address := re.search(r"at http://([^:]+):(\d+);", said[-1] if said else "")) is None:
            said.append(process.stderr.readline())
            if not said[-1]:
                raise SystemExit("".join(said))
        drained = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)  # a full pipe would hold it up
        try:
            yield (address[1], int(address[2])), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            drained.wait()


def counted(address: tuple[str, int]) -> dict[str, float]:
    """The server's metrics without labels."""
    from urllib.request import urlopen

    with urlopen(f"http://{address[0]}:{address[1]}/metrics") as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+) ([\d.e+-]+)$", text, re.MULTILINE)}


# ── the clients ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def clients(address: tuple[str, int], lines: Sequence[str], count: int) -> list[Answered]:
    """The answers to lines, asked by so many clients: each keeps its connection, and asks the next line once it has an answer."""
    found: list[Answered] = [Answered(0, 0.0, "")] * len(lines)
    rest = iter(enumerate(lines))

    async def client() -> None:
        reader, writer = await asyncio.open_connection(*address)
        try:
            for place, line in rest:
                began = time.perf_counter()
                try:
                    status, text = await asked(reader, writer, line)
                except (OSError, asyncio.IncompleteReadError):
                    status, text = 0, ""
                found[place] = Answered(status, time.perf_counter() - began, text)
                if not status:
                    return
        finally:
            writer.close()

    await asyncio.gather(*(client() for _ in range(count)))
    return found


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: str) -> tuple[int, str]:
    """Status and translation."""
    body = json.dumps({"text": line}).encode()
    head = f"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = re.search(r"(?i)content-length: (\d+)", answer)
    assert length
    content = json.loads(await reader.readexactly(int(length[1])))
    status = int(answer.split()[1])
    return status, content["translations"][0]["text"] if status == 200 else ""


def print_table(figures: dict[str, Any]) -> None:
    """The figures, to be read."""
    alone, overload, ratio = figures["one_by_one"], figures["overload"], figures["ratios"]["batched"]
    print(f"one by one            {alone['before']:8.1f} lines/s before, {alone['after']:.1f} after")
    many = f"{figures['clients']:3} clients"
    print(f"{many:21} {figures['lines_per_second']:8.1f} lines/s, {ratio:.2f} times as many")
    print(
        f"  processor time      {figures['cpu_ms']:8.1f} ms a line, one by one {alone['cpu_ms']:.1f}: {figures['ratios']['cpu']:.2f} times"
    )
    print(f"  requests, errors    {figures['requests']:8} {figures['errors']:8}   (translated otherwise: {figures['differ']})")
    print(f"  sentences a batch   {figures['mean_batch']:8.1f}")
    print(f"  p50, p95            {figures['p50_ms']:8.0f} ms {figures['p95_ms']:.0f} ms")
    statuses = ", ".join(f"{count} × {status}" for status, count in sorted(overload["statuses"].items()))
    slow = f"; refused within {overload['refused_p95_ms']:.0f} ms (p95)" if overload["refused_p95_ms"] else ""
    print(f"  {overload['at_once']} at once         {statuses}{slow}; errors afterwards: {overload['errors_afterwards']}")
