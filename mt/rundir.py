"""One directory is one run, and everything in it is named here and nowhere else.

config.yaml                    effective settings, frozen
tokenizer.model                or tokenizer.src.model and tokenizer.tgt.model
data/store.json                where in the cache the prepared pairs are, and what tells them from others
data/filtered.json             what was kept and dropped of each corpus
data/sources.json              SHA-256 of the files it was made from
data/split/                    dev and test set as text, and split.json, where they were held out of the training corpora
journal.jsonl                  one event a line
starts.jsonl                   when it was started or taken up again, and with what: versions, device, commit
tensorboard/
checkpoints/step-00012000/     model.safetensors, state.json, trainer.pt
checkpoints/average/           the mean of several, if train.average or `mt average` asked for it
checkpoints/names.json         which of these is `best`, which `last`
reports/                       test.json, the scores of the test sets; index.html, the run for a reader
lock                           held, and with its number in it, by the process that trains
replaced.partial/              what --overwrite replaces, until the new run is prepared

A run that was exported for another program is another folder, which holds what that program reads, the tokenizer files, and

mt.json                        the program, the format, where it is from, how it is asked, and what its proof showed
mt.yaml                        the settings of the run, as far as translations depend on them
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from mt.config.dialect import text_of
from mt.errors import DataError, RunError
from mt.files import meant, write_atomic

PARTIAL = ".partial"
"""Ending of what is still being written, or removed; ignored, and cleared when the run goes on."""

OLD = f".old{PARTIAL}"
"""Ending of a checkpoint while another takes its place."""


def read_object(file: Path, *, cure: str) -> dict[str, Any]:
    """The object in a JSON file of a run. Raises RunError, with the cure, for anything else in its place."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RunError(f"{file}: is damaged{'' if file.exists() else ' or missing'}; {cure}")
    return value


class RunDir:
    """The paths of a run; creates nothing by itself."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.data = self.path / "data"
        self.journal = self.path / "journal.jsonl"
        self.starts = self.path / "starts.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.checkpoints = self.path / "checkpoints"
        self.names_file = self.checkpoints / "names.json"
        self.reports = self.path / "reports"
        self.test_scores = self.reports / "test.json"
        self.page = self.reports / "index.html"
        self.lock_file = self.path / "lock"
        self.replacing = self.path / f"replacing{PARTIAL}"
        self.replaced = self.path / f"replaced{PARTIAL}"
        self.pointer = self.data / "store.json"
        self.filtered = self.data / "filtered.json"
        self.sources = self.data / "sources.json"
        self.split = self.data / "split"

    def is_whole(self) -> bool:
        """Whether a run was prepared here to the end: the config is written last."""
        return self.config.is_file() and self.sources.is_file()

    def entries(self) -> list[Path]:
        """What is there of a run, but for the lock and an older run that is being replaced; the config comes first."""
        folders = (self.data, self.tensorboard, self.checkpoints, self.reports)
        files = (self.config, self.journal, self.starts, *self.tokenizer_files(joint=True)[:1], *self.tokenizer_files(joint=False))
        return [path for path in (*files, *folders) if path.exists()]

    def strangers(self) -> list[str]:
        """What would make it wrong to start a run here: all that is no part of a half-made run; nothing where a whole one is."""
        if self.is_whole() or not self.path.exists():
            return []
        inside = self.data.iterdir() if self.data.is_dir() else ()
        found = [*self.path.iterdir(), *inside]  # before what is half-written: another process may be writing
        half_made = {self.lock_file, self.data, *self.tokenizer_files(joint=True), *self.tokenizer_files(joint=False)}
        half_made |= {self.pointer, self.filtered, self.sources, self.split, *self.half_written(), self.replaced, self.replacing}
        found = [path for path in found if path not in half_made and path.exists()]
        return [str(path.relative_to(self.path)) for path in found]

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
        return sorted(int(path.name[5:]) for path in found if re.fullmatch("step-[0-9]{8,}", path.name))

    @property
    def average(self) -> Path:
        """The checkpoint made of several at the end of a run, or later."""
        return self.checkpoints / "average"

    def names(self) -> dict[str, str]:
        """Which checkpoint folder `best` and `last` stand for; empty before the first checkpoint."""
        if not self.names_file.exists():
            return {}
        cure = 'write {"best": "step-…", "last": "step-…"} with folders that exist'
        names = read_object(self.names_file, cure=cure)
        if not all(isinstance(folder, str) for folder in names.values()):
            raise RunError(f"{self.names_file}: is damaged; {cure}")
        return names

    def is_locked(self) -> bool:
        """Whether a process holds the run; it is not disturbed."""
        try:
            with self.lock_file.open("rb") as file:
                os.kill(int(file.read(20)), 0)  # a dead one's lock is left alone: another process may be about to take it
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (PermissionError, BlockingIOError):
            return True
        except (OSError, ValueError, OverflowError):
            return False
        return False

    def set_names(self, **folders: Path) -> None:
        """Let some names stand for other checkpoints, all at once. Raises RunError if the disk refuses."""
        names = self.names() | {name: folder.name for name, folder in folders.items()}
        try:
            with write_atomic(self.names_file) as file:
                json.dump(names, file)
        except DataError as error:
            raise RunError(f"{error}; see to the disk, then go on with --resume") from error

    def require(self) -> None:
        """Raise RunError if this is no run; one that was being replaced when its process was killed is put back first."""
        if text_of(str(self.path)) is None:
            raise RunError(f"{self.path}: the name of this path is not UTF-8; rename the folder")
        if self.is_torn():
            with self.lock():
                self.put_back()
        if not self.config.exists():
            raise RunError(f"{self.path}: {self._taken_for_a_run()}")

    def _taken_for_a_run(self) -> str:
        """What a path is that is no run, and what to give instead."""
        path = self.path.absolute()
        if path.parent.name == self.checkpoints.name and path.is_dir():
            number = path.name.removeprefix("step-").lstrip("0") or path.name
            return f"is a checkpoint of {self.path.parent.parent}; give that run, and --checkpoint {number} to translate with this one"
        if ExportDir(path).is_there():
            return "is a run as it was exported for another program, which cannot do this; give the run that it was made from"
        if (lost := ExportDir(path)).config.is_file():
            return f"was exported for another program, and {lost.facts_file.name} is missing; export the run again"
        if path.suffix in (".yaml", ".yml") and path.is_file():
            return f"is a config; give the directory of its run, such as runs/{path.stem}"
        near = meant(self.path, lambda other: os.path.isfile(RunDir(other).config))
        cure = f"did you mean {near}?" if near else "give the directory that `mt train` wrote"
        return f"not a run (it has no {self.config.name}); {cure}" if path.is_dir() else f"no such folder; {cure}"

    def find(self, which: str) -> Path:
        """The checkpoint called `best`, `last`, `average` or a number of updates. Raises RunError, listing what exists."""
        self.require()
        path = self.step(int(which)) if re.fullmatch("[0-9]{1,12}", which) else self.checkpoints / self.names().get(which, which)
        if which in ("", ".", "..") or path.parent != self.checkpoints or not (path / "state.json").exists():
            means = (file.parent.name for file in self.checkpoints.glob("*/state.json"))
            folders = {**self.names(), **{name: name for name in sorted(means) if re.fullmatch("(?!step-)[^.]+", name)}}
            names = [name for name, folder in folders.items() if (self.checkpoints / folder / "state.json").exists()]
            there = ", ".join([*names, *map(str, self.steps())])
            there = f"there are: {there}" if there else "there are none yet; let `mt train` reach its first validation"
            unjudged = which == "best" and "best" not in self.names() and "last" in self.names()
            cure = "; it was not validated yet, take its newest with --checkpoint last" if unjudged else ""
            raise RunError(f"{self.path}: no checkpoint {which!r}; {there}{cure}")
        return path

    def half_written(self) -> list[Path]:
        """Files and folders that were being written when a run was killed."""
        inside = (self.checkpoints, self.data, self.reports)
        return [*self.path.glob(f".*{PARTIAL}"), *(path for folder in inside for path in folder.glob(f"*{PARTIAL}"))]

    def clear_half_written(self) -> None:
        """Remove what a killed run left half-written; a checkpoint whose place no other has taken yet is put back."""
        try:
            for old in self.checkpoints.glob(f"*{OLD}"):
                if not (path := self.checkpoints / old.name.removesuffix(OLD)).exists():
                    old.rename(path)
            for path in self.half_written():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError as error:
            raise RunError(f"{path}: cannot be removed ({(error.strerror or str(error)).lower()}); remove it yourself") from None

    def is_torn(self) -> bool:
        """Whether a run here is being replaced, or was when its process was killed."""
        old = self.replaced / self.config.name
        return self.replacing.is_dir() or old.is_file() or (self.replaced.is_dir() and self.is_whole())

    def put_aside(self) -> None:
        """Move what is there out of the way of a new run; `put_back` settles what becomes of it."""
        for left in (self.replacing, self.replaced):
            if not left.is_dir():
                left.unlink(missing_ok=True)
        self.put_back()  # a half-made run may lie there still, from a preparation that was killed as well
        self.replacing.mkdir()
        for path in self.entries():
            path.rename(self.replacing / path.name)
        self.replacing.rename(self.replaced)

    def put_back(self) -> None:
        """Settle what `put_aside` began, wherever it was killed: if the new run is whole the old one goes, else the old one comes back."""
        if self.replaced.is_dir():
            if self.config.exists():
                shutil.rmtree(self.replaced)
                return
            for path in self.entries():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            self.replaced.rename(self.replacing)
        if self.replacing.is_dir():
            for path in sorted(self.replacing.iterdir(), key=lambda path: path.name == self.config.name):
                path.rename(self.path / path.name)
            self.replacing.rmdir()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run: a second process gets a RunError. The system lets go of the lock when its process ends, however that is."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.path}: cannot be made ({error.strerror}); give another --run-dir") from None
        with self._locked() as file:
            try:
                try:
                    file.truncate(0)
                    file.write(str(os.getpid()).encode())
                except OSError as error:
                    raise RunError(f"{self.path}: cannot be written to ({error.strerror}); give another --run-dir") from None
                yield
            finally:
                self.lock_file.unlink(missing_ok=True)  # while it is held: whoever waits for it looks whether it is still this file

    def _locked(self) -> BinaryIO:
        """The lock file, opened and locked. Raises RunError if another process has it."""
        while True:
            try:
                file = open(os.open(self.lock_file, os.O_CREAT | os.O_RDWR), "r+b", buffering=0)  # noqa: SIM115 (its owner closes it)
            except OSError as error:
                raise RunError(f"{self.path}: cannot be written to ({error.strerror}); give another --run-dir") from None
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = file.read(20).decode("ascii", "replace")
                file.close()
                who = f"process {owner}" if owner.isdecimal() else "another process"  # it has not written its number yet
                raise RunError(f"{self.path}: in use by {who}; wait for it, or give another --run-dir") from None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(self.lock_file)):
                    return file
            file.close()  # its owner removed it in this moment


AGAIN = "export the run again, or copy it whole"  # the cure for an export that is not whole
EXPORT_FORMAT = 2
"""Version of an exported folder; a reader refuses another one. (1 had no settings beside it.)"""


class ExportDir:
    """The paths of a run that was exported for another program."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.facts_file = self.path / "mt.json"
        self.config = self.path / "mt.yaml"
        self.weights = self.path / "model.bin"

    def is_there(self) -> bool:
        """Whether an export is here."""
        return self.facts_file.is_file()

    def entries(self) -> list[Path]:
        """Every file of it."""
        return sorted(self.path.iterdir())

    def refuse_choice(self, **asked: str | None) -> None:
        """Raise RunError for a choice among checkpoints or weights."""
        for name, value in asked.items():
            if value:
                raise RunError(
                    f"--{name} {value}: {self.path} is an export, of one checkpoint; leave it out, or give the run it was made from"
                )

    def facts(self, *, program: str) -> dict[str, Any]:
        """What mt.json says. Raises RunError if it is not for this program, or of a format that this version does not know."""
        facts = read_object(self.facts_file, cure=AGAIN)
        if (found := facts.get("format", 1)) != EXPORT_FORMAT:
            raise RunError(f"{self.path}: exported in format {found}, this mt reads format {EXPORT_FORMAT}; export it again")
        if facts.get("program") != program:
            raise RunError(f"{self.path}: was exported for {facts.get('program')}, with which mt cannot translate; give the run it is from")
        if not self.config.is_file():
            raise RunError(f"{self.config}: is missing; {AGAIN}")
        return facts
