"""A file that is made in parts: after a kill at any moment what was added is there, and nothing else."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from mt.clean.tally import Tally
from mt.errors import MTError
from mt.synthesize.unfinished import Unfinished, beside, refuse_place, unfinished

PARTS = [["a", ""], ["ü", "b c"], ["d"]]
SETTINGS = {"model": "m", "--beam": 5}


class KilledError(BaseException):
    """Ends the process as far as the file can see."""


def tally_of(lines: list[str]) -> Tally:
    tally = Tally()
    for number, line in enumerate(lines):
        tally.add(None if line else "empty side", f"x:{number}", line)
    return tally


def add(work: Unfinished, part: int) -> None:
    work.add(PARTS[part], tally_of(PARTS[part]))


def make(output: Path, *, settings: dict[str, object] | None = None) -> list[int]:
    """Make the file, or go on; how many lines there were before each part."""
    begun = []
    with unfinished(output, settings or SETTINGS) as work:
        while work.lines < 5:
            begun.append(work.lines)
            add(work, [0, 2, 4].index(work.lines))
        assert work.tally == sum(map(tally_of, PARTS), Tally())
        work.finish()
    return begun


def test_the_lines_as_they_were_added(tmp_path: Path) -> None:
    assert make(tmp_path / "out") == [0, 2, 4]
    assert (tmp_path / "out").read_text("utf-8") == "a\n\nü\nb c\nd\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_packed_by_its_name(tmp_path: Path) -> None:
    make(tmp_path / "out.gz")
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == "a\n\nü\nb c\nd\n"


STAGES = ("os.fsync", "json.dump", "write_atomic", "shutil.copyfileobj", "shutil.rmtree")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("times", [1, 2, 3])
def test_killed_at_any_stage_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, times: int) -> None:
    output, left = tmp_path / "out", [times]

    def killing(real: Callable[..., object]) -> Callable[..., object]:
        def act(*words: object, **named: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise KilledError
            return real(*words, **named)

        return act

    with monkeypatch.context() as patch:
        place = f"mt.synthesize.unfinished.{stage}"
        module, _, name = stage.rpartition(".")
        real = getattr(__import__(module), name) if module else __import__("mt.files", fromlist=[name]).write_atomic
        patch.setattr(place, killing(real))
        try:
            make(output)
        except KilledError:
            assert not output.exists() or stage == "shutil.rmtree"
    if beside(output).exists():
        make(output)
    assert output.read_text("utf-8") == "a\n\nü\nb c\nd\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_was_begun_otherwise_is_refused_and_stays(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with unfinished(output, SETTINGS) as work:
        add(work, 0)
    cure = "go on with the same, or remove this folder to start over"
    with pytest.raises(MTError) as error:
        make(output, settings={"model": "n", "--beam": 5, "--to": "de"})
    assert str(error.value) == f"{output}.partial: was begun otherwise (--to was not given, is de; model was m, is n); {cure}"
    assert make(output) == [2, 4]


def test_one_process_makes_it(tmp_path: Path) -> None:
    with unfinished(tmp_path / "out", SETTINGS), pytest.raises(MTError, match="out: another process is making it; wait for it"):
        make(tmp_path / "out")


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    (tmp_path / "other.partial").mkdir()
    (tmp_path / "other.partial" / "mine").touch()
    for place, problem in (
        ("out", "out: is there already; remove it, or give another --output"),
        ("other", "other.partial: is in the way, and not from here"),
        ("nowhere/out", "there is no folder"),
        (".", "is a folder, a file is needed"),
    ):
        with pytest.raises(MTError, match=problem):
            make(tmp_path / place)
    with pytest.raises(MTError, match="--output -: a file is needed"):
        refuse_place(Path("-"))


@pytest.mark.parametrize("harm", ["lines", "progress.json", "settings.json"])
def test_damage_is_told(tmp_path: Path, harm: str) -> None:
    output = tmp_path / "out"
    with unfinished(output, SETTINGS) as work:
        add(work, 0)
    (beside(output) / harm).write_bytes(b"")
    with pytest.raises(MTError, match="is damaged.*; remove .*out.partial|is damaged.*; remove it to start over"):
        make(output)
