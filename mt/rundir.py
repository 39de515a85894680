"""One directory is one run, and everything in it is named here and nowhere else.

config.yaml                    effective settings, frozen
tokenizer.model                or tokenizer.src.model and tokenizer.tgt.model
data/train, data/dev …         the prepared pairs (Arrow) and what was counted
journal.jsonl                  one event a line
tensorboard/
checkpoints/step-00012000/     model.safetensors, state.json, trainer.pt
checkpoints/average/           the mean of several, if train.average asks for it
checkpoints/names.json         which of these is `best`, which `last`
reports/
lock                           number of the process that trains, while it does
replaced.partial/              what --overwrite replaces, until the new run is prepared
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mt.errors import RunError
from mt.files import write_atomic

PARTIAL = ".partial"
"""Ending of what is still being written; ignored, and removed when the run goes on."""


class RunDir:
    """The paths of a run; creates nothing by itself."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.data = self.path / "data"
        self.journal = self.path / "journal.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.checkpoints = self.path / "checkpoints"
        self.names_file = self.checkpoints / "names.json"
        self.reports = self.path / "reports"
        self.lock_file = self.path / "lock"
        self.replaced = self.path / f"replaced{PARTIAL}"

    def tokenizer_files(self, *, joint: bool) -> tuple[Path, Path]:
        """The model of the source side and that of the target side: one file if joint."""
        if joint:
            return self.path / "tokenizer.model", self.path / "tokenizer.model"
        return self.path / "tokenizer.src.model", self.path / "tokenizer.tgt.model"

    def step(self, update: int) -> Path:
        """The checkpoint after so many updates."""
        return self.checkpoints / f"step-{update:08d}"

    def steps(self) -> list[int]:
        """Updates of the whole checkpoints there are, ascending."""
        found = self.checkpoints.glob("step-*") if self.checkpoints.is_dir() else ()
        return sorted(int(path.name[5:]) for path in found if path.name[5:].isdigit())

    @property
    def average(self) -> Path:
        """The checkpoint made of several at the end of a run."""
        return self.checkpoints / "average"

    def names(self) -> dict[str, str]:
        """Which checkpoint folder `best` and `last` stand for; empty before the first checkpoint."""
        if not self.names_file.exists():
            return {}
        names: dict[str, str] = json.loads(self.names_file.read_text(encoding="utf-8"))
        return names

    def set_names(self, **folders: Path) -> None:
        """Let some names stand for other checkpoints, all at once."""
        names = self.names() | {name: folder.name for name, folder in folders.items()}
        with write_atomic(self.names_file) as file:
            json.dump(names, file)

    def find(self, which: str) -> Path:
        """The checkpoint called `best`, `last`, `average` or a number of updates. Raises RunError, listing what exists."""
        if not self.config.exists():
            raise RunError(f"{self.path}: not a run (it has no {self.config.name}); give the directory that `mt train` wrote")
        path = self.step(int(which)) if which.isdecimal() else self.checkpoints / self.names().get(which, which)
        if which in ("", ".", "..") or path.parent != self.checkpoints or not (path / "state.json").exists():
            there = ", ".join([*self.names(), *map(str, self.steps())]) or "none yet: let `mt train` reach its first validation"
            raise RunError(f"{self.path}: no checkpoint {which!r}; there are: {there}")
        return path

    def clear_partial(self) -> None:
        """Remove what a killed run left half-written."""
        for path in self.path.rglob(f"*{PARTIAL}"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run: a second process gets a RunError, unless the first is dead."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.path}: cannot be made ({error.strerror}); give another --run-dir") from None
        while True:
            try:
                descriptor = os.open(self.lock_file, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                break
            except FileExistsError:
                with suppress(FileNotFoundError):  # its owner may release it in this moment
                    owner = self.lock_file.read_text(encoding="utf-8").strip()
                    if owner.isdigit() and _alive(int(owner)):
                        raise RunError(f"{self.path}: in use by process {owner}; wait for it, or give another --run-dir") from None
                    self.lock_file.unlink()
            except OSError as error:
                raise RunError(f"{self.path}: cannot be written to ({error.strerror}); give another --run-dir") from None
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        try:
            yield
        finally:
            self.lock_file.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid != os.getpid()
