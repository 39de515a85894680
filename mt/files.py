"""Text in and out: lines from plain and compressed files, whole-or-nothing writing, hashes.

A line ends at "\\n" and nowhere else: U+2028, U+0085, VT, FF and FS to RS are ordinary characters, unlike for `str.splitlines`, and so are
TAB and NUL. One "\\r" before the line's end and a byte order mark at byte 0 are dropped. Other white space is left to the readers.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, overload

import xxhash

from mt.errors import DataError
from mt.unpack import CHUNK_BYTES, unpacked

MAX_LINE_BYTES = 16 * 2**20
"""Longest line that is read, decompressed; no corpus has such a line, a decompression bomb has nothing else."""

MAX_DOCUMENT_BYTES = 512 * 2**20
"""Largest document that is read whole, decompressed."""

NAME_START = 40
"""So many characters of its name has a file that is being written, with a part that is its own: a name has 255 bytes at most."""

BOM = b"\xef\xbb\xbf"
UTF16_BOMS = b"\xff\xfe", b"\xfe\xff"
UTF16 = re.compile(rb"(?:[^\0]\0){4}|(?:\0[^\0]){4}")  # without byte order mark: four characters that one byte would do for

MOST_NAMES = 10_000
"""Of a folder that are compared with one that is not in it: of a million it would take most of a minute."""

NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS))
"""Codes of an OSError that says that nothing (more) can be written there."""
AS_UTF8 = "the file looks like UTF-16, save it as UTF-8"

# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_binary(path: str | Path) -> BinaryIO:
    """Open a file for reading bytes, decompressed if its first bytes say gzip (also several members), bzip2, xz or zstd, whatever its name.

    Works on pipes too. Raises DataError for a file that is missing, unreadable, a folder, or a zip archive; a file that turns out broken
    raises it from `read`.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 (the caller closes it)
        head = file.peek(10)
    except OSError as error:
        raise DataError(_unread(Path(path), error)) from None
    return unpacked(file, head, str(path))


def shards(path: str | Path) -> list[Path]:
    """The files behind a path: itself, or those of a folder or a pattern such as `part-*.en.gz`, by name; hidden ones are left out.

    Raises DataError for a folder without files and a pattern that no file fits. A single file need not exist.
    """
    path = Path(path)
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if not found:
            raise DataError(f"{path}: is a folder without files")
        return found
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    found = sorted(Path(name) for name in glob.glob(str(path)) if os.path.isfile(name))
    if not found:
        raise DataError(f"{path}: no file fits this pattern")
    return found


def read_whole(stream: BinaryIO, name: str, *, max_bytes: int) -> bytes:
    """All of a stream; `name` is the file in messages. Raises DataError for more than `max_bytes`."""
    data = bytearray()
    while chunk := stream.read(CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise DataError(f"{name}: holds more than {max_bytes >> 20} MiB; split it")
    return bytes(data)


def read_lines(path: str | Path, *, max_bytes: int = MAX_LINE_BYTES) -> Generator[str]:
    """The lines of a UTF-8 file, without their ends, decompressed as by `open_binary`; see `decode_lines`."""
    with open_binary(path) as stream:
        yield from decode_lines(stream, str(path), max_bytes=max_bytes)


def decode_lines(stream: BinaryIO, name: str, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[str]:
    """The lines of a UTF-8 stream, without their ends, as soon as they arrive; `name` is the file in messages.

    The last line may lack its "\\n"; an empty stream has no line. Memory stays below a small multiple of `max_bytes` whatever comes. Raises
    DataError for a line above `max_bytes` and for invalid UTF-8, after the good lines before it, for text whose only line ends are carriage
    returns, and for a stream that cannot be read.
    """
    for block in decode_blocks(stream, name, max_bytes=max_bytes):
        yield from block


def decode_blocks(stream: BinaryIO, name: str, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[list[str]]:
    """As `decode_lines`, in lists: the lines that came together."""
    number = 1  # of the first line in `rest`
    rest = b""
    # A chunk is no longer than a line may be: then only the line begun in an earlier chunk can be too long.
    while chunk := _read_some(stream, min(CHUNK_BYTES, max_bytes), name):
        head, newline, tail = chunk.rpartition(b"\n")
        block, rest = (rest + head + newline, tail) if newline else (b"", rest + tail)
        first = block.find(b"\n") if block else len(rest)
        if first > max_bytes:
            raise DataError(f"{name}:{number}: the line is longer than {max_bytes} bytes; is this one sentence a line?")
        if block:
            yield from _decode(block, name, number)
            number += block.count(b"\n")
    if number == 1 and (returns := rest.count(b"\r")) > 1:
        raise DataError(f"{name}: no line feed but {returns} carriage returns: old Mac line ends? convert with tr '\\r' '\\n'")
    if rest and not (number == 1 and rest == BOM):
        yield from _decode(rest + b"\n", name, number)


def _read_some(stream: BinaryIO, size: int, name: str) -> bytes:
    """What a terminal or pipe has now, instead of waiting for a full chunk; nothing at the end."""
    try:
        return getattr(stream, "read1", stream.read)(size)
    except OSError as error:  # a folder as stdin, a stdin that is only open for writing, a disk that fails
        raise DataError(f"{name}: cannot be read ({(error.strerror or str(error)).lower()})") from None


def _decode(block: bytes, name: str, number: int) -> Iterator[list[str]]:
    """Lines of a block of whole lines whose first is line `number`; what is good before what is not."""
    if number == 1 and UTF16.match(block):
        raise DataError(f"{name}:1: every second byte is 0x00; {AS_UTF8}")
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        begin = block.rfind(b"\n", 0, error.start) + 1
        if begin:
            yield from _decode(block[:begin], name, number)
        line = number + block.count(b"\n", 0, begin)
        utf16 = line == 1 and block.startswith(UTF16_BOMS)
        cure = AS_UTF8 if utf16 else "save the file as UTF-8"
        byte = f"byte 0x{block[error.start]:02X} is not UTF-8 (at byte {error.start - begin + 1} of the line)"
        raise DataError(f"{name}:{line}: {byte}; {cure}") from None
    if number == 1:
        text = text.removeprefix("\ufeff")
    yield text.replace("\r\n", "\n")[:-1].split("\n")


def sha256(path: str | Path) -> str:
    """Hash of the file's bytes as they lie on disk (not decompressed), in hexadecimal."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(_unread(Path(path), error)) from None


def fingerprint(path: str | Path) -> str:
    """A hash of the file's bytes that tells damage, and is as fast as they are read. Raises OSError."""
    digest = xxhash.xxh3_128()
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@overload
def write_atomic(path: str | Path, mode: Literal["w"] = "w") -> AbstractContextManager[TextIO]: ...
@overload
def write_atomic(path: str | Path, mode: Literal["wb"]) -> AbstractContextManager[BinaryIO]: ...
@contextmanager
def write_atomic(path: str | Path, mode: str = "w") -> Iterator[Any]:
    """Write a file that appears whole or not at all: written beside, flushed to the disk, renamed; any exception leaves the old state.

    Text is UTF-8 with "\\n". A file that is replaced hands on its permissions. A link keeps pointing where it points, and what it points to
    is replaced; another name of the same file (a hard link) keeps the old text. What is no file, such as /dev/null or a pipe, is written
    directly. Raises DataError if the file cannot be written.
    """
    # Half a character comes out as JSON spells it, \\udce9: a path whose bytes are no UTF-8 holds some.
    as_text = {"encoding": "utf-8", "newline": "\n", "errors": "backslashreplace"} if mode == "w" else {}
    with _refused(path):
        before = _status(path)
        if before and stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if before and not stat.S_ISREG(before.st_mode):
        with _refused(path):
            file = open(path, mode, **as_text)  # type: ignore[call-overload]  # noqa: SIM115
        with _refused(path, NO_ROOM), file:
            yield file
        return
    with _refused(path):
        target = Path(os.path.realpath(path))
        if before and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        partial = target.with_name(f".{target.name[:NAME_START]}.{secrets.token_hex(4)}.partial")
        file = open(partial, mode.replace("w", "x"), **as_text)  # type: ignore[call-overload]  # noqa: SIM115
    try:
        if before:
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
        with _refused(path, NO_ROOM), file:
            yield file
            with _refused(path):
                file.flush()
                os.fsync(file.fileno())
        with _refused(path):
            os.replace(partial, target)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    with _refused(path), suppress(PermissionError):  # a folder that may be written to but not listed
        sync(target.parent)


@contextmanager
def _refused(path: str | Path, codes: frozenset[int] | None = None) -> Iterator[None]:
    """Turn what the system says against a file, all of it or only some codes, into a DataError."""
    try:
        yield
    except OSError as error:
        if codes and error.errno not in codes:
            raise
        raise DataError(_why_not(Path(path), error)) from None


def _status(path: str | Path) -> os.stat_result | None:
    """What is at a path, links followed; None if nothing is. Raises OSError for a path that cannot be."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


@contextmanager
def write_folder(path: Path) -> Iterator[Path]:
    """Fill a folder that appears whole or not at all, in place of what is there: written as `<name>.partial` beside it, flushed, renamed.

    Files go directly into it. Two processes must not do so at once. Raises DataError if the disk is full; all else is passed on.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        for file in (*partial.iterdir(), partial):
            sync(file)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise DataError(f"{_why_not(path, error)}; make room there") from None
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk before going on."""
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):  # a system that lets no folder be opened
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _why_not(path: Path, error: OSError) -> str:
    """One line on why a file cannot be opened."""
    if isinstance(error, IsADirectoryError):
        return f"{path}: is a folder, a file is needed"
    if not isinstance(error, FileNotFoundError):
        return f"{path}: {(error.strerror or str(error)).lower()}"
    if not os.path.isdir(path.parent):
        return f"{path}: there is no folder {path.parent}"
    if path.is_symlink():
        return f"{path}: is a link to {os.readlink(path)}, which is not there"
    return f"{path}: no such file"


def _unread(path: Path, error: OSError) -> str:
    """The same of a file that is read, with the one that may be meant if it is missing."""
    found = meant(path) if isinstance(error, FileNotFoundError) else None
    return _why_not(path, error) + (f"; did you mean {found}?" if found else "")


def meant(path: Path, fits: Callable[[str], bool] = os.path.isfile) -> Path | None:
    """What fits, and may be meant by a path that does not: of this name in a folder beneath or above, or of nearly this name beside it."""
    folder, name = str(path.parent), path.name
    if name in ("", ".."):
        return None
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)[:MOST_NAMES]
    around = folder if os.path.isdir(folder) else os.path.dirname(folder)
    beneath = sorted(glob.glob(os.path.join(glob.escape(around), "*", glob.escape(name))))
    above = [os.path.join(folder, "..", name), *(os.path.join(up, path) for up in ("..", "../.."))]
    near = [os.path.join(folder, one) for one in get_close_matches(name, names, n=5, cutoff=0.7)]
    return next((Path(one) for one in map(os.path.normpath, (*beneath, *above, *near)) if fits(one)), None)
