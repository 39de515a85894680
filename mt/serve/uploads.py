"""Files that are translated as a whole: text, and documents whose translations are filled in."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, TypeVar

from mt.config.directions import sources
from mt.files import decode_lines
from mt.formats.exchange import Kind, kind_of, open_document, translated
from mt.serve.access_log import Note
from mt.serve.answering import Ask
from mt.serve.limits import RefusedError
from mt.serve.texts import Service

Found = TypeVar("Found")

FORMATS = ("txt", "po", "xliff", "tmx")
"""What is read, by the usual suffix."""
LONGEST_NAME = 100


def safe_name(name: str) -> str:
    """The last part of a name, in characters that no file system or header minds."""
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r"[^A-Za-z0-9._ -]+", "_", last).strip(" .")
    return plain[-LONGEST_NAME:].lstrip(" .-") or "text.txt"


def kind(name: str) -> Kind | None:
    """The kind of document that a name stands for; None for text. Raises RefusedError (415) for what is not read."""
    found = kind_of(PurePosixPath(name))
    suffix = PurePosixPath(name).suffix.lower()
    if (found is None and suffix not in ("", ".txt", ".text")) or found is Kind.tsv or (found and suffix in (".gz", ".bz2", ".xz", ".zst")):
        raise RefusedError(415, f"{suffix or name}: is no kind of file that is translated here; send .txt, .po, .xliff or .tmx")
    return found


async def translated_file(service: Service, data: bytes, name: str, ask: Ask, note: Note, *, target: str | None) -> bytes:
    """The file with what it lacks translated. Raises RefusedError, or MTError for one that cannot be read."""
    found = kind(name)
    seconds = service.limits.file_seconds
    if found is None:
        for _ in decode_lines(io.BytesIO(data), name, max_bytes=len(data) + 1):
            pass  # raises what is wrong with it
        text = data.decode("utf-8-sig")
        (one,) = await service.texts([text], ask, note, target=target, seconds=seconds)
        return one.text.encode("utf-8")
    loop, work = asyncio.get_running_loop(), Cancellable()

    def filled_in() -> bytes:
        """In a thread of its own; the event loop translates for it."""
        document = open_document(io.BytesIO(data), name, found)
        known = sources(service.model.translator.config, to=target)

        def texts(lines: Iterator[tuple[str, str]]) -> Iterator[str]:
            wanted = service.texts([line for _, line in lines], ask, note, target=target, seconds=seconds)
            yield from (one.text for one in work.begin(asyncio.run_coroutine_threadsafe(wanted, loop)).result())

        units = translated(document.units(known, target, retranslate=False), texts)
        return b"".join(document.written(units))

    try:
        return await asyncio.to_thread(filled_in)
    except asyncio.CancelledError:
        work.cancel()
        raise


class Cancellable:
    """Work that another thread waits for, to be ended whether it has begun or not."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._future: Future[Any] | None = None
        self._cancelled = False

    def begin(self, future: Future[Found]) -> Future[Found]:
        """The work has begun."""
        with self._lock:
            self._future = future
            if self._cancelled:
                future.cancel()
        return future

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        with self._lock:
            self._cancelled = True
            if self._future:
                self._future.cancel()
