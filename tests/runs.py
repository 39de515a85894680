"""Training runs, within the test's own process or by torchrun, and what is left of them, to be compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file

from mt.cli import app
from mt.config.schema import Config
from mt.launch.prepare import Prepared, prepare, run_path
from mt.launch.run import train_run
from mt.rundir import RunDir
from mt.train.events import Event, Update
from tests import toy

CLOCK = "seconds", "waited", "optimizing", "spent", "shares", "journal_bytes"


def four_updates(folder: Path, *overrides: str) -> Config:
    """A short run of a tiny model on the corpus in the folder."""
    short = (
        "train.max_updates=4",
        "train.save_every=2",
        "train.validation={every: 2, samples: 1, attention: 0}",
        "decode.max_length_factor=0.5",
    )
    return toy.config(folder, *toy.TINY, *short, *overrides)


def final_test(folder: Path) -> str:
    """The override that makes the test set of the folder one of the config."""
    return f"data.test.final={{src: {folder}/test.src, tgt: {folder}/test.trg}}"


class Done(NamedTuple):
    """Exit code and lines of a run."""

    code: int
    lines: list[str]

    def says(self, text: str) -> bool:
        return any(text in line for line in self.lines)


def train(config: Config, *, resume: bool = False, overwrite: bool = False, dry_run: bool = False) -> Done:
    """What `mt train` does with a loaded config."""
    lines: list[str] = []
    code = train_run(config, resume=resume, overwrite=overwrite, dry_run=dry_run, device="cpu", say=lines.append)
    return Done(code, lines)


def prepared(config: Config) -> Prepared:
    """A new run that is ready to train."""
    run_path(config).mkdir(exist_ok=True)
    return prepare(config, device="cpu", say=lambda _: None)


def mt(*words: str | Path, capsys: pytest.CaptureFixture[str]) -> Done:
    """The real command line, `mt` and these words; the lines are those of stderr."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["mt", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            app.main()
    code = end.value.code
    assert isinstance(code, int)
    return Done(code, capsys.readouterr().err.splitlines())


@contextmanager
def torchrun(*words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Two ranks on this machine; they end with the test."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


class Silent:
    """Stands in for the console; `at_update`, if given, is called after each update with its number."""

    def __init__(self, at_update: Callable[[int], object] | None = None) -> None:
        self.at_update = at_update

    def __call__(self, event: Event) -> None:
        if self.at_update and isinstance(event, Update):
            self.at_update(event.update)

    def say(self, line: str) -> None:
        """Nothing is shown."""


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def journal(run: RunDir) -> list[dict[str, Any]]:
    """The journal, without what is measured by the clock."""
    lines = run.journal.read_text(encoding="utf-8").splitlines()
    return [without_clock(json.loads(line)) for line in lines]


def without_clock(values: dict[str, Any]) -> dict[str, Any]:
    """Everything but wall time, and lengths that depend on how it is spelt."""
    return {
        key: value for key, value in values.items() if key not in ("seconds", "waited", "optimizing", "spent", "shares", "journal_bytes")
    }


def contents(checkpoint: Path) -> dict[str, Any]:
    """All that a checkpoint holds, by a flat name."""
    state = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    state["progress"] = without_clock(state["progress"])
    found: dict[str, Any] = {"state": state}
    for file in checkpoint.glob("*.safetensors"):
        found |= {f"{file.stem}/{name}": tensor for name, tensor in load_file(file).items()}
    return found | flat(torch.load(checkpoint / "trainer.pt", weights_only=True), "trainer")


def flat(value: Any, name: str) -> dict[str, Any]:
    """Nested dicts and lists as one dict."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else None
    if items is None:
        return {name: value}
    return {key: inner for part, item in items for key, inner in flat(item, f"{name}/{part}").items()}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Names whose values are not the same to the last bit."""
    return sorted(name for name in one.keys() | other.keys() if not same(one.get(name), other.get(name)))


def same(one: Any, other: Any) -> bool:
    """Equal values; tensors equal in type, shape and every bit."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and bool(one == other)
