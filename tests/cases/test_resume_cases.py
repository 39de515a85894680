"""Trouble with runs that go on: one test a row of the list of trouble cases, each with its own input, through `mt train`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mt.checkpoint import read_weights
from mt.data.batches import Batch
from mt.rundir import RunDir
from mt.tokenizer.of_run import load_tokenizers
from mt.train import loop
from mt.train.state import State
from mt.train.update import Begun, begin
from tests import toy
from tests.cases.conftest import tiny_run
from tests.runs import contents, differences, journal, tree

KILL_TEST = Path(__file__).parents[2] / "scripts" / "kill_test.py"


class Both(NamedTuple):
    """20 updates at once, and 10 and then up to 20; with the origins of the pairs each update was made from."""

    straight: RunDir
    resumed: RunDir
    seen: dict[str, list[tuple[str, ...]]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("resume")
    toy.write_corpus(folder, train=60, dev=1, test=1)
    settings = ("model.dropout=0.2", "train.accumulate=2", "train.schedule.warmup=15", "train.save_every=10")
    seen: dict[str, list[tuple[str, ...]]] = {"straight": [], "resumed": []}

    def go(name: str, updates: int, *words: str) -> None:
        def spying(state: State, micro: list[Batch], **rest: Any) -> Begun:
            seen[name].append(tuple(origin for batch in micro for origin in batch.origins))
            return begin(state, micro, **rest)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "begin", spying)
            assert tiny_run(folder, *settings, f"train.max_updates={updates}", name=name, more=words).code == 0

    go("straight", 20)
    go("resumed", 10)
    go("resumed", 20, "--resume")
    return Both(RunDir(folder / "straight"), RunDir(folder / "resumed"), seen)


def test_43_schedule_goes_on_after_resuming(both: Both) -> None:
    straight, resumed = ([event["lr"] for event in journal(run) if event["event"] == "update"] for run in both[:2])
    assert straight == resumed == pytest.approx([2e-3 * n / 15 for n in range(1, 16)] + [2e-3 * (15 / n) ** 0.5 for n in range(16, 21)])


def test_44_settings_changed_before_resuming(tmp_path: Path) -> None:
    """Each that would make it another run is a line with both values, and nothing is touched; each other is told, and taken."""
    toy.write_corpus(tmp_path, train=40, dev=1, test=1)
    assert tiny_run(tmp_path).code == 0
    run = RunDir(tmp_path / "run")
    before = tree(run.path)
    changed = ("train.optimizer.lr=5e-4", "train.batch_tokens=100", "model.dropout=0.2", "model.dim=32", "train.max_updates=4")
    done = tiny_run(tmp_path, *changed, more=["--resume"])
    assert done.code == 2
    told = [line.removeprefix(f"{run.path}: cannot resume, ") for line in done.err if "cannot resume" in line]
    assert sorted(told) == [
        "model.dim changed: 16 before, 32 now",
        "model.dropout changed: 0.0 before, 0.2 now",
        "train.batch_tokens changed: 200 before, 100 now",
        "train.optimizer.lr changed: 0.002 before, 0.0005 now",
    ]
    assert done.err[-1] == f"{run.path}: set these back, or start another run with --run-dir NEW"
    assert tree(run.path) == before
    done = tiny_run(tmp_path, "train.max_updates=4", "train.keep=3", more=["--resume"])
    assert done.code == 0
    assert f"{run.path}: goes on with train.keep 3 (was 5), train.max_updates 4 (was 2)" in done.err
    assert run.steps()[-1] == 4


def test_58_killed_while_a_checkpoint_is_saved() -> None:
    """kill -9 within one of the next saves, twenty times: each time the same command goes on, and nothing comes out otherwise."""
    command = [sys.executable, str(KILL_TEST), "--kills", "20", "--seed", "58", "--kind", "SIGKILL at a save"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 kills\nno difference\n" in done.stdout.replace("\n\n", "\n")


def test_59_another_vocabulary(tmp_path: Path) -> None:
    """Resumed with one, a run is refused before anything happens; started from another run, it takes over that of the weights."""
    toy.write_corpus(tmp_path, train=60, dev=1, test=1)
    assert tiny_run(tmp_path, "tokenizer.vocab_size=120").code == 0
    run = RunDir(tmp_path / "run")
    before = tree(run.path)
    done = tiny_run(tmp_path, "tokenizer.vocab_size=100", "train.max_updates=3", more=["--resume"])
    assert done.code == 2
    assert done.err[-2:] == [
        f"{run.path}: cannot resume, tokenizer.vocab_size changed: 120 before, 100 now",
        f"{run.path}: set these back, or start another run with --run-dir NEW",
    ]
    assert tree(run.path) == before

    assert tiny_run(tmp_path, "tokenizer.vocab_size=100", name="tuned", more=["--init-from", run.path]).code == 0
    tuned = RunDir(tmp_path / "tuned")
    ours, theirs = (load_tokenizers(one, joint=True).src for one in (tuned, run))
    assert (ours.size, ours.fingerprint) == (120, theirs.fingerprint)
    assert len(read_weights(tuned.step(2))["src_embedding.weight"]) == 120


def test_61_resumed_is_uninterrupted(both: Both) -> None:
    straight, resumed, seen = both
    assert seen["resumed"] == seen["straight"]
    assert len(seen["straight"]) == 20
    assert differences(contents(straight.step(20)), contents(resumed.step(20))) == []
    assert journal(straight) == journal(resumed)
    assert {0, 1} <= {event["epoch"] for event in journal(straight)[:-1]}, "the test should see the end of an epoch"
