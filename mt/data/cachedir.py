"""What can be made again from the sources is kept in one folder, found again by what it was made from, and shared by all runs.

stores/<key>/         prepared pairs (see `store`)
tokenizers/<key>/     a trained tokenizer and what was said about it
splits/<key>/         dev and test sets held out of training corpora
hashes/               SHA-256 of large files, remembered by path, size, time and inode
locks/                held by who makes an entry
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from mt.config.dialect import text_of
from mt.data.meter import Say
from mt.errors import DataError
from mt.files import sha256, write_atomic

PARTIAL = ".partial"
SETTLED = 2.0  # seconds without a change after which a file's time tells its next change for sure


class CacheDir:
    """The cache folder; made when the first entry is."""

    def __init__(self, path: Path | None = None) -> None:
        """Without a path it is `mt` in the user's cache folder. Raises DataError for one that the libraries cannot open."""
        home = os.environ.get("XDG_CACHE_HOME")
        self.path = path or (Path(home) if home else Path.home() / ".cache") / "mt"
        if text_of(str(self.path)) is None:
            raise DataError(f"{self.path}: the name of the cache folder is not UTF-8; set data.cache to another")

    def store(self, key: str) -> Path:
        """Where the store of this key is, or will be."""
        return self.path / "stores" / key

    def tokenizer(self, key: str) -> Path:
        """Where the tokenizer of this key is, or will be."""
        return self.path / "tokenizers" / key

    def split(self, key: str) -> Path:
        """Where the split of this key is, or will be."""
        return self.path / "splits" / key

    def obtain(
        self,
        entry: Path,
        *,
        whole: Callable[[Path], bool],
        make: Callable[[Path], object],
        prints: Mapping[str, str],
        what: str,
        say: Say,
    ) -> None:
        """Have an entry that is `whole`: as it is, or made now; or, while another process makes it, by that one.

        `make` has to make it whole or not at all, and may leave `<entry>.partial` behind when killed. Raises DataError where the cache
        cannot be written to, and for a file that is no longer what its digest in `prints` tells: the key of the entry is made of these.
        """
        if whole(entry):
            return
        with self._lock(entry, what, say):
            if not whole(entry):
                with self._written_to():
                    self._clear_leftovers(but=entry)
                    make(entry)
                if changed := [file for file, digest in prints.items() if self.digest(Path(file)) != digest]:
                    shutil.rmtree(entry, ignore_errors=True)
                    raise DataError(f"{changed[0]}: changed while it was read; start again when nothing writes to it any more")

    @contextmanager
    def _lock(self, entry: Path, what: str, say: Say) -> Iterator[None]:
        """Hold an entry; the system lets go of it when the process ends, however it does."""
        with self._written_to():
            for folder in (entry.parent, self.path / "locks"):
                folder.mkdir(parents=True, exist_ok=True)
            file = self._open_lock(entry)
        with file:
            if not taken(file):
                say(f"another process is making {what} already, waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _written_to(self) -> Iterator[None]:
        """Within, what the disk refuses is a DataError with the cure; what was read of a corpus is one already."""
        try:
            yield
        except ConnectionError:  # a pipe of whoever reads our lines, and no disk
            raise
        except OSError as error:
            reason = f"the cache cannot be written to ({(error.strerror or str(error)).lower()})"
            raise DataError(f"{self.path}: {reason}; set data.cache to a folder of yours") from None

    def _open_lock(self, entry: Path) -> BinaryIO:
        return (self.path / "locks" / f"{entry.parent.name}-{entry.name}").open("ab")

    def _clear_leftovers(self, *, but: Path) -> None:
        """Remove what killed processes left half-made beside an entry; what is still being made is locked."""
        for partial in but.parent.glob(f"*{PARTIAL}"):
            entry = partial.with_name(partial.name.removesuffix(PARTIAL))
            if entry != but:  # ours: whoever makes it begins with removing it
                with self._open_lock(entry) as file:
                    if taken(file):
                        shutil.rmtree(partial, ignore_errors=True)

    def digest(self, file: Path) -> str:
        """SHA-256 of a file; it is read again only if it has changed since it was. Raises DataError if it cannot be read."""
        try:
            state = file.stat()
        except OSError:
            return sha256(file)  # which says what is wrong
        now = {"path": str(file), "size": state.st_size, "mtime": state.st_mtime_ns, "inode": state.st_ino}
        note = self.path / "hashes" / f"{key_of(str(file))}.json"
        try:
            known = json.loads(note.read_text(encoding="utf-8"))
            if {name: known[name] for name in now} == now:
                return str(known["sha256"])
        except (OSError, ValueError, TypeError, KeyError):
            pass
        digest = sha256(file)
        if time.time() - state.st_mtime > SETTLED:
            try:
                note.parent.mkdir(parents=True, exist_ok=True)
                with write_atomic(note) as out:
                    json.dump({**now, "sha256": digest}, out)
            except (OSError, DataError):
                pass  # it is only for the next time
        return digest

    def digests(self, files: Iterable[Path]) -> dict[str, str]:
        """SHA-256 of each file, by its path."""
        return {str(file): self.digest(file) for file in files}


def taken(file: BinaryIO) -> bool:
    """Take a lock, until the file is closed, unless somebody has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def key_of(facts: Any) -> str:
    """A name for what is made from these facts (all that JSON can hold): others have another one."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]
