"""What comes in and goes out: pipes that pause, packed stdin, files that are both read and written, N lines for N lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mt.cli.streams import Arriving, refuse_same
from mt.decode.windows import windows
from mt.errors import DataError
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=0.3", "decode.max_length_extra=3", "decode.beam=2")


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return Translator.load(run.path)


def process(*words: str | Path, shell: str = "", **streams: object) -> subprocess.CompletedProcess[bytes]:
    """`mt` in a process of its own; `shell` is what a shell puts behind the words."""
    command = [sys.executable, "-m", "mt", *map(str, words)]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    return subprocess.run(command, capture_output=True, timeout=100, **streams)  # type: ignore[call-overload]


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sender:
        yield source, sender


# ── pauses ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_that_have_come_do_not_wait_for_more(pipe: tuple[BinaryIO, BinaryIO]) -> None:
    source, sender = pipe
    lines = Arriving(lambda: source, "<stdin>")
    found = windows(lines, 3, lines.paused)
    for sent, expected in (b"a\nb\n", [["a", "b"]]), (b"c\nd\ne\nf\ng\n", [["c", "d", "e"], ["f", "g"]]), (b"h\ni", [["h"]]):
        sender.write(sent)
        assert [next(found) for _ in expected] == expected
    sender.close()
    assert list(found) == [["i"]]


def test_a_drip_without_pauses_is_answered_too(pipe: tuple[BinaryIO, BinaryIO]) -> None:
    source, sender = pipe
    enough = threading.Event()

    def drip() -> None:
        while not enough.wait(0.01):
            sender.write(b"drop\n")

    thread = threading.Thread(target=drip)
    thread.start()
    lines = Arriving(lambda: source, "<stdin>")
    first = next(windows(lines, 10_000, lines.paused))
    enough.set()
    thread.join()
    assert set(first) == {"drop"}
    assert len(first) < 1000


def test_what_is_all_there_comes_in_full_windows(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a line of text\n" * 50_000)
    with path.open("rb") as file, subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        for source in file, cat.stdout:
            lines = Arriving(lambda source=source: source, "x")
            assert [len(window) for window in windows(lines, 10_000, lines.paused)] == [10_000] * 5


def test_a_pipe_is_answered_while_it_is_open(run: RunDir, translator: Translator) -> None:
    command = [sys.executable, "-m", "mt", "translate", "--model", run.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        for line in "bage depe .", "", "fide .":
            child.stdin.write(f"{line}\n".encode())
            child.stdin.flush()
            assert child.stdout.readline() == f"{translator.translate([line])[0].text}\n".encode()
        child.stdin.close()
        assert child.stdout.read() == b""
    assert child.returncode == 0


# ── what is read ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_text_on_stdin(run: RunDir, pack: Callable[[bytes], bytes]) -> None:
    text = "".join(f"{line}\n" for line in toy.sentences(3)).encode()
    assert mt("translate", "--model", run.path, stdin=pack(text)) == mt("translate", "--model", run.path, stdin=text)


def test_packed_hypotheses_on_stdin(tmp_path: Path) -> None:
    toy.write_lines(tmp_path / "ref", toy.sentences(3))
    text = (tmp_path / "ref").read_bytes()
    words = ("eval", "--hyp", "-", "--ref", tmp_path / "ref", "--metrics", "chrf")
    assert mt(*words, stdin=gzip.compress(text)).out == mt(*words, stdin=text).out != b""


def test_a_packed_document_on_stdin(run: RunDir) -> None:
    catalogue = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "bage"\nmsgstr ""\n'
    words = ("translate", "--model", run.path, "--input-format", "po")
    packed = mt(*words, stdin=gzip.compress(catalogue))
    assert packed == mt(*words, stdin=catalogue)
    assert (packed.code, packed.err[-1]) == (0, "1 of 1 unit filled in")


def test_broken_packed_stdin_is_named(run: RunDir) -> None:
    done = mt("translate", "--model", run.path, stdin=gzip.compress(b"bage .\n")[:-4])
    assert (done.code, done.err) == (2, ["<stdin>: the compressed file ends too early; copy or download it again"])


def test_fifo_and_stdin_by_name(run: RunDir, tmp_path: Path) -> None:
    text = b"bage depe .\nfide .\n"
    expected = mt("translate", "--model", run.path, stdin=text).out
    os.mkfifo(tmp_path / "fifo")
    sender = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=[text])
    sender.start()
    assert mt("translate", "--model", run.path, "--input", tmp_path / "fifo").out == expected
    sender.join()
    assert process("translate", "--model", run.path, "--input", "/dev/stdin", input=text).stdout == expected


def test_a_stdin_that_cannot_be_read(run: RunDir, tmp_path: Path) -> None:
    toy.write_lines(tmp_path / "ref", ["bage"])
    for words in ("translate", "--model", run.path), ("eval", "--hyp", "-", "--ref", tmp_path / "ref"):
        done = process(*words, shell="0>/dev/null")
        assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"<stdin>: cannot be read (bad file descriptor)\n")


def test_a_stdin_that_does_not_block_is_waited_for(run: RunDir) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    timer = threading.Timer(0.5, lambda: (os.write(writing, b"\n\n"), os.close(writing)))
    timer.start()
    done = process("translate", "--model", run.path, stdin=reading)
    timer.join()
    os.close(reading)
    assert (done.returncode, done.stdout) == (0, b"\n\n")


# ── what is written ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_input_is_not_written_over_by_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    other.touch()
    (tmp_path / "soft").symlink_to("one")
    (tmp_path / "hard").hardlink_to(one)
    for name in ("one", "folder/../one", "soft", "hard", str(one)):
        for output, source in (Path(name), one), (one, Path(name)):
            with pytest.raises(DataError, match=r"^.* input.*; write to another file$"):
                refuse_same(output, other, source)
    for output in other, tmp_path / "new", Path("/dev/null"), tmp_path / "folder" / "one":
        refuse_same(output, one, Path("/dev/null"), tmp_path / "missing", tmp_path / "folder")


def test_outputs_need_not_be_readable(run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    toy.write_lines(source, ["bage ."])
    monkeypatch.setattr(os, "access", lambda path, mode: path == source or mode != os.R_OK)  # root may read everything
    for words in ("translate", "--model", run.path, "--input", source, "--output"), ("eval", "--hyp", source, "--ref", source, "--json"):
        output.write_bytes(b"old")
        assert mt(*words, output).code == 0
        assert output.read_bytes() != b"old"


def test_a_closed_stdout_is_told_before_the_work() -> None:
    done = process("translate", "--model", "missing", shell=">&-")
    assert (done.returncode, done.stderr) == (2, b"<stdout>: is closed; give --output FILE\n")


def test_translations_do_not_replace_their_source(run: RunDir, tmp_path: Path) -> None:
    source, link = tmp_path / "in.src", tmp_path / "link"
    source.write_bytes(b"bage depe .\n")
    link.symlink_to(source)
    config = run.config.read_bytes()
    for words in (source, source), (source, link), (link, source), (source, run.config):
        done = mt("translate", "--model", run.path, "--input", words[0], "--output", words[1])
        assert (done.code, done.out, len(done.err)) == (2, b"", 1)
    with source.open("rb") as read, source.open("ab") as write:  # mt translate < in.src >> in.src
        command = [sys.executable, "-m", "mt", "translate", "--model", run.path]
        done = subprocess.run(command, stdin=read, stdout=write, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"<stdout>: is the same file as the input <stdin>; write to another file\n")
    assert (source.read_bytes(), run.config.read_bytes()) == (b"bage depe .\n", config)


# ── N lines in, N lines out ─────────────────────────────────────────────────────────────────────────────────────────

ODD = [*"\u2028\u2029\x85\v\f\x1c\r\0\t\ufeff\u00a0\u200d", "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}", " ", "bage ", "depe.", "漢"]
LETTERS = st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"], exclude_characters="\n")
LINES = st.lists(st.lists(LETTERS).map("".join), max_size=6)


@given(lines=LINES, ended=st.booleans(), crlf=st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_many_lines_as_came(
    run: RunDir, translator: Translator, monkeypatch: pytest.MonkeyPatch, lines: list[str], ended: bool, crlf: bool
) -> None:
    monkeypatch.setattr(Translator, "load", lambda *_, **__: translator)  # once is enough
    end = "\r\n" if crlf else "\n"
    text = end.join(lines) + (end if ended and lines else "")
    if not text.count("\n") and text.count("\r") > 1:  # refused, as old Mac line ends
        return
    count = text.count("\n") + (not text.endswith("\n") and text not in ("", "\ufeff"))
    done = mt("translate", "--model", run.path, stdin=text.encode())
    assert done.code == 0
    assert len(done.lines) == count
    assert all(bool(found) <= bool(line.strip()) for found, line in zip(done.lines, text.split("\n"), strict=False))
    as_json = mt("translate", "--model", run.path, "--format", "jsonl", stdin=text.encode())
    assert len(as_json.lines) == count


def test_a_line_of_100_000_characters_is_one_line(run: RunDir) -> None:
    done = mt("translate", "--model", run.path, "--greedy", stdin=b"bage depe . " * 8500 + b"\n\nfide .\n")
    assert (done.code, len(done.lines), done.lines[1]) == (0, 3, "")


@pytest.mark.parametrize("bad", [b"\xed\xa0\x80", b"\xff", b"\xc3", b"\xf8\x88\x80\x80\x80"])
def test_half_characters_name_their_line(run: RunDir, tmp_path: Path, bad: bytes) -> None:
    done = mt("translate", "--model", run.path, "--output", tmp_path / "out", stdin=b"bage .\n\n" + bad + b" depe .\n")
    assert (done.code, len(done.err)) == (2, 1)
    assert done.err[0].startswith(f"<stdin>:3: byte 0x{bad[0]:02X} is not UTF-8")
    assert not (tmp_path / "out").exists()
