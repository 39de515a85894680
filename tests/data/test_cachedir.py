"""The cache: an entry is made once, whole or not at all, by one process at a time; hashes are remembered while files stay as they are."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mt.data import cachedir
from mt.data.cachedir import CacheDir, key_of
from mt.errors import DataError
from mt.files import sha256, write_folder


def whole(entry: Path) -> bool:
    return (entry / "done").is_file()


def make(entry: Path, text: str = "x") -> None:
    with write_folder(entry) as folder:
        (folder / "done").write_text(text, encoding="utf-8")


def obtain(cache: CacheDir, entry: Path, text: str = "x") -> list[str]:
    """What is said."""
    lines: list[str] = []
    cache.obtain(entry, whole=whole, make=lambda entry: make(entry, text), prints={}, what="this store", say=lines.append)
    return lines


# ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_where_the_user_says_or_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert CacheDir(tmp_path / "mine").path == tmp_path / "mine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert CacheDir().path == tmp_path / "xdg" / "mt"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert CacheDir().path == tmp_path / ".cache" / "mt"
    assert not list(tmp_path.iterdir())  # nothing is made before it is needed


def test_where_nothing_can_be_written_the_cure_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    cache = CacheDir(tmp_path / "file" / "mt")
    with pytest.raises(DataError, match=r"file/mt: the cache cannot be written to .not a directory.; set data.cache to a folder of yours"):
        obtain(cache, cache.store("a"))


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ENOTDIR, errno.ESTALE])
def test_a_disk_that_fails_while_an_entry_is_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fails(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    cache = CacheDir(tmp_path)
    with pytest.raises(DataError, match=rf"^{tmp_path}: the cache cannot be written to .{os.strerror(number).lower()}.; set data.cache to"):
        obtain(cache, cache.store("a"))
    assert not cache.store("a").exists()
    monkeypatch.undo()
    obtain(cache, cache.store("a"))
    assert whole(cache.store("a"))


def test_a_pipe_that_nobody_reads_any_more_is_not_the_cache(tmp_path: Path) -> None:
    def makes(_: Path) -> None:
        raise BrokenPipeError

    cache = CacheDir(tmp_path)
    with pytest.raises(BrokenPipeError):
        cache.obtain(cache.store("a"), whole=whole, make=makes, prints={}, what="", say=print)


# ── entries ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    cache = CacheDir(tmp_path)
    for text in ("first", "second"):
        obtain(cache, cache.store("a"), text)
    assert (cache.store("a") / "done").read_text(encoding="utf-8") == "first"


def test_one_that_is_not_whole_is_made_again(tmp_path: Path) -> None:
    cache = CacheDir(tmp_path)
    cache.store("a").mkdir(parents=True)
    (cache.store("a") / "old").write_text("x", encoding="utf-8")
    obtain(cache, cache.store("a"))
    assert [path.name for path in cache.store("a").iterdir()] == ["done"]


@pytest.mark.parametrize("settled", [True, False])
def test_what_was_made_of_a_file_that_changed_meanwhile_is_not_kept(tmp_path: Path, settled: bool) -> None:
    """Its key tells of the file as it was."""
    file, cache = tmp_path / "train.en", CacheDir(tmp_path / "cache")
    file.write_text("a\n", encoding="utf-8")
    if settled:
        os.utime(file, (0, 0))
    prints = cache.digests([file])

    def make_meanwhile(entry: Path) -> None:
        make(entry)
        file.write_text("b\n", encoding="utf-8")

    with pytest.raises(DataError, match=rf"^{file}: changed while it was read; start again when nothing writes to it any more$"):
        cache.obtain(cache.store("a"), whole=whole, make=make_meanwhile, prints=prints, what="", say=print)
    assert not cache.store("a").exists()
    cache.obtain(cache.store("a"), whole=whole, make=make, prints=cache.digests([file]), what="", say=print)
    assert whole(cache.store("a"))


KILLED = """
import os, signal, sys
from pathlib import Path
from mt.data.cachedir import CacheDir
from mt.files import write_folder
def make(entry):
    with write_folder(entry) as folder:
        (folder / "half").write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)
cache = CacheDir(Path(sys.argv[1]))
cache.obtain(cache.store("a"), whole=lambda entry: False, make=make, prints={}, what="", say=print)
"""


def test_what_a_killed_process_left_is_cleared_by_the_next_one_and_locks_nobody_out(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path], env=environment)
    assert done.returncode == -signal.SIGKILL
    cache = CacheDir(tmp_path)
    assert (tmp_path / "stores" / "a.partial" / "half").exists()
    assert not whole(cache.store("a"))
    assert obtain(cache, cache.store("b")) == []
    assert sorted(path.name for path in (tmp_path / "stores").iterdir()) == ["b"]
    assert obtain(cache, cache.store("a")) == []
    assert whole(cache.store("a"))


def test_what_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    """A lock held through another handle, as another process holds it; its half-made folder is left alone meanwhile."""
    cache = CacheDir(tmp_path)
    waiting, said = threading.Event(), []
    partial = tmp_path / "stores" / "a.partial"

    def say(line: str) -> None:
        said.append(line)
        waiting.set()

    with CacheDir(tmp_path)._lock(cache.store("a"), "", say):
        partial.mkdir()
        obtain(cache, cache.store("b"))
        assert partial.exists()

        def wait() -> None:
            cache.obtain(cache.store("a"), whole=whole, make=lambda _: said.append("made twice"), prints={}, what="this store", say=say)

        other = threading.Thread(target=wait)
        other.start()
        assert waiting.wait(60)
        make(cache.store("a"))
    other.join(60)
    assert said == ["another process is making this store already, waiting for it"]
    assert not partial.exists()


# ── hashes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read to be hashed."""
    found: list[str] = []

    def reading(path: Path) -> str:
        found.append(path.name)
        return sha256(path)

    monkeypatch.setattr(cachedir, "sha256", reading)
    return found


def old(path: Path, text: str, *, seconds: int = 0) -> Path:
    """A file last written in 2001."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (10**9 + seconds, 10**9 + seconds))
    return path


def test_a_file_is_read_once_while_it_stays_as_it_is(tmp_path: Path, read: list[str]) -> None:
    cache, file = CacheDir(tmp_path / "cache"), old(tmp_path / "a.txt", "one")
    assert cache.digest(file) == cache.digest(file) == CacheDir(tmp_path / "cache").digest(file) == sha256(file)
    assert read == ["a.txt"]


def test_a_file_that_was_changed_is_read_again(tmp_path: Path, read: list[str]) -> None:
    cache, file = CacheDir(tmp_path / "cache"), old(tmp_path / "a.txt", "one")
    digests = [cache.digest(file)]
    digests.append(cache.digest(old(file, "two", seconds=1)))  # at another time
    digests.append(cache.digest(old(file, "three", seconds=1)))  # of another length
    old(tmp_path / "b.txt", "seven", seconds=1).rename(file)  # another file
    digests.append(cache.digest(file))
    assert read == ["a.txt"] * 4
    assert len(set(digests)) == 4


def test_a_file_written_just_now_is_not_trusted(tmp_path: Path, read: list[str]) -> None:
    """A change within the same tick of the clock would not show in its time."""
    cache, file = CacheDir(tmp_path / "cache"), tmp_path / "a.txt"
    file.write_text("one", encoding="utf-8")
    cache.digest(file)
    cache.digest(file)
    assert read == ["a.txt"] * 2


def test_a_damaged_note_is_no_note(tmp_path: Path) -> None:
    cache, file = CacheDir(tmp_path / "cache"), old(tmp_path / "a.txt", "one")
    cache.digest(file)
    (note,) = (tmp_path / "cache" / "hashes").iterdir()
    for text in ("", "[]", "{}", json.dumps({**json.loads(note.read_text(encoding="utf-8")), "size": 4})):
        note.write_text(text, encoding="utf-8")
        assert cache.digest(file) == sha256(file)


def test_a_folder_whose_name_is_not_utf8_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / os.fsdecode(b"caf\xe9")))
    with pytest.raises(DataError, match="the name of the cache folder is not UTF-8; set data.cache to another"):
        CacheDir()


def test_a_missing_file_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere.txt: no such file"):
        CacheDir(tmp_path).digest(tmp_path / "nowhere.txt")


def test_keys_are_those_of_the_facts() -> None:
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert len({key_of(facts) for facts in ({"a": 1}, {"a": 2}, {"a": "1"}, {"a": None}, {})}) == 5
