"""Text in and out: lines from plain and compressed files, whole-or-nothing writing, hashes.

A line ends at "\\n" and nowhere else: U+2028, U+0085, VT, FF and FS to RS are ordinary characters, unlike for `str.splitlines`, and so are
TAB and NUL. One "\\r" before the line's end and a byte order mark at byte 0 are dropped. Other white space is left to the readers.
"""

from __future__ import annotations

import bz2
import errno
import glob
import gzip
import hashlib
import io
import lzma
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, overload

from mt.errors import DataError

MAX_LINE_BYTES = 16 * 2**20
"""Longest line that is read, decompressed; no corpus has such a line, a decompression bomb has nothing else."""

CHUNK_BYTES = 2**18
BOM = b"\xef\xbb\xbf"
UTF16_BOMS = b"\xff\xfe", b"\xfe\xff"
UTF16 = re.compile(rb"(?:[^\0]\0){4}|(?:\0[^\0]){4}")  # without byte order mark: four characters that one byte would do for

NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS))
"""Codes of an OSError that says that nothing (more) can be written there."""
AS_UTF8 = "the file looks like UTF-16, save it as UTF-8"

# The whole header each time: "BZh" alone may well begin a line of text.
GZIP = re.compile(rb"\x1f\x8b")
BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
XZ = re.compile(rb"\xfd7zXZ\0")
UNREAD = {re.compile(rb"\x28\xb5\x2f\xfd"): "zstd", re.compile(rb"PK\x03\x04"): "zip"}


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_binary(path: str | Path) -> BinaryIO:
    """Open a file for reading bytes, decompressed if its first bytes say gzip (also several members), bzip2 or xz, whatever its name.

    Works on pipes too. Raises DataError for a file that is missing, unreadable, a folder, or packed in a way that is not read; a file that
    turns out broken raises it from `read`.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 (the caller closes it)
        head = file.peek(10)
    except OSError as error:
        raise DataError(_why_not(Path(path), error)) from None
    decompressed: io.BufferedIOBase
    if GZIP.match(head):
        decompressed = gzip.GzipFile(fileobj=file, mode="rb")
    elif BZIP2.match(head):
        decompressed = bz2.BZ2File(file)
    elif XZ.match(head):
        decompressed = lzma.LZMAFile(file)  # noqa: SIM115 (closed by _Decompressed)
    elif packer := next((name for magic, name in UNREAD.items() if magic.match(head)), None):
        file.close()
        raise DataError(f"{path}: is packed with {packer}, which is not read; unpack it, or pack it with gzip, bzip2 or xz")
    else:
        return file
    return io.BufferedReader(_Decompressed(decompressed, file, str(path)), CHUNK_BYTES)


def position(stream: BinaryIO) -> int:
    """How many bytes of a file, as it lies on the disk, have been read through a stream of `open_binary`; 0 for a pipe."""
    raw = getattr(stream, "raw", None)
    file = raw._file if isinstance(raw, _Decompressed) else stream
    return file.tell() if file.seekable() else 0


def shards(path: str | Path) -> list[Path]:
    """The files behind a path: the file itself, or those of a folder or a pattern such as `part-*.en.gz`, by name; hidden ones are left out.

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


class _Decompressed(io.RawIOBase):
    """Closes the file under the decompressor, which the standard library leaves open, and turns its many errors into one."""

    def __init__(self, decompressed: io.BufferedIOBase, file: BinaryIO, name: str) -> None:
        self._decompressed, self._file, self._name = decompressed, file, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._decompressed.read(len(buffer))
        except EOFError:
            raise DataError(f"{self._name}: the compressed file ends too early; copy or download it again") from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise DataError(f"{self._name}: the compressed file is broken ({error}); copy or download it again") from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._decompressed.close()
        self._file.close()
        super().close()


def read_lines(path: str | Path, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[str]:
    """The lines of a UTF-8 file, without their ends, decompressed as by `open_binary`; see `decode_lines`."""
    with open_binary(path) as stream:
        yield from decode_lines(stream, str(path), max_bytes=max_bytes)


def decode_lines(stream: BinaryIO, name: str, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[str]:
    """The lines of a UTF-8 stream, without their ends, as soon as they arrive; `name` is the file in messages.

    The last line may lack its "\\n"; an empty stream has no line. Memory stays below a small multiple of `max_bytes` whatever comes. Raises
    DataError for a line above `max_bytes` and for invalid UTF-8, after the good lines before it, and for text whose only line ends are
    carriage returns.
    """
    read = getattr(stream, "read1", stream.read)  # read1 gives what a terminal or pipe has now instead of waiting for a full chunk
    number = 1  # of the first line in `rest`
    rest = b""
    # A chunk is no longer than a line may be: then only the line begun in an earlier chunk can be too long.
    while chunk := read(min(CHUNK_BYTES, max_bytes)):
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


def _decode(block: bytes, name: str, number: int) -> Iterator[str]:
    """Lines of a block of whole lines whose first is line `number`."""
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
    yield from text.replace("\r\n", "\n")[:-1].split("\n")


def sha256(path: str | Path) -> str:
    """Hash of the file's bytes as they lie on disk (not decompressed), in hexadecimal."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(_why_not(Path(path), error)) from None


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@overload
def write_atomic(path: str | Path, mode: Literal["w"] = "w") -> AbstractContextManager[TextIO]: ...
@overload
def write_atomic(path: str | Path, mode: Literal["wb"]) -> AbstractContextManager[BinaryIO]: ...
@contextmanager
def write_atomic(path: str | Path, mode: str = "w") -> Iterator[Any]:
    """Write a file that appears whole or not at all: written beside, flushed to the disk, renamed; any exception leaves the old state.

    Text is UTF-8 with "\\n". A link keeps pointing where it points. What is no file, such as /dev/null or a pipe, is written directly.
    Raises DataError if the file cannot be written.
    """
    target = Path(path)
    as_text = {"encoding": "utf-8", "newline": "\n"} if mode == "w" else {}
    if target.exists() and not target.is_file() and not target.is_dir():  # asked before links are followed: /dev/stdout may lead nowhere
        with open(target, mode, **as_text) as file:  # type: ignore[call-overload]
            yield file
        return
    target = target.resolve()
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        file = open(partial, mode.replace("w", "x"), **as_text)  # type: ignore[call-overload]  # noqa: SIM115
    except OSError as error:
        raise DataError(_why_not(Path(path), error)) from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise DataError(_why_not(Path(path), error)) from None
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system lets a folder be opened."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _why_not(path: Path, error: OSError) -> str:
    """One line on why a file cannot be opened, with the nearest name in its folder if it is missing."""
    if isinstance(error, IsADirectoryError):
        return f"{path}: is a folder, a file is needed"
    if not isinstance(error, FileNotFoundError):
        return f"{path}: {(error.strerror or str(error)).lower()}"
    if not path.parent.is_dir():
        return f"{path}: there is no folder {path.parent}"
    near = get_close_matches(path.name, os.listdir(path.parent), n=1)
    return f"{path}: no such file" + (f"; did you mean {near[0]}?" if near else "")
