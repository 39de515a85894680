"""A run directory: names, what they stand for, and the lock."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mt.errors import RunError
from mt.rundir import PARTIAL, RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "home" / "runs" / "run")
    run.checkpoints.mkdir(parents=True)
    run.config.write_text("data: …\n", encoding="utf-8")
    return run


def add(run: RunDir, update: int) -> Path:
    """A checkpoint, as far as its name goes."""
    path = run.step(update)
    path.mkdir()
    (path / "state.json").write_text("{}", encoding="utf-8")
    return path


def test_making_the_object_makes_no_directory(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "a" / "run")
    assert (run.steps(), run.names()) == ([], {})
    assert not (tmp_path / "a").exists()


def test_everything_is_inside(run: RunDir) -> None:
    places = [run.config, run.data, run.journal, run.tensorboard, run.checkpoints, run.reports, run.lock_file, run.average, run.step(3)]
    places += [*run.tokenizer_files(joint=True), *run.tokenizer_files(joint=False)]
    assert all(place.is_relative_to(run.path) for place in places)
    assert len(set(places)) == len(places) - 1  # one tokenizer file, for both sides, if joint


def test_steps_are_sorted_as_numbers_and_only_whole_ones(run: RunDir) -> None:
    for update in (100, 20, 123456789):
        add(run, update)
    (run.checkpoints / f"step-00000300{PARTIAL}").mkdir()
    run.average.mkdir()
    assert run.steps() == [20, 100, 123456789]


def test_names_change_together_and_one_by_one(run: RunDir) -> None:
    run.set_names(best=add(run, 5), last=run.step(5))
    run.set_names(last=add(run, 10))
    assert run.names() == {"best": "step-00000005", "last": "step-00000010"}
    assert [path.name for path in run.checkpoints.iterdir() if path.name.endswith(PARTIAL)] == []


def test_find_by_name_and_by_number(run: RunDir) -> None:
    run.set_names(best=add(run, 5), last=add(run, 10))
    run.average.mkdir()
    (run.average / "state.json").write_text("{}", encoding="utf-8")
    assert run.find("best") == run.find("5") == run.step(5)
    assert run.find("last") == run.find("10") == run.step(10)
    assert run.find("average") == run.average


@pytest.mark.parametrize("which", ["7", "newest", "", ".", "..", "../run/checkpoints/step-00000005", "names.json", "average"])
def test_find_lists_what_there_is(run: RunDir, which: str) -> None:
    run.set_names(best=add(run, 5), last=add(run, 10))
    with pytest.raises(RunError, match=r"no checkpoint .*; there are: best, last, 5, 10$"):
        run.find(which)


def test_what_is_taken_for_a_run_is_named(run: RunDir, tmp_path: Path) -> None:
    run.set_names(last=add(run, 300))
    run.average.mkdir()
    for path, number in ((run.step(300), "300"), (run.average, "average")):
        with pytest.raises(RunError, match=f"is a checkpoint of {run.path}; give that run, and --checkpoint {number} to"):
            RunDir(path).find("best")
    config = tmp_path / "my.yaml"
    config.write_text("data: {}", encoding="utf-8")
    with pytest.raises(RunError, match="my.yaml: is a config; give the directory of its run, such as runs/my$"):
        RunDir(config).find("best")


@pytest.mark.parametrize(("within", "asked", "found"), [("..", "{}", "{parent}/{}"), (".", "runs/{}", "{}"), ("{}", "{}", "../{}")])
def test_a_run_that_is_near_by_is_named(run: RunDir, within: str, asked: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"parent": run.path.parent.name}
    asked, found, within = (text.format(run.path.name, **names) for text in (asked, found, within))
    monkeypatch.chdir(run.path.parent / within)
    with pytest.raises(RunError, match=f"^{asked}: no such folder; did you mean {found}\\?$"):
        RunDir(asked).require()


def test_find_before_the_first_checkpoint_and_in_what_is_no_run(run: RunDir, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no checkpoint 'best'; there are none yet; let `mt train` reach"):
        run.find("best")
    with pytest.raises(RunError, match="not a run .it has no config.yaml."):
        RunDir(tmp_path).find("best")


def test_a_run_whose_name_is_not_utf8_is_refused(run: RunDir) -> None:
    """The libraries that read its files could not open them."""
    moved = run.path.rename(run.path.with_name(os.fsdecode(b"caf\xe9")))
    with pytest.raises(RunError, match="the name of this path is not UTF-8; rename the folder"):
        RunDir(moved).find("last")


def test_what_is_half_written_is_cleared_and_nothing_else(run: RunDir) -> None:
    kept = add(run, 5)
    (run.checkpoints / f"step-00000010{PARTIAL}").mkdir()
    (run.checkpoints / f"step-00000010{PARTIAL}" / "model.safetensors").write_bytes(b"x")
    (run.checkpoints / f".names.json.0a1b{PARTIAL}").write_bytes(b"{")
    run.clear_half_written()
    assert list(run.checkpoints.iterdir()) == [kept]


# ── damaged, or replaced half-way ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("harm", ["a folder", "[" * 100_000, '{"best": 5}', "[]", ""], ids=["folder", "deep", "number", "list", "empty"])
def test_damaged_names_are_one_line_with_the_cure(run: RunDir, harm: str) -> None:
    run.names_file.mkdir() if harm == "a folder" else run.names_file.write_text(harm, encoding="utf-8")
    with pytest.raises(RunError, match=r"names.json: is damaged; write ..best.: .step-….") as caught:
        run.find("best")
    assert "\n" not in str(caught.value)


def test_a_run_that_was_not_validated_yet_has_a_last_checkpoint(run: RunDir) -> None:
    run.set_names(last=add(run, 5))
    with pytest.raises(RunError, match="no checkpoint 'best'; there are: last, 5; it was not validated yet, .* --checkpoint last$"):
        run.find("best")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", range(4))
def test_a_run_whose_replacement_was_killed_is_put_back_by_whoever_asks_for_it(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    run.set_names(best=add(run, 5))
    run.journal.write_text("{}\n", encoding="utf-8")
    rename, moments = Path.rename, iter(range(100))

    def killed(path: Path, target: Path) -> Path:
        if next(moments) == moment:
            raise Killed
        return rename(path, target)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(Path, "rename", killed)
        run.put_aside()
    assert run.is_torn()
    assert RunDir(run.path).find("best") == run.step(5)
    assert run.journal.exists()
    assert not run.is_torn()


@pytest.mark.parametrize("name", ["replaced", "replacing"])
def test_a_file_where_the_old_run_goes_is_not_in_the_way(run: RunDir, name: str) -> None:
    run.set_names(best=add(run, 5))
    (run.path / f"{name}{PARTIAL}").write_text("x", encoding="utf-8")
    assert not run.is_torn()
    run.put_aside()
    run.put_back()
    assert run.find("best") == run.step(5)


def test_names_of_what_is_gone_are_not_offered(run: RunDir) -> None:
    run.set_names(best=add(run, 5), last=add(run, 10))
    (run.step(5) / "state.json").unlink()
    with pytest.raises(RunError, match="no checkpoint 'best'; there are: last, 5, 10$"):
        run.find("best")


def test_the_average_is_offered_where_there_is_one(run: RunDir) -> None:
    run.set_names(best=add(run, 5), last=add(run, 10))
    run.average.mkdir()
    (run.average / "state.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="no checkpoint '7'; there are: best, last, average, 5, 10$"):
        run.find("7")


def test_while_its_replacement_is_prepared_a_run_is_in_use(run: RunDir, other: subprocess.Popen[bytes]) -> None:
    run.set_names(best=add(run, 5))
    run.put_aside()
    with pytest.raises(RunError, match=f"in use by process {other.pid};"):
        run.find("best")
    other.communicate()
    assert run.find("best") == run.step(5)


# ── the lock ────────────────────────────────────────────────────────────────────────────────────────────────────────


HOLD = "import sys; from mt.rundir import RunDir\nwith RunDir(sys.argv[1]).lock():\n    print(flush=True); input()"


HOLD_OR_SAY = """
import sys
from mt.errors import RunError
from mt.rundir import RunDir
try:
    with RunDir(sys.argv[1]).lock():
        print("held", flush=True); sys.stdin.read()
except RunError as error:
    print(error, flush=True)
"""


@pytest.fixture
def other(run: RunDir) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the run until its input is closed."""
    command = [sys.executable, "-c", HOLD, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        process.stdout.readline()
        yield process


def test_the_lock_makes_the_directory_and_goes_away(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "runs" / "demo")
    with run.lock():
        assert run.lock_file.read_text(encoding="utf-8") == str(os.getpid())
    assert list(run.path.iterdir()) == []


def test_a_lock_that_finds_no_room_goes_away(run: RunDir) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(RunError, match=f"^{run.path}: cannot be written to .*; give another --run-dir$"), run.lock():
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not run.lock_file.exists()


def test_the_lock_is_released_after_an_exception(run: RunDir) -> None:
    with pytest.raises(KeyboardInterrupt), run.lock():
        raise KeyboardInterrupt
    assert not run.lock_file.exists()


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_in_use_is_refused_until_its_process_is_dead(run: RunDir, other: subprocess.Popen[bytes], killed: bool) -> None:
    with pytest.raises(RunError, match=f"in use by process {other.pid};"), run.lock():
        pass
    assert run.lock_file.read_text(encoding="utf-8") == str(other.pid)
    if killed:
        other.kill()
    other.communicate()
    assert run.lock_file.exists() == killed
    with run.lock():
        assert run.lock_file.read_text(encoding="utf-8") == str(os.getpid())


def test_of_five_that_start_at_once_one_has_it(run: RunDir) -> None:
    """The others say so in one line; as long as the one holds it, that is."""
    command = [sys.executable, "-c", HOLD_OR_SAY, str(run.path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(5)]
    said = [process.stdout.readline().strip() for process in processes if process.stdout]
    for process in processes:
        process.communicate()
    (owner,) = (process.pid for process, line in zip(processes, said, strict=True) if line == "held")
    others = [line.replace(f"process {owner}", "another process") for line in said if line != "held"]
    assert others == [f"{run.path}: in use by another process; wait for it, or give another --run-dir"] * 4
    assert not run.lock_file.exists()


@pytest.mark.parametrize("left", [b"", b"\xffnot a number", b"1", b"%d" % os.getpid()], ids=["empty", "garbage", "alive", "own"])
def test_a_lock_file_that_nobody_holds_is_ignored(run: RunDir, left: bytes) -> None:
    """Whatever is in it: after a restart of a container a number means another process."""
    run.lock_file.write_bytes(left)
    with run.lock():
        assert run.lock_file.read_text(encoding="utf-8") == str(os.getpid())
    assert not run.lock_file.exists()


def test_a_lock_removed_while_it_is_taken(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was opened just before its owner removed it: locking that would lock nothing."""
    flock, calls = fcntl.flock, []

    def released_first(*args: int) -> None:
        if not calls:
            run.lock_file.unlink()
        calls.append(flock(*args))

    monkeypatch.setattr(fcntl, "flock", released_first)
    with run.lock():
        assert run.lock_file.exists()
    assert len(calls) == 2


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    run = RunDir(tmp_path / "file" / "run")
    with pytest.raises(RunError, match=r"file/run: cannot be made .Not a directory.; give another --run-dir"), run.lock():
        pass


def test_a_directory_that_cannot_be_written_to(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RunError, match=r"cannot be written to .Permission denied.; give another --run-dir"), run.lock():
        pass
