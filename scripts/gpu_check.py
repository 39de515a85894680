#!/usr/bin/env python3
"""What mt does on a GPU, measured in a few minutes: configs/base.yaml on Multi30k or a corpus like it, without a network.

    scripts/gpu_check.py --src train.en.gz --tgt train.de.gz --json gpu.json
    scripts/gpu_check.py --json gpu.json              on a generated corpus of the same lengths
    scripts/gpu_check.py --tiny                       every section at toy size, on a CPU, in less than a minute

Training speed and utilisation in bf16, fp16 and fp32 (formula: scripts/flops.py), losses side by side, memory with and without
gradient checkpointing, the attention kernels, waits of the host for the device, greedy decoding, torch.compile, and two ranks where
there are two devices. Each section is a process with a time limit of its own: what fails, or hangs, costs no other its figures, and of a
section that is cut short those are kept that it had. The exit code is 1 if a section failed or the losses of a precision do not agree.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("OMP_NUM_THREADS", "1" if "--tiny" in sys.argv else "8")  # a fork has none of the threads that others would wait for
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gpu_sections  # noqa: E402
from gpu_measure import Setting, write_corpus  # noqa: E402

SECTIONS = {
    "device": 90,
    "speed": 110,
    "losses": 70,
    "memory": 50,
    "attention": 40,
    "synchronisation": 30,
    "decoding": 50,
    "compilation": 130,
    "ranks": 90,
}
"""In the order of their worth, each with the seconds it may take at most; all end when the time for the whole does."""


def child(name: str, setting: Setting, out: Path) -> None:
    """Run a section; what it has told so far is always in `out`."""
    os.setsid()  # all that it starts ends with it
    vars(sys.modules["__main__"]).pop("__file__", None)  # which processes that make batches would run first
    figures: dict[str, Any] = {}
    error = None
    try:
        for key, value in getattr(gpu_sections, name)(setting):
            figures[key] = value
            write(out, {"figures": figures, "error": "was cut short"})
    except Exception as caught:
        traceback.print_exc()
        error = f"{type(caught).__name__}: {caught}"
    write(out, {"figures": figures, "error": error})


def write(path: Path, value: Mapping[str, Any]) -> None:
    """As JSON; the file appears whole."""
    beside = path.with_name(path.name + ".partial")
    beside.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def run_section(name: str, setting: Setting, *, seconds: float) -> dict[str, Any]:
    """A section in a process of its own, which is killed after so many seconds: its figures, and what was wrong, if anything."""
    if seconds <= 0:
        return {"figures": {}, "error": "no time was left", "seconds": 0.0}
    out, start = setting.folder / f"{name}.json", time.monotonic()
    process = multiprocessing.get_context("fork").Process(target=child, args=(name, setting, out))
    process.start()
    process.join(seconds)
    late = process.is_alive()
    if process.pid:
        with suppress(ProcessLookupError):  # the group ended with it
            os.killpg(process.pid, signal.SIGKILL)
    process.join()
    found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"figures": {}, "error": f"ended with {process.exitcode}"}
    if late:
        found["error"] = f"took longer than {seconds:.0f} s"
    return {**found, "seconds": time.monotonic() - start}


def shown(value: Any) -> str:
    """A figure, short."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def table(name: str, section: Mapping[str, Any]) -> str:
    """A section as text: a line a figure, and figures that have the same parts side by side."""
    figures = section["figures"]
    columns = {
        key: value for key, value in figures.items() if isinstance(value, dict) and any(isinstance(v, int | float) for v in value.values())
    }
    rows = list(dict.fromkeys(row for column in columns.values() for row in column))
    lines = [f"── {name} ({section['seconds']:.0f} s)"]
    lines += [f"{key:36} {shown(value)}" for key, value in figures.items() if key not in columns]
    if columns:
        lines.append(" " * 36 + "".join(f" {key:>18}" for key in columns))
        lines += [f"{row:36}" + "".join(f" {shown(column.get(row, '')):>18}" for column in columns.values()) for row in rows]
    if section["error"]:
        lines.append(f"FAILED: {section['error']}")
    return "\n".join(lines)


def passes(sections: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether no section failed, and the losses of all precisions agree."""
    agree = [one["agrees"] for one in sections["losses"]["figures"].values() if "agrees" in one]
    return not any(section["error"] for section in sections.values()) and bool(agree) and all(agree)


def main() -> int:
    """All sections, one after the other; the figures are written after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, help="source side of the corpus; left out, one is made")
    parser.add_argument("--tgt", type=Path, help="its target side")
    parser.add_argument("--minutes", type=float, default=8, help="for the whole")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures here, too")
    parser.add_argument("--tiny", action="store_true", help="every section at toy size, on a CPU")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION", help="of " + ", ".join(SECTIONS))
    args = parser.parse_args()
    if (args.src is None) != (args.tgt is None):
        parser.error("--src and --tgt belong together")
    end = time.monotonic() + 60 * args.minutes
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="mt-gpu-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        src, tgt = (args.src.resolve(), args.tgt.resolve()) if args.src else write_corpus(folder, pairs=300 if args.tiny else 29_000)
        setting = Setting(folder, src, tgt, device="cpu" if args.tiny else "cuda", tiny=args.tiny)
        for section in args.only:
            most = SECTIONS[section] * (10 if args.tiny else 1)  # which CPU it is, and what else it does, nobody knows
            found[section] = run_section(section, setting, seconds=min(most, end - time.monotonic()))
            print(table(section, found[section]), flush=True)
            if args.json:
                write(args.json, {"tiny": args.tiny, "corpus": str(args.src or "generated"), "sections": found})
    ok = passes(found) if "losses" in found else not any(section["error"] for section in found.values())
    print("all sections passed" if ok else "NOT all sections passed")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
