#!/usr/bin/env python3
"""Kills a small training run at random moments, goes on with the same command, and compares what it comes to with a run left alone.

    scripts/kill_test.py --kills 100 --seed 1
    scripts/kill_test.py --kills 20 --kind "SIGKILL at a save"

Every start is a fork of this process, which has all that is heavy imported, and runs the real command line. A run goes on until it ends;
then its checkpoints, scores and journal are compared, to the last bit, and the next one begins. A difference makes the exit code 1.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # a fork has none of the threads that others would wait for
os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import mt.__main__  # noqa: E402
import mt.cli.app  # noqa: E402
import mt.launch.run  # noqa: E402
from mt.data.cachedir import CacheDir  # noqa: E402
from mt.data.loader import signals_later  # noqa: E402
from mt.rundir import RunDir  # noqa: E402
from tests import toy  # noqa: E402
from tests.runs import contents, differences, journal  # noqa: E402

UPDATES = 18
ALL_ON = (
    *toy.TINY,
    "model.dropout=0.2",
    "model.attention_dropout=0.1",
    "tokenizer.sample={bpe_dropout: 0.1}",
    "data.augment={token_drop: 0.1, token_mask: 0.1, upper_case: 0.1, title_case: 0.1, strip_punctuation: 0.2}",
    "train.accumulate=3",
    "train.ema=0.9",
    "train.schedule.warmup=15",
    f"train.max_updates={UPDATES}",
    "train.save_every=3",
    "train.keep=2",
    "train.average.last=2",
    "train.validation={every: 4, samples: 1, attention: 0}",
    "train.early_stopping.patience=20",
    "decode.max_length_factor=0.5",
)
HEAVY = ("datasets", "pandas", "sacrebleu", "torch._dynamo", "torch.utils.tensorboard")
"""What a run imports when it needs it."""
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir")
WRITING = os.O_WRONLY | os.O_RDWR
HANGS = 120.0  # seconds after which a process is given up

CODES = {
    "SIGKILL": (-9,),
    "SIGKILL at a file": (-9,),
    "SIGKILL at a save": (-9,),
    "SIGTERM": (143,),
    "SIGINT": (130,),
    "SIGINT twice": (130,),
    "full disk": (2,),
    "error of the disk": (2,),
}
"""The ways a run is ended, each with the exit codes it may have beside 0, which means that it was too late."""


@dataclass(frozen=True)
class Start:
    """A process that trains."""

    pid: int

    def wait(self, seconds: float) -> int | None:
        """The exit code, as subprocess tells it; None if it is still running then."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        return None


def start(folder: Path, *, workers: int, first: Callable[[], object] = lambda: None) -> Start:
    """Run the command in a fork of this process, which does something else first; what it says goes to the log."""
    pid = os.fork()
    if pid:
        return Start(pid)
    code: Any = 1
    try:
        forkserver._forkserver.ensure_running = lambda: None  # it is running, and no child of ours
        vars(sys.modules["__main__"]).pop("__file__", None)  # which workers would run first
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        test = f"data.test.final={{src: {folder.parent}/test.src, tgt: {folder.parent}/test.trg}}"
        overrides = [*ALL_ON, test, f"data.cache={folder / 'cache'}", f"data.workers={workers}"]
        words = ["--config", str(folder.parent / "toy.yaml"), "--run-dir", str(folder / "run"), "--resume"]
        sys.argv = ["mt", "train", *words, *(word for override in overrides for word in ("--set", override))]
        first()
        mt.__main__.main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()
        os._exit(code or 0)


def phase(folder: Path) -> str:
    """What a run is about, by what is on the disk."""
    run, cache = RunDir(folder / "run"), CacheDir(folder / "cache")
    log = (folder / "log").read_text(encoding="utf-8") if (folder / "log").exists() else ""
    if [*cache.tokenizer("").glob("*.partial")]:
        return "the tokenizer"
    if [*cache.store("").glob("*.partial")]:
        return "the store"
    if "run: " not in log:
        return "starting"
    if [*run.checkpoints.glob("*.partial")]:
        return "saving"
    if f"ended at update {UPDATES}" in log:
        return "after the end"
    return "training" if run.names_file.exists() else "before the first save"


def at_change(number: int, act: Callable[[], object], folder: Path, *, within: Path) -> Callable[[], None]:
    """What makes a process do something right before its so many-th change to files in a folder, and note the phase it is in."""
    left = [number]

    def hear(event: str, args: tuple[Any, ...]) -> None:
        changes = event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & WRITING)
        if left[0] <= 0 or not changes or not str(args[0]).startswith(str(within)):
            return
        left[0] -= 1
        if left[0] == 0:
            (folder / "phase").write_text(phase(folder), encoding="utf-8")
            act()

    return lambda: sys.addaudithook(hear)


def fail() -> None:
    """What a disk says that is failing."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def limit(size: int) -> Callable[[], None]:
    """Let no file of the process become larger: the disk is full for it."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def strike(kind: str, folder: Path, *, lasts: float, sizes: list[int], rng: random.Random) -> tuple[int | None, str]:
    """Start a run, or go on with it, and end it in a way; its exit code, and what it was about."""
    workers, within = rng.choice((0, 2)), folder / "run" / "checkpoints"
    (folder / "phase").unlink(missing_ok=True)
    if kind == "SIGKILL at a file":
        number = rng.randint(1, rng.choice((20, 150)))  # the first ones are those of preparing
        die = at_change(number, lambda: os.kill(os.getpid(), signal.SIGKILL), folder, within=folder)
        code = start(folder, workers=workers, first=die).wait(HANGS)
    elif kind == "SIGKILL at a save":
        die = at_change(rng.randint(1, 40), lambda: os.kill(os.getpid(), signal.SIGKILL), folder, within=within)
        code = start(folder, workers=workers, first=die).wait(HANGS)
    elif kind == "error of the disk":
        code = start(folder, workers=workers, first=at_change(rng.randint(1, 80), fail, folder, within=within)).wait(HANGS)
    elif kind == "full disk":
        code = start(folder, workers=workers, first=limit(int(rng.choice(sizes) * rng.uniform(0.5, 1)))).wait(HANGS)
    else:
        one = start(folder, workers=workers)
        code = one.wait(0.05 + 0.8 * lasts * rng.random() ** 2)
        if code is None:
            (folder / "phase").write_text(phase(folder), encoding="utf-8")
            os.kill(one.pid, getattr(signal, kind.split()[0]))
            if kind == "SIGINT twice" and (code := one.wait(rng.uniform(0, 0.2))) is None:
                os.kill(one.pid, signal.SIGINT)
            code = one.wait(HANGS) if code is None else code
    noted = folder / "phase"
    return code, noted.read_text(encoding="utf-8") if noted.exists() else phase(folder)


def results(folder: Path) -> dict[str, Any]:
    """All that a run that ended leaves, by a flat name."""
    run = RunDir(folder / "run")
    found: dict[str, Any] = {"journal": journal(run), "names": run.names(), "scores": json.loads(run.test_scores.read_text("utf-8"))}
    found["files"] = sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*") if "tensorboard" not in path.parts)
    found["average"] = (run.average / "model.safetensors").read_bytes()
    for update in run.steps():
        found |= {f"{update}/{name}": value for name, value in contents(run.step(update)).items()}
        found |= {f"{update}/{file}": (run.step(update) / file).read_bytes() for file in ("model.safetensors", "ema.safetensors")}
    return found


def complaints(kind: str, code: int | None, folder: Path) -> list[str]:
    """What is wrong with how a process ended."""
    log = (folder / "log").read_text(encoding="utf-8")
    wrong = [] if code in (0, *CODES.get(kind, ())) else [f"exit code {code}"]
    wrong += [f"says {log[-2000:]}"] if wrong or "Traceback" in log else []
    return [f"after {kind}: {what}" for what in wrong]


def kill_again_and_again(folder: Path, *, kills: int, seed: int, kinds: Sequence[str]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many kills there were, by kind and phase, and what they changed."""
    rng = random.Random(seed)
    toy.write_corpus(folder, train=120, dev=3, test=3)
    toy.config_file(folder)
    calm = folder / "calm"
    calm.mkdir()
    began = time.monotonic()
    if start(calm, workers=2).wait(HANGS) != 0:
        return Counter(), [f"cannot run: {(calm / 'log').read_text(encoding='utf-8')}"]
    lasts, expected = time.monotonic() - began, results(calm)
    sizes = [path.stat().st_size for path in (*calm.rglob("*.*"),) if path.is_file() and path.stat().st_size > 1500]
    table, wrong, deck, number = Counter[tuple[str, str]](), list[str](), list[str](), 0
    while table.total() < kills and not wrong:
        number += 1
        trial = folder / f"{number}"
        trial.mkdir()
        story, code = [], None
        while code != 0 and not wrong:
            deck = deck or rng.sample(kinds, len(kinds))
            began = time.monotonic()
            kind = deck.pop() if table.total() < kills else "none"
            if kind == "none":
                code, at = start(trial, workers=0).wait(HANGS), ""
            else:
                code, at = strike(kind, trial, lasts=lasts, sizes=sizes, rng=rng)
            wrong = complaints(kind, code, trial)
            if code == 0 and not story:  # it came too late: the machine is faster now
                lasts = time.monotonic() - began
            if code != 0:
                story.append(f"{kind} ({at})")
                table[kind, at] += 1
        wrong += [f"other {name} than without: {', '.join(story)}" for name in (differences(results(trial), expected) if not wrong else ())]
        print(f"run {number}: {', '.join(story) or 'nothing happened'}", flush=True)
        if not wrong:
            shutil.rmtree(trial)
    return table, wrong


def show(table: Counter[tuple[str, str]]) -> None:
    """Kills by kind and phase, as a table."""
    phases = sorted({at for _, at in table})
    print("|".join(["", "", *phases, "all", ""]), "|".join(["", "---", *["---"] * len(phases), "---", ""]), sep="\n")
    for kind in CODES:
        row = [table[kind, at] for at in phases]
        print("", kind, *(number or "" for number in row), sum(row), "", sep="|")
    print(f"{table.total()} kills")


def main() -> None:
    """Kill, print the table and what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=CODES, help="the one way to end it, left out: all in turn")
    args = parser.parse_args()
    for heavy in HEAVY:
        importlib.import_module(heavy)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mt.data.loader", "datasets"])
    with signals_later():
        forkserver.ensure_running()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    table, wrong = kill_again_and_again(folder, kills=args.kills, seed=args.seed, kinds=[args.kind] if args.kind else list(CODES))
    show(table)
    print(*wrong, sep="\n")
    print(f"what is left of it: {folder}" if wrong else "no difference")
    if not wrong:
        shutil.rmtree(folder)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
