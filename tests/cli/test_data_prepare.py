"""`mt data prepare`: what it makes is found by training; killed, or two at once, nobody stumbles."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from mt.config.load import load
from tests.preparing import CORPORA, COUNT, data, sets, short
from tests.runs import train, tree


@pytest.mark.parametrize("overrides", [(), CORPORA, ("tokenizer.joint=false",)], ids=["one", "tags", "two tokenizers"])
def test_what_was_prepared_is_found_by_training(folder: Path, made: list[str], overrides: tuple[str, ...]) -> None:
    done = data("prepare", folder, overrides=overrides)
    assert (done.code, done.out) == (0, b"")
    (store,) = (folder / "cache" / "stores").iterdir()
    assert done.err[-1] == f"{COUNT * len(load(folder / 'toy.yaml', overrides).config.data.train)} pairs in {store}"
    assert not (folder / "run").exists()
    made.clear()
    assert train(load(folder / "toy.yaml", short(folder, *overrides)).config).code == 0
    assert data("show", folder, overrides=overrides).code == 0
    assert data("prepare", folder, overrides=overrides).err == done.err
    assert made == []


# ── killed, and two at once ─────────────────────────────────────────────────────────────────────────────────────────

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from mt.cli.app import main
from mt.data import build
from mt.launch import inputs

folder, what, words = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def noted(name):
    work = getattr(inputs, name)
    def noting(*args, **kwargs):
        with (folder / "made").open("a") as file:
            file.write(name + "\\n")
        while not (folder / "go").exists():
            time.sleep(0.01)
        work(*args, **kwargs)
    setattr(inputs, name, noting)

if __name__ == "__main__":
    if what == "tokenizer":
        inputs.fit_items = lambda items, *_, **__: die(next(iter(items)))
    elif what == "store":
        build.write_facts = die
    elif what == "processes":
        build.CHUNK, build.ALONE, build.core_count = 10, 2, lambda: 2
        write = build.write
        build.write = lambda folder, encoded, *rest: write(folder, (die() if n == 4 else one for n, one in enumerate(encoded)), *rest)
    else:
        noted("make_tokenizer"), noted("make_store")
    sys.argv = ["mt", "data", "prepare", *words]
    main()
"""


@pytest.fixture
def program(folder: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts `mt data prepare` in a process of its own, in which something happens; ended with the test."""
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    running = []

    def start(what: str) -> subprocess.Popen[str]:
        command = [sys.executable, folder / "program.py", folder, what, "--config", folder / "toy.yaml", *sets(short(folder))]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("where", ["tokenizer", "store", "processes"])
def test_the_next_one_does_not_stumble_over_a_killed_one(folder: Path, program: Callable[[str], subprocess.Popen[str]], where: str) -> None:
    """Killed while it trains the tokenizer, before the store is complete, and while other processes work for it, who end too."""
    killed = program(where)
    killed.communicate(timeout=180)  # at its end only when all that hold the pipes are gone
    assert killed.returncode == -signal.SIGKILL
    left = [path for path in (folder / "cache").rglob("*.partial")]
    assert [path.parent.name for path in left] == ["tokenizers" if where == "tokenizer" else "stores"]
    done = data("prepare", folder)
    assert done.code == 0
    assert not any("another process" in line for line in done.err)
    assert not list((folder / "cache").rglob("*.partial"))
    found = {name: tree(folder / "cache" / name) for name in ("tokenizers", "stores")}
    shutil.rmtree(folder / "cache")
    assert data("prepare", folder).err == done.err
    assert {name: tree(folder / "cache" / name) for name in found} == found


def test_two_at_once_make_everything_once(folder: Path, program: Callable[[str], subprocess.Popen[str]]) -> None:
    first = program("note")
    wait_for(lambda: (folder / "made").exists())
    second = program("note")
    assert second.stderr
    waited = list(takewhile(lambda line: "another process is making" not in line, second.stderr))
    assert not any("pairs in" in line for line in waited)
    (folder / "go").touch()
    ended = [process.communicate(timeout=180)[1] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], ended
    assert (folder / "made").read_text(encoding="utf-8").split() == ["make_tokenizer", "make_store"]
    assert ended[0].splitlines()[-1] == ended[1].splitlines()[-1]
    assert len(list((folder / "cache" / "stores").iterdir())) == 1


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
