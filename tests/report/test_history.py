"""The journal is read in whatever state it is."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mt.report.history import History
from mt.report.settings import changed, differing
from mt.report.standing import duration, state_of
from mt.rundir import RunDir
from tests import toy
from tests.report.made import ended, run_of, update, validated


def test_what_is_told_of_a_whole_run(tmp_path: Path) -> None:
    events = [update(1), update(2), validated(2), update(2, skipped=True, loss="nan"), update(3), validated(3, best=False), ended(3)]
    history = History.of(run_of(tmp_path / "run", events))
    assert (history.update, history.skipped, history.unreadable, history.seconds) == (3, 1, 0, 100.0)
    assert history.column("loss").tolist() == [4.99, 4.98, 4.97]
    assert history.best is not None
    assert history.best["update"] == 2
    assert history.shares == {"model": 0.5}


def test_without_an_end_its_time_is_that_of_its_events(tmp_path: Path) -> None:
    history = History.of(run_of(tmp_path / "run", [update(1), update(2), validated(2)]))
    assert history.seconds == 3.0
    assert history.shares == {"model": 0.75, "data": 0.125}


@pytest.mark.parametrize(
    "torn",
    [
        '{"event": "upda',
        '{"event": "update"}\n',
        "[]\n",
        "\x00\x00\n",
        '"x"\n',
        '{"event": 3}\n',
        '{"event": "validated", "scores": 1}\n',
        "[" * 9999,
    ],
)
def test_a_line_that_tells_nothing_is_passed_over(tmp_path: Path, torn: str) -> None:
    history = History.of(run_of(tmp_path / "run", [update(1), validated(1), torn]))
    assert (history.update, len(history.validations), history.unreadable) == (1, 1, 1)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    scores = {"loss": "nan", "bleu": 1.0, "chrf": "inf"}
    history = History.of(run_of(tmp_path / "run", [update(1, loss="nan", norm="inf"), validated(1, scores=scores)]))
    assert math.isnan(history.column("loss")[0])
    assert history.validations[0]["scores"]["chrf"] == math.inf


def test_there_may_be_nothing(tmp_path: Path) -> None:
    history = History.of(RunDir(tmp_path / "nowhere"))
    assert (history.update, history.seconds, history.best, history.shares) == (0, 0.0, None, {})


def test_what_a_run_is_at(tmp_path: Path) -> None:
    def state(name: str, *events: object) -> str:
        run = run_of(tmp_path / name, events)  # type: ignore[arg-type]
        return state_of(run, History.of(run)).name

    assert state("new") == "prepared"
    assert state("done", update(1), ended(1)) == "finished"
    assert state("paused", update(1), ended(1, "interrupted")) == "stopped"
    assert state("on", update(1), ended(1), update(2)) == "failed"  # it went on, and neither ended nor was killed
    run = RunDir(tmp_path / "on")
    with run.lock():
        assert state_of(run, History.of(run)).name == "training"
        assert run.is_locked()
    run.lock_file.write_text("999999999")
    assert state_of(run, History.of(run)).name == "killed"


def test_the_lock_of_another_process_is_seen_and_one_that_was_killed_is_not(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    code = f"from mt.rundir import RunDir\nwith RunDir({str(tmp_path)!r}).lock(): print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout
        assert process.stdout.readline()
        assert run.is_locked()
        process.kill()
        process.wait()
    assert run.lock_file.exists()
    assert not run.is_locked()


@pytest.mark.parametrize(("seconds", "told"), [(0.4, "0 s"), (61, "61 s"), (600, "10 min"), (7500, "2 h 05 min"), (300_000, "3 d 11 h")])
def test_how_long_it_took(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_settings_that_are_not_the_defaults(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, train=2, dev=2, test=2)
    one, two = toy.config(tmp_path, "train.ema=0.5"), toy.config(tmp_path, "train.seed=3", "run_dir=x")
    assert ("train.ema", 0.5, 0.0) in changed(one)
    assert not [name for name, _, _ in changed(one) if name.startswith(("data.train", "train.seed", "run_dir"))]
    assert differing([one, two]) == ["train.ema", "train.seed"]
    assert json.dumps(changed(two))
