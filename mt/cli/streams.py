"""Where text comes from and where it goes: files, pipes and terminals."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mt.errors import DataError
from mt.files import decode_blocks, open_binary, write_atomic
from mt.unpack import packed, unpacked

DASH = Path("-")
"""Stands for stdin, or stdout."""

PAUSE = 0.05
"""Seconds without anything new after which a pipe pauses."""
PATIENCE = 0.5
"""Seconds that lines which have come wait for more, all in all."""

Source = Callable[[], BinaryIO]
"""Gives what is to be read. Only this waits for the first bytes of a pipe: a model can be loaded before."""


@contextmanager
def reading(path: Path) -> Iterator[Source]:
    """A file or stdin, decompressed. What is wrong with a file is said at once, as a DataError."""
    if path == DASH:
        yield _stdin
        return
    with open_binary(path) as stream:
        yield lambda: stream


def _stdin() -> BinaryIO:
    """Stdin, decompressed if its first bytes say so; nobody types compressed text, and a terminal is not asked for its first bytes."""
    stream = sys.stdin.buffer
    if sys.stdin.isatty() or not isinstance(stream, io.BufferedReader):
        return stream
    try:
        head = stream.peek(10)
    except OSError as error:  # a folder, or open only for writing
        raise DataError(f"<stdin>: cannot be read ({(error.strerror or str(error)).lower()})") from None
    return unpacked(stream, head, "<stdin>")


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """The output file, compressed if its name ends like that, or stdout."""
    if path == DASH:
        if getattr(sys.stdout, "name", "") == os.devnull:  # put there by `main`
            raise DataError("<stdout>: is closed; give --output FILE")
        yield sys.stdout.buffer
        return
    with write_atomic(path, "wb") as file, packed(file, path) as into:
        yield into


def refuse_same(output: Path, *inputs: Path) -> None:
    """Raise DataError if what is written is, by whatever name, one of the files that are read."""
    into = 1 if output == DASH else output
    for path in inputs:
        with suppress(OSError):  # what cannot be looked at is refused when it is opened
            if stat.S_ISREG(os.stat(into).st_mode) and os.path.samefile(into, 0 if path == DASH else path):
                here, there = ("<stdout>" if output == DASH else str(output)), ("<stdin>" if path == DASH else str(path))
                also = "an input, too" if here == there else f"the same file as the input {there}"
                raise DataError(f"{here}: is {also}; write to another file")


class Arriving:
    """The lines of a source as they come; can tell whether the next one lets itself be waited for."""

    def __init__(self, source: Source, name: str) -> None:
        self._source, self._name = source, name
        self._stream: BinaryIO | None = None
        self._at_hand = 0
        """Lines that have come and are not yet given."""
        self._waited = 0.0

    def __iter__(self) -> Iterator[str]:
        self._stream = self._source()
        for block in decode_blocks(self._stream, self._name):
            for given, line in enumerate(block, start=1):
                self._at_hand = len(block) - given
                yield line

    def paused(self) -> bool:
        """Whether to go on with the lines there are: nothing came in a moment, or, however steadily it drips, they have waited enough."""
        if self._at_hand:
            return False
        begin = time.monotonic()
        if self._comes() and (waited := self._waited + time.monotonic() - begin) < PATIENCE:
            self._waited = waited
            return False
        self._waited = 0.0
        return True

    def _comes(self) -> bool:
        """Whether there is more to read, or the end; in a file there always is."""
        try:
            return not self._stream or bool(select.select([self._stream], [], [], PAUSE)[0])
        except (OSError, ValueError):  # what has no descriptor keeps nobody waiting
            return True
