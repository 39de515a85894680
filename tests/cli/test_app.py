"""What every command shares: exit codes, messages without tracebacks, UTF-8 in any locale, a quiet end when the reader has gone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mt
from mt.extras import ACTIVATE, INSTALL

# A command that does what the test needs, run through the real main().
PROGRAM = """
import os, sys
from mt.cli import app as cli
from mt.errors import ConfigError, DataError

@cli.app.command()
def probe():
    secret = "a line of the corpus"
    {body}

sys.argv = ["mt", "probe"]
cli.main()
"""

WITHOUT = "import sys, runpy; sys.modules['{module}'] = None; runpy.run_module('mt', run_name='__main__')"
"""The program, where a module is not to be had."""

ROOT = Path(__file__).parents[2]
PRINTING = pytest.mark.parametrize(
    "body", ["print('x', end='')", "print('x\\n' * 100_000)"], ids=["found at the last flush", "found while printing"]
)


def run(body: str, *, encoding: str = "utf-8", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body)], capture_output=True, encoding=encoding, env={**os.environ, **environment}
    )


def test_success() -> None:
    done = run("print('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_what_the_user_can_cure_is_one_line() -> None:
    done = run("raise DataError('train.en:3: byte 0xE9 is not UTF-8')")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "train.en:3: byte 0xE9 is not UTF-8\n")


def test_every_problem_is_a_line() -> None:
    done = run("raise ConfigError('x.yaml:1: a', 'x.yaml:2: b')")
    assert (done.returncode, done.stderr) == (2, "x.yaml:1: a\nx.yaml:2: b\n")


def test_a_fault_keeps_its_plain_traceback() -> None:
    done = run("raise ValueError(len(secret))")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.endswith("ValueError: 20\n")
    assert "a line of the corpus" not in done.stderr


@pytest.mark.parametrize(("body", "code"), [("raise KeyboardInterrupt", 130), ("sys.exit(143)", 143), ("os.kill(os.getpid(), 15)", 143)])
def test_signals_have_their_exit_codes(body: str, code: int) -> None:
    done = run(body)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("module", ["mt.cli.app", "typer", "mt.errors", "mt.cli.train_command"])
def test_ctrl_c_while_it_is_loaded_is_as_quiet_as_later(module: str) -> None:
    code = f"""
import runpy, sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
runpy.run_module("mt", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_system_without_file_locks_is_told_in_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT.format(module="fcntl")], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "run it in WSL" in done.stderr


@pytest.mark.parametrize("start", [["-S", "-m", "mt"], ["-c", WITHOUT.format(module="pydantic")]], ids=["all libraries", "one of them"])
def test_libraries_that_are_missing_are_told_in_one_line(start: list[str]) -> None:
    done = subprocess.run([sys.executable, *start, "config", "explain"], capture_output=True, encoding="utf-8", cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("mt needs the library ")
    assert ACTIVATE in done.stderr
    assert done.stderr.endswith(f"{INSTALL}\n")


@pytest.mark.parametrize("module", ["mt.cli.usage", "difflib"])
def test_what_is_missing_of_the_program_or_of_python_is_a_fault(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT.format(module=module)], capture_output=True, encoding="utf-8", cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):")


@pytest.mark.parametrize("words", [["train", "--no-such-option"], ["no-such-command"], ["config", "shwo"]])
def test_wrong_usage_is_2_with_a_hint(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "mt", *words], capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert words[-1] in done.stderr


@PRINTING
def test_a_reader_that_has_gone_is_no_fault(body: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(body=body)], stdout=gone, stderr=subprocess.PIPE, encoding="utf-8")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    "locale",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii:strict"}],
    ids=lambda locale: " ".join(f"{key}={value}" for key, value in locale.items()),
)
def test_output_is_utf8_in_any_locale(locale: dict[str, str]) -> None:
    done = run("print('K\\u00e4se \\u6f22'); print('stra\\u00dfe', file=sys.stderr)", **locale)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Käse 漢\n", "straße\n")


def test_streams_that_are_one_keep_their_order() -> None:
    code = PROGRAM.format(body="print('a'); print('b', file=sys.stderr); print('c')")
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    assert done.stdout.split() == ["a", "b", "c"]


def test_a_file_name_that_is_not_utf8_comes_out_as_it_is() -> None:
    done = run("print(os.fsdecode(b'caf\\xe9'))", encoding="latin-1")
    assert (done.returncode, done.stdout) == (0, "caf\xe9\n")


def test_version() -> None:
    done = subprocess.run([sys.executable, "-m", "mt", "--version"], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout) == (0, f"mt {mt.__version__}\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one(tmp_path: Path, closed: str) -> None:
    body = f"out = open({str(tmp_path / 'found')!r}, 'w'); out.write(sys.stdin.read()); print('text'); print('warning', file=sys.stderr)"
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", PROGRAM.format(body=body)]
    done = subprocess.run(command, input="typed", capture_output=True, encoding="utf-8")
    streams = closed.split()
    assert done.returncode == 0
    assert done.stdout == ("" if ">&-" in streams else "text\n")
    assert done.stderr == ("" if "2>&-" in streams else "warning\n")
    assert (tmp_path / "found").read_text(encoding="utf-8") == ("" if "<&-" in streams else "typed")


@pytest.mark.parametrize(("name", "said"), [("", "cannot write"), (", 'runs/demo/journal.jsonl'", "runs/demo/journal.jsonl")])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_a_full_disk_is_one_line(number: int, name: str, said: str) -> None:
    done = run(f"raise OSError({number}, 'x'{name})")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{said}: {os.strerror(number).lower()}\n")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG])
def test_a_path_that_the_system_refuses_is_one_line(number: int) -> None:
    done = run(f"raise OSError({number}, 'x', 'runs/demo')")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runs/demo: {os.strerror(number).lower()}\n")
    assert run(f"raise OSError({number}, 'x')").returncode == 1


@pytest.mark.parametrize(
    "words", ["train --config x.yaml --run-dir", "translate --model", "data check --tgt x --src", "eval --ref x --hyp"]
)
def test_paths_that_cannot_be_are_one_line(tmp_path: Path, words: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "x").write_text("x\n", encoding="utf-8")
    (tmp_path / "x.yaml").write_text("data: {train: [{src: x, tgt: x}], dev: none}", encoding="utf-8")
    for path in "loop", "n" * 256:
        command = [sys.executable, "-m", "mt", *words.split(), path]
        here = os.environ | {"PYTHONPATH": os.getcwd()}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", input="", env=here)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        *warnings, said = done.stderr.splitlines()
        assert path in said
        assert all(line.startswith("warning: ") for line in warnings)


def test_other_errors_of_the_system_stay_faults() -> None:
    done = run("raise OSError(5, 'x')")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "OSError: [Errno 5] x")


@PRINTING
def test_a_stdout_that_takes_nothing_is_one_line(body: str) -> None:
    with open("/dev/null", "rb") as null:
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(body=body)], stdout=null, stderr=subprocess.PIPE, encoding="utf-8")
    said = "<stdout>: is not open for writing; give --output FILE, or redirect it with > FILE\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_full_stderr_changes_no_exit_code() -> None:
    code = PROGRAM.format(body="raise DataError('x')")
    with open("/dev/full", "wb") as full:
        assert subprocess.run([sys.executable, "-c", code], stderr=full).returncode == 2


def test_streams_that_do_not_block_lose_nothing() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    code = PROGRAM.format(body="print('x' * 1_000_000)")
    with os.fdopen(reading, "rb") as end, subprocess.Popen([sys.executable, "-c", code], stdout=writing) as child:
        os.close(writing)
        assert len(end.read()) == 1_000_001
    assert child.returncode == 0


def test_a_lost_current_folder_is_one_line(tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    lost.mkdir()
    code = f"import os; os.chdir({str(lost)!r}); os.rmdir({str(lost)!r})\n" + PROGRAM.format(body="print('fine')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "the current folder is no longer there: cd to one that is\n")


@PRINTING
def test_a_full_stdout_is_one_line(body: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(body=body)], stdout=full, stderr=subprocess.PIPE, encoding="utf-8")
    assert (done.returncode, done.stderr) == (2, "cannot write: no space left on device\n")
