"""`write_atomic` where the path is odd: what the system would take is written, all else is refused in one line."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mt.errors import DataError
from mt.files import write_atomic

PROGRAM = """
import os, sys
from mt.errors import MTError
from mt.files import write_atomic
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with write_atomic(sys.argv[1]) as file:
        file.write("new")
except MTError as error:
    print(error)
"""
only_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become somebody else")


def loop(folder: Path) -> Path:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    return folder / "a"


def a_socket(folder: Path) -> Path:
    os.chdir(folder)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    return folder / "socket"


def below_a_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "x"


def link_into_nothing(folder: Path) -> Path:
    (folder / "link").symlink_to(folder / "no" / "x")
    return folder / "link"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (loop, "too many levels of symbolic links"),
        (a_socket, "no such device or address"),
        (below_a_file, "not a directory"),
        (link_into_nothing, "which is not there"),
        (lambda _: Path("/"), "is a folder, a file is needed"),
        (lambda folder: folder / ("n" * 256), "file name too long"),
        (lambda folder: folder / ("漢" * 86), "file name too long"),
    ],
    ids=["loop", "socket", "below a file", "link into nothing", "root", "256 letters", "258 bytes"],
)
def test_what_cannot_be_written_is_one_line(
    tmp_path: Path, make: Callable[[Path], Path], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError) as caught, write_atomic(path):
        pass
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["n" * 250, "n" * 255, "漢" * 85, "\N{GRINNING FACE}" * 63, "-", "caf\udce9"])
def test_any_name_that_the_system_takes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with write_atomic(path) as file:
        file.write("new")
    assert [(one, one.read_text(encoding="utf-8")) for one in tmp_path.iterdir()] == [(path, "new")]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755, 0o222])
def test_a_file_that_is_replaced_hands_on_its_permissions(tmp_path: Path, mode: int) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_text("old", encoding="utf-8")
    path.chmod(mode)
    link.symlink_to(path)
    for name in path, link:
        with write_atomic(name) as file:
            file.write("new")
            (partial,) = tmp_path.glob(".x.*")
            assert stat.S_IMODE(partial.stat().st_mode) == mode  # at once: nobody else gets to read it meanwhile
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert path.read_text(encoding="utf-8") == "new"


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with write_atomic(tmp_path / "x"):
        pass
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_another_name_of_the_file_keeps_the_old_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old", encoding="utf-8")
    (tmp_path / "y").hardlink_to(tmp_path / "x")
    with write_atomic(tmp_path / "x") as file:
        file.write("new")
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in "xy"] == ["new", "old"]


def test_a_full_device_is_named() -> None:
    with pytest.raises(DataError, match="^/dev/full: no space left on device$"), write_atomic("/dev/full") as file:
        file.write("new")


@only_root
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "said"),
    [
        (0o700, None, "permission denied"),
        (0o700, 0o666, "permission denied"),
        (0o755, None, "permission denied"),
        (0o777, 0o444, "permission denied"),
        (0o777, 0o222, ""),
        (0o733, None, ""),
    ],
    ids=["no way in", "no way in to a file", "nothing may be added", "read-only file", "unreadable file", "folder that may not be listed"],
)
def test_permissions(folder_mode: int, file_mode: int | None, said: str) -> None:
    """In a folder of its own: those of pytest let nobody else in."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder = Path(top, "folder")
        folder.mkdir()
        if file_mode is not None:
            (folder / "x").touch()
            (folder / "x").chmod(file_mode)
        folder.chmod(folder_mode)
        done = subprocess.run([sys.executable, "-c", PROGRAM, folder / "x"], capture_output=True, encoding="utf-8")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (f"{folder / 'x'}: {said}\n" if said else "")
        assert list(folder.iterdir()) == ([] if file_mode is None and said else [folder / "x"])
        assert said or (folder / "x").read_text(encoding="utf-8") == "new"
