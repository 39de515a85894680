"""A file of lines that takes hours to make: in a folder beside it until it is whole, from which a killed process goes on.

FILE.partial/settings.json   what is made of what; anything else is not mixed with it
FILE.partial/lines           the lines so far, perhaps with some that do not count yet
FILE.partial/progress.json   how many lines count, how many bytes they are, and what became of them
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from mt.clean.tally import Tally
from mt.errors import DataError
from mt.files import write_atomic
from mt.rundir import PARTIAL, read_object
from mt.unpack import packed


class Unfinished:
    """The lines made so far. What `add` has been given is there after any kill, whole; what it was being given is not there at all."""

    def __init__(self, output: Path, folder: Path, file: BinaryIO) -> None:
        self.output, self.folder, self._file = output, folder, file
        self._progress = folder / "progress.json"
        self.lines, self.tally = 0, Tally()
        """How many there are, and what became of them."""
        size = 0
        if self._progress.exists():
            found = read_object(self._progress, cure=f"remove {folder} to start over")
            self.lines, size, self.tally = found["lines"], found["bytes"], Tally.from_json(found["tally"])
        if file.seek(0, os.SEEK_END) < size:
            raise DataError(f"{folder}: is damaged, as lines are missing; remove it to start over")
        file.truncate(size)
        file.seek(size)

    def add(self, lines: Sequence[str], tally: Tally) -> None:
        """Some more lines, and what became of them."""
        self._file.write("".join(f"{line}\n" for line in lines).encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self.lines, self.tally = self.lines + len(lines), self.tally + tally
        with write_atomic(self._progress) as progress:
            json.dump({"lines": self.lines, "bytes": self._file.tell(), "tally": self.tally.to_json()}, progress, ensure_ascii=False)

    def finish(self) -> None:
        """The file as it was asked for, packed if it is called .gz, in place of the folder."""
        self._file.seek(0)
        with write_atomic(self.output, "wb") as file, packed(file, self.output) as into:
            shutil.copyfileobj(self._file, into)
        shutil.rmtree(self.folder)


def beside(output: Path) -> Path:
    """Where a file is till it is whole."""
    return output.with_name(output.name + PARTIAL)


def refuse_place(output: Path) -> None:
    """Raise DataError where no file can be made under this name, or one is there that is not being made."""
    folder = beside(output)
    if output == Path("-"):
        raise DataError("--output -: a file is needed, that a killed process can go on with")
    if output.is_dir():
        raise DataError(f"{output}: is a folder, a file is needed")
    if output.exists() and not folder.exists():
        raise DataError(f"{output}: is there already; remove it, or give another --output")
    if not output.parent.is_dir():
        raise DataError(f"{output}: there is no folder {output.parent}")
    ours = not folder.exists() or (folder.is_dir() and ((folder / "settings.json").exists() or not any(map(is_strange, folder.iterdir()))))
    if not ours:
        raise DataError(f"{folder}: is in the way, and not from here; move it, or give another --output")


def is_strange(path: Path) -> bool:
    """Whether something in a folder without settings was not left there by a kill."""
    return path.name != "lines" and not path.name.startswith(".")


@contextmanager
def unfinished(output: Path, settings: Mapping[str, Any]) -> Iterator[Unfinished]:
    """What there is of a file that is made with these settings; nothing at first.

    Raises DataError where it was begun with others, where another process is making it, and where the file is there already.
    """
    refuse_place(output)
    folder = beside(output)
    folder.mkdir(exist_ok=True)
    begun = folder / "settings.json"
    with open(os.open(folder / "lines", os.O_CREAT | os.O_RDWR, 0o666), "r+b") as lines:
        try:
            fcntl.flock(lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{output}: another process is making it; wait for it, or give another --output") from None
        if begun.exists():
            refuse_others(read_object(begun, cure=f"remove {folder} to start over"), settings, folder)
        else:
            with write_atomic(begun) as file:
                json.dump(dict(settings), file, indent=1, ensure_ascii=False)
        yield Unfinished(output, folder, lines)


def refuse_others(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Raise DataError naming the settings that are others than when the file was begun."""
    changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    if changed:
        differing = "; ".join(f"{name} was {before.get(name, 'not given')}, is {now.get(name, 'not given')}" for name in changed)
        raise DataError(f"{folder}: was begun otherwise ({differing}); go on with the same, or remove this folder to start over")
