"""`mt`: puts the commands together and turns errors into exit codes.

| exit code | after |
|---|---|
| 0 | success |
| 1 | a fault of this program (with its traceback), or the reader of our output has gone (quietly) |
| 2 | what the user can cure: wrong options, settings, data, a full disk (one line per problem) |
| 3 | success, but a translation has a flag that `--fail-on` names |
| 130, 143 | Ctrl-C, SIGTERM |

Commands import what is heavy when they are called: `mt --help` must not wait for torch.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, Any, NoReturn, TextIO

import typer

import mt
from mt.cli import (
    average_command,
    backtranslate_command,
    bench_command,
    compare_command,
    config_command,
    data_command,
    distill_command,
    eval_command,
    export_command,
    init_command,
    quickstart_command,
    report_command,
    runs_command,
    score_command,
    serve_command,
    train_command,
    translate_command,
)
from mt.cli.usage import Command, Group
from mt.errors import MTError
from mt.files import NO_ROOM

POSITIONAL: Any = {"cls": Command, "context_settings": {"allow_extra_args": True}}
"""Of commands that ask what a bare file name is, instead of giving their usage."""
PATH_PROBLEMS = frozenset((errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG))
"""Codes of an OSError that is no fault if it names a file, wherever it comes from."""

app = typer.Typer(
    cls=Group,
    help="Train, run and judge machine-translation models: two text files in, translations and honest scores out.",
    epilog="`mt COMMAND --help` explains a command and its options.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain text: the same in a terminal, a pipe and a log, with or without NO_COLOR
    pretty_exceptions_enable=False,  # a fault keeps Python's own traceback, without the values of variables (they may be corpus text)
)
app.command("quickstart", cls=Command, short_help="Write a small corpus and a config, to start with.")(quickstart_command.quickstart)
app.command("init", **POSITIONAL, short_help="Write a config that fits a corpus and this machine.")(init_command.init)
app.command("train", cls=Command, short_help="Go from raw text to a trained run, with its scores.")(train_command.train)
app.command("translate", **POSITIONAL, short_help="Translate text with a run: N lines in, N lines out.")(translate_command.translate)
app.command("eval", **POSITIONAL, short_help="Score a run or a file of translations: BLEU, chrF, TER.")(eval_command.eval_)
app.command("compare", **POSITIONAL, short_help="Tell whether systems differ by more than chance, and where.")(compare_command.compare)
app.command("score", **POSITIONAL, short_help="Tell how probable a run finds given translations.")(score_command.score)
app.command("bench", **POSITIONAL, short_help="Compare searches with a run: quality and speed.")(bench_command.bench)
app.command("average", cls=Command, short_help="Average the weights of checkpoints of a run.")(average_command.average)
app.command("backtranslate", **POSITIONAL, short_help="Make sources for monolingual text: more pairs to train on.")(
    backtranslate_command.backtranslate
)
app.command("distill", **POSITIONAL, short_help="Let a teacher translate what a student is trained on.")(distill_command.distill)
app.command("serve", **POSITIONAL, short_help="Answer requests over HTTP: a page, JSON, LibreTranslate.")(serve_command.serve)
app.command("report", **POSITIONAL, short_help="Write a run as a page: curves, samples, scores.")(report_command.report)
app.command("runs", cls=Command, short_help="List the runs of a folder, with what tells them apart.")(runs_command.runs)
app.add_typer(export_command.export_app, name="export")
app.add_typer(data_command.data_app, name="data")
app.add_typer(config_command.config_app, name="config")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mt {mt.__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")]


@app.callback()
def _options(_version: Version = False) -> None:
    pass


def main() -> None:
    """Run the command line on `sys.argv` and exit with the code of the table above."""
    _fill_closed_streams()
    _speak_utf8()
    try:
        with _ended_by_sigterm():
            _refuse_lost_folder()
            try:
                app(prog_name="mt")
            finally:
                sys.stdout.flush()
    except MTError as error:
        _end_with(str(error))
    except BrokenPipeError:
        _silence_stdout()
        sys.exit(1)
    except OSError as error:
        if error.errno == errno.EBADF and not _open_for_writing(sys.stdout):
            _silence_stdout()
            _end_with("<stdout>: is not open for writing; give --output FILE, or redirect it with > FILE")
        if error.errno not in NO_ROOM and not (error.errno in PATH_PROBLEMS and error.filename):
            raise
        _silence_stdout()
        _end_with(f"{error.filename or 'cannot write'}: {os.strerror(error.errno).lower()}")


def _end_with(problem: str) -> NoReturn:
    """Say what the user can cure, as far as stderr takes it, and exit."""
    with suppress(OSError):
        print(problem, file=sys.stderr)
    sys.exit(2)


def _refuse_lost_folder() -> None:
    """Raise MTError if the current folder is gone: no relative path means anything there, and many libraries ask for it."""
    try:
        os.getcwd()
    except OSError:
        raise MTError("the current folder is no longer there: cd to one that is") from None


def _open_for_writing(stream: TextIO) -> bool:
    return fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Within, SIGTERM ends the program as an exception does, and as Ctrl-C does: what is half-made is tidied up."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _silence_stdout() -> None:
    """Drop what could not be written, or Python flushes once more at its end, and complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fill_closed_streams() -> None:
    """Put the null device where the caller closed stdin, stdout or stderr; let the others block, or lines are lost where one would.

    In this order each gets its own number back: no file opened later can be taken for it.
    """
    for name, mode in ("stdin", "r"), ("stdout", "w"), ("stderr", "w"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8", newline="\n"))  # noqa: SIM115 (open to the end)
        with suppress(OSError):  # what stands in for a stream may have no number
            os.set_blocking(getattr(sys, name).fileno(), True)


def _speak_utf8() -> None:
    """Make stdout and stderr UTF-8 with bare newlines, whatever the locale and the system are, in the order in which they are written."""
    for stream, errors in (sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace"):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors, newline="\n", line_buffering=True)
