"""`mt train` as a user has it: a process of its own that may be killed, and corpora in every format."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from mt.config.load import load
from mt.launch.inputs import open_store
from mt.rundir import RunDir
from tests import toy
from tests.runs import contents, differences, journal, mt

UPDATES = 60
TRAINING = {
    "train.max_updates": UPDATES,
    "train.save_every": 4,
    "train.accumulate": 2,
    "train.ema": 0.9,
    "train.schedule.warmup": 15,
    "train.validation.every": 20,
    "model.dropout": 0.2,
    "tokenizer.sample.bpe_dropout": 0.1,
    "decode.max_length_factor": 0.5,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    toy.write_corpus(tmp_path, train=60, dev=3, test=2)
    toy.config_file(tmp_path)
    return tmp_path


def words(folder: Path, run: RunDir, *more: str) -> list[str]:
    changes = [*toy.TINY, *(f"{key}={value}" for key, value in TRAINING.items())]
    return ["train", "--config", str(folder / "toy.yaml"), "--run-dir", str(run.path), *(w for c in changes for w in ("--set", c)), *more]


def start(folder: Path, run: RunDir, *more: str) -> subprocess.Popen[str]:
    """`mt train` in a process of its own, on as many threads as this one: their number decides the last bits."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads()), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "mt", *words(folder, run, *more)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment)


def signal_after(process: subprocess.Popen[str], run: RunDir, *, updates: int, number: int) -> str:
    """Send a signal once so many updates are in the journal; what the process said."""
    while process.poll() is None and not (run.journal.exists() and len(updates_of(run)) >= updates):
        time.sleep(0.002)
    process.send_signal(number)
    return process.communicate()[1]


def updates_of(run: RunDir) -> list[str]:
    return [line for line in run.journal.read_text(encoding="utf-8").splitlines() if '"event": "update"' in line]


def test_killed_stopped_and_resumed_it_is_the_uninterrupted_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, broken = RunDir(folder / "whole"), RunDir(folder / "broken")
    assert mt(*words(folder, whole), "--device", "cpu", capsys=capsys).code == 0

    process = start(folder, broken, "--resume")  # of nothing: it starts
    signal_after(process, broken, updates=5, number=signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert broken.lock_file.exists()
    killed_at = len(updates_of(broken))
    assert 5 <= killed_at < UPDATES

    process = start(folder, broken, "--resume")
    said = signal_after(process, broken, updates=max(killed_at, 8) + 1, number=signal.SIGTERM)
    assert process.returncode == 143, said
    assert "resuming at update" in said
    assert "go on with the same command and --resume" in said
    assert "Traceback" not in said
    stopped_at = len(updates_of(broken))
    assert stopped_at < UPDATES
    assert broken.names()["last"] == f"step-{stopped_at:08d}"

    done = mt(*words(folder, broken), "--device", "cpu", "--resume", capsys=capsys)
    assert done.code == 0
    assert differences(contents(whole.step(UPDATES)), contents(broken.step(UPDATES))) == []
    assert journal(whole) == journal(broken)
    assert whole.names() == broken.names()
    assert not broken.lock_file.exists()
    done = mt(*words(folder, broken), "--resume", capsys=capsys)
    assert (done.code, done.says(f"is finished already (the limit of {UPDATES} updates)")) == (0, True)


# ── formats ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def stored(run: RunDir) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in open_store(run).pairs()]


@pytest.mark.parametrize("kind", ["gz", "tsv", "jsonl"])
def test_every_format_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    sources = toy.sentences(20)
    pairs = [(source, toy.translation(source)) for source in sources]
    match kind:
        case "gz":
            for side, lines in zip(("src", "trg"), zip(*pairs, strict=True), strict=True):
                (tmp_path / f"train.{side}.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
            corpus = "{src: train.src.gz, tgt: train.trg.gz}"
        case "tsv":
            toy.write_lines(tmp_path / "train.tsv", map("\t".join, pairs))
            corpus = "{tsv: train.tsv}"
        case _:
            toy.write_lines(tmp_path / "train.jsonl", (json.dumps({"src": src, "tgt": tgt}) for src, tgt in pairs))
            corpus = "{jsonl: train.jsonl, fields: {src: src, tgt: tgt}}"
    config = tmp_path / "x.yaml"
    config.write_text(toy.config_text(train=corpus, dev="none"), encoding="utf-8")
    changes = [word for change in (*toy.TINY, "train.max_updates=1") for word in ("--set", change)]
    done = mt("train", "--config", config, *changes, "--run-dir", tmp_path / "run", "--device", "cpu", capsys=capsys)
    assert done.code == 0, done.lines
    assert stored(RunDir(tmp_path / "run")) == pairs


# ── the command line ────────────────────────────────────────────────────────────────────────────────────────────────


def quick(folder: Path, *more: str | Path) -> list[str]:
    changes = (*toy.TINY, "train.max_updates=1", "data.dev=none")
    return ["train", "--config", str(folder / "toy.yaml"), "--device", "cpu", *(w for c in changes for w in ("--set", c)), *map(str, more)]


def test_a_run_directory_may_have_any_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = folder / "a #1: größe, {x}"
    assert mt(*quick(folder, "--run-dir", name), capsys=capsys).code == 0
    assert RunDir(name).steps() == [1]


def test_the_run_directory_is_relative_to_where_one_is(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    assert mt(*quick(folder, "--run-dir", "mine"), capsys=capsys).code == 0
    assert mt(*quick(folder), capsys=capsys).code == 0
    assert {str(path.relative_to(folder)) for path in folder.rglob("config.yaml")} == {"here/mine/config.yaml", "here/runs/toy/config.yaml"}


def test_output_without_a_terminal_is_plain_lines_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dev = f"data.dev={{src: {folder}/valid.src, tgt: {folder}/valid.trg}}"
    done = mt(*quick(folder, "--run-dir", folder / "run", "--set", dev), capsys=capsys)
    assert done.code == 0
    assert done.says("validation at update 1, epoch 1: loss ")
    assert done.says("ended at update 1: the limit of 1 update; in epoch 1, after ")
    assert all(line.isprintable() for line in done.lines)
    assert capsys.readouterr().out == ""


def test_doubtful_settings_are_warned_of_and_wrong_ones_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = mt(*quick(folder, "--run-dir", folder / "run", "--dry-run"), capsys=capsys)
    assert done.code == 0
    assert done.says("warning: --set train.max_updates: 1 updates show that training runs")
    done = mt(*quick(folder, "--run-dir", folder / "run", "--set", "train.sede=3"), capsys=capsys)
    assert (done.code, len(done.lines)) == (2, 1)
    assert "did you mean `train.seed`" in done.lines[0]
    assert not (folder / "run").exists()


@pytest.mark.parametrize("flags", [[], ["--overwrite"], ["--resume"]], ids=str)
def test_a_device_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str], flags: list[str]) -> None:
    done = mt(*quick(folder, "--run-dir", folder / "run", "--device", "tpu", *flags), capsys=capsys)
    assert done.code == 2
    assert done.lines[-1].startswith("device tpu: no such device")
    assert not (folder / "run").exists()


def test_the_config_of_a_run_starts_an_equal_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = RunDir(folder / "one"), RunDir(folder / "two")
    assert mt(*quick(folder, "--run-dir", one.path), capsys=capsys).code == 0
    assert mt("train", "--config", one.config, "--run-dir", two.path, "--device", "cpu", capsys=capsys).code == 0
    assert differences(contents(one.step(1)), contents(two.step(1))) == []
    assert load(two.config).config.train == load(one.config).config.train


def test_going_on_and_starting_over_exclude_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = mt(*quick(folder, "--run-dir", folder / "run", "--resume", "--overwrite"), capsys=capsys)
    assert (done.code, done.lines) == (2, ["--resume goes on with a run, --overwrite replaces it: give one of them"])
