"""Compressed files: gzip, bzip2, xz and zstd, as they are read told by their first bytes, as they are written by their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from mt.errors import DataError

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

CHUNK_BYTES = 2**18
"""So much is read at a time."""
ZSTD_PIECE = 256  # bytes; no zstd block is shorter than 4 bytes or makes more than 128 KiB: at most 8 MiB come of a piece

# The whole header each time: "BZh" alone may well begin a line of text.
GZIP = re.compile(rb"\x1f\x8b")
BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
XZ = re.compile(rb"\xfd7zXZ\0")
ZSTD = re.compile(rb"(\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)")
ZIP = re.compile(rb"PK\x03\x04")


def unpacked(file: BinaryIO, head: bytes, name: str) -> BinaryIO:
    """The file itself, or what it holds if `head`, its first ten bytes or more, says that it is compressed; `name` is for messages.

    Raises DataError for a zip archive; a file that turns out broken raises it from `read`.
    """
    decompressed: io.BufferedIOBase | io.RawIOBase
    if GZIP.match(head):
        decompressed = gzip.GzipFile(fileobj=file, mode="rb")
    elif BZIP2.match(head):
        decompressed = bz2.BZ2File(file)
    elif XZ.match(head):
        decompressed = lzma.LZMAFile(file)  # noqa: SIM115 (closed by _Decompressed)
    elif ZSTD.match(head):
        decompressed = _Zstandard(file)
    elif ZIP.match(head):
        file.close()
        raise DataError(f"{name}: is packed with zip, which is not read; unpack it, or pack it with gzip, bzip2, xz or zstd")
    else:
        return file
    return io.BufferedReader(_Decompressed(decompressed, file, name), CHUNK_BYTES)


@contextmanager
def packed(file: BinaryIO, name: PurePath) -> Iterator[BinaryIO]:
    """What is written within goes into the file, compressed as its name says: .gz, .bz2, .xz, .zst; as it is under any other name."""
    compressor: Any
    match name.suffix.lower():
        case ".gz":
            compressor = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
        case ".bz2":
            compressor = bz2.BZ2File(file, "wb")
        case ".xz":
            compressor = lzma.LZMAFile(file, "wb")  # noqa: SIM115 (closed with the buffer)
        case ".zst":
            import zstandard

            compressor = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
        case _:
            yield file
            return
    with io.BufferedWriter(compressor, CHUNK_BYTES) as buffer:  # its flush, after each line, makes no block of each line
        yield buffer


def position(stream: BinaryIO) -> int:
    """How many bytes of a file, as it lies on the disk, have been read through a stream of `unpacked`; 0 for a pipe."""
    raw = getattr(stream, "raw", None)
    file = raw._file if isinstance(raw, _Decompressed) else stream
    return file.tell() if file.seekable() else 0


class _Decompressed(io.RawIOBase):
    """Closes the file under the decompressor, which the standard library leaves open, and turns its many errors into one."""

    def __init__(self, decompressed: io.BufferedIOBase | io.RawIOBase, file: BinaryIO, name: str) -> None:
        self._decompressed, self._file, self._name = decompressed, file, name

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._decompressed.read(len(buffer)) or b""
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


class _Zstandard(io.RawIOBase):
    """Zstandard frames, one after another. The library's own stream reader takes a file cut short for a whole one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame: ZstdDecompressionObj | None = None
        self._read = b""
        """Bytes of the next frame."""
        self._ready = memoryview(b"")
        """What came of the last piece and is not yet given out."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        filled = 0
        while filled < len(buffer) and (self._ready or self._decompress()):
            part = self._ready[: len(buffer) - filled]
            buffer[filled : filled + len(part)] = part
            self._ready, filled = self._ready[len(part) :], filled + len(part)
        return filled

    def _decompress(self) -> bool:
        """Make more ready; False at the end."""
        import zstandard

        while not self._ready:
            piece = self._read or self._file.read(ZSTD_PIECE)
            if not piece:
                if self._frame:
                    raise EOFError
                return False
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(piece))
            except zstandard.ZstdError as error:
                raise OSError(str(error).removeprefix("zstd decompressor error: ").lower()) from None
            self._read = b""
            if self._frame.eof:
                self._read, self._frame = self._frame.unused_data, None
        return True
