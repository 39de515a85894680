"""An export appears whole or not at all, and nothing of the user's is touched on the way there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from safetensors import SafetensorError

from mt.errors import RunError
from mt.export.folder import made_in


def make(folder: Path, error: BaseException | None = None) -> None:
    """An export, as far as its folder matters; one that fails before its end, if there is an error."""
    with made_in(folder, folder.parent / "run") as partial:
        (partial / "below").mkdir()
        (partial / "below" / "model").write_text("whole", encoding="utf-8")
        if error:
            raise error


def refused(folder: Path) -> str:
    """The line that it ends with that changed nothing."""
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(RunError) as caught:
        make(folder)
    assert sorted(folder.parent.rglob("*")) == before
    return str(caught.value)


@pytest.mark.parametrize("there", [True, False], ids=["to an empty folder", "to nothing"])
def test_a_link_stays_and_what_it_points_to_is_made(tmp_path: Path, there: bool) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    link.symlink_to("folder")
    if there:
        folder.mkdir()
    make(link)
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link"]
    assert (folder / "below" / "model").read_text(encoding="utf-8") == "whole"


def test_places_that_none_can_take_are_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, here = tmp_path / "loop", tmp_path / "here"
    loop.symlink_to("loop")
    here.mkdir()
    assert refused(loop) == f"{loop}: is a link that leads to itself; remove it, or give another folder"
    assert "name too long" in refused(here / ("n" * 300))
    monkeypatch.chdir(here)
    assert refused(here).endswith(f"is the current folder, and no other can take its place; give a folder in it, such as {here}/exported")
    with pytest.raises(RunError, match="is the current folder"):
        make(Path())
    with pytest.raises(RunError, match="is there already"):
        make(Path("/"))
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == here)
    assert "is a disk of its own" in refused(here)


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    way, mine, folder = tmp_path / ".out.partial", tmp_path / "mine", tmp_path / "out"
    mine.mkdir()
    (mine / "text").touch()
    for put in (way.touch, lambda: way.symlink_to("mine")):
        put()
        assert refused(folder) == f"{way}: is in the way of {folder}, as that is written there first; remove it, or give another folder"
        way.unlink()
    assert (mine / "text").exists()


def test_one_process_writes_it_and_what_a_killed_one_left_is_gone(tmp_path: Path) -> None:
    folder, left = tmp_path / "out", tmp_path / ".out.partial" / "below"
    left.mkdir(parents=True)
    (left / "half").touch()
    with made_in(folder, tmp_path / "run") as partial:
        assert list(partial.iterdir()) == []
        (partial / "model").touch()
        assert refused(folder) == f"{folder}: another process is writing it; wait for it, or give another folder"
    assert [path.name for path in folder.iterdir()] == ["model"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("no space"), KeyboardInterrupt()])
def test_what_fails_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else RunError
    with pytest.raises(expected) as caught:
        make(tmp_path / "a" / "b" / "out", error)
    assert expected is KeyboardInterrupt or "cannot be written (no space" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
