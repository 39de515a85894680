"""`mt runs`: a folder of runs as a table that fits, and as JSON; what else is there is named."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mt.report.runs import holds_runs
from tests.report.made import ended, run_of, update, validated
from tests.translating import mt

CURE = "name the folder that holds run directories: mt runs DIR (without DIR that is runs)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs, one that is damaged, and what is none."""
    runs = tmp_path / "runs"
    runs.mkdir()
    one = run_of(runs / "one", [update(1), validated(1), ended(1)], "train.seed=2")
    one.reports.mkdir()
    one.test_scores.write_text(json.dumps({"news": {"metrics": [{"name": "BLEU", "score": 12.345}]}}))
    run_of(runs / "two-of-a-very-long-name", [update(1), update(2), '{"ev'], "train.seed=3", "train.max_minutes=9.0")
    run_of(runs / "broken", []).config.write_text("data: [")
    (runs / "notes").mkdir()
    (runs / "file").write_text("x")
    return runs


def test_the_runs_of_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    done = mt("runs", folder)
    head, one, two = done.lines
    assert head.split() == ["run", "state", "updates", "time", "BLEU", "chrF", "loss", "BLEU", "news", "differs", "in"]
    assert one.split() == ["one", "finished", "1", "2", "min", "0.10", "20.00", "3.990", "12.35", "seed=2"]
    assert two.split() == ["two-of-a-very-long-name", "failed", "2", "1", "s", "seed=3", "max_minutes=9.0"]
    assert [line.partition(":")[0] for line in done.err] == ["broken", "notes"]
    assert done.code == 0


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_it_fits(folder: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = mt("runs", folder).lines
    assert max(map(len, lines)) <= max(width, 45)
    assert all(any(word in line for line in lines) for word in ("seed=2", "seed=3", "max_minutes=9.0"))


def test_as_json(folder: Path) -> None:
    told = json.loads(mt("runs", folder, "--json").out)
    one, two = told["runs"]
    assert (one["name"], one["state"], one["updates"], one["tests"]) == ("one", "finished", 1, {"news": 12.345})
    assert one["settings"] == {"train.max_minutes": None, "train.seed": 2}
    assert two["dev"] == {}
    assert set(told["others"]) == {"broken", "notes"}


def test_a_run_by_itself_and_a_folder_of_none(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "notes")
    assert mt("runs", folder / "one").lines[1].split()[:2] == ["one", "finished"]
    assert mt("runs", folder / "notes").code == 2
    assert mt("runs", folder / "file").err[0].startswith(f"{folder / 'file'}: is a file; ")
    lonely = tmp_path / "a" / "b" / "c"
    lonely.mkdir(parents=True)
    monkeypatch.chdir(lonely)
    assert mt("runs").err == [f"runs: there is no such folder; {CURE}"]
    assert mt("runs", ".").err == [f".: holds no run; {CURE}"]


@pytest.mark.parametrize(("within", "words"), [(".", ()), ("runs", (".",)), ("runs", ("../runs",))])
def test_a_folder_of_damaged_runs_is_not_named_instead_of_itself(
    within: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lonely = tmp_path / "a" / "b"
    run_of(lonely / "runs" / "broken", []).config.write_text("data: [")
    monkeypatch.chdir(lonely / within)
    done = mt("runs", *words)
    assert (done.code, done.err[-1].partition("; ")[2]) == (2, CURE)


def test_a_folder_that_cannot_be_read_holds_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one of a machine that does not answer."""

    def dead(status: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def of(path: Any, *more: Any, **how: Any) -> os.stat_result:
            if str(tmp_path / "far") in str(path):
                raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
            return status(path, *more, **how)

        return of

    run_of(tmp_path / "far", [])
    assert holds_runs(tmp_path)
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, dead(getattr(os, name)))
    assert not holds_runs(tmp_path)


@pytest.mark.parametrize(
    ("within", "words", "found"),
    [
        ("runs", (), "."),
        ("runs/one", (), ".."),
        ("runs/one/reports", (), "../.."),
        (".", (".",), "runs"),
        (".", ("experiments",), "runs"),
        ("runs/notes", ("runs",), ".."),
        ("texts/new", (), "../../runs"),
    ],
)
def test_runs_that_are_near_by(
    folder: Path, within: str, words: tuple[str, ...], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "texts/new").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / within)
    done = mt("runs", *words)
    assert (done.code, done.err[-1].partition("; ")[2]) == (2, f"write mt runs {found} for those that are near by")
    assert Path(found).resolve() == folder.resolve()


def test_no_torch_is_needed() -> None:
    code = "import sys, mt.report.runs; assert not {'torch', 'matplotlib', 'sacrebleu', 'datasets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
