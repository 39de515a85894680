"""Files that are translated as a whole: text, and documents whose translations are filled in."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import PurePosixPath
from typing import Any

from mt.config.directions import sources
from mt.errors import MTError
from mt.formats.exchange import Kind, kind_of, open_document, translated
from mt.serve.access_log import Note
from mt.serve.answering import Ask
from mt.serve.limits import RefusedError
from mt.serve.texts import Service

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
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise RefusedError(422, f"{name}:{line}: is not UTF-8; save the file as UTF-8") from None
        (one,) = await service.texts([text], ask, note, target=target, seconds=seconds)
        return one.text.encode("utf-8")
    loop = asyncio.get_running_loop()

    def filled_in() -> bytes:
        """In a thread of its own; the event loop translates for it."""
        document = open_document(io.BytesIO(data), name, found)
        known = sources(service.model.translator.config, to=target)

        def texts(lines: Iterator[tuple[str, str]]) -> Iterator[str]:
            wanted = [line for _, line in lines]
            work = service.texts(wanted, ask, note, target=target, seconds=seconds)
            future = asyncio.run_coroutine_threadsafe(work, loop)
            working.append(future)
            yield from (one.text for one in future.result())

        units = translated(document.units(known, target, retranslate=False), texts)
        return b"".join(document.written(units))

    working: list[Future[Any]] = []
    try:
        return await asyncio.to_thread(filled_in)
    except asyncio.CancelledError:
        for future in working:
            future.cancel()
        raise
    except MTError as error:
        raise RefusedError(422, str(error).splitlines()[0]) from None
