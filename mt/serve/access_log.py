"""A line on stderr for each request: what was asked of which route, how it ended and how long it took, and nothing of any text."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from mt.formats.pairs import counted

log = logging.getLogger("mt.serve")

LogFormat = Literal["text", "json"]


@dataclass
class Note:
    """What is known of a request."""

    id: str
    client: str
    method: str
    route: str = "-"
    """As it is written in the program: what stands in a path may be text."""
    status: int = 0
    seconds: float = 0.0
    characters: int = 0
    sentences: int = 0
    error: str | None = None
    """Why it was refused, in a few words."""


class Formatter(logging.Formatter):
    """Records as lines: JSON, or to be read."""

    def __init__(self, how: LogFormat) -> None:
        super().__init__()
        self.how = how

    def format(self, record: logging.LogRecord) -> str:
        """One line, but for the traceback of a fault in what is to be read."""
        note: Note | None = getattr(record, "note", None)
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = record.getMessage()
        trace = self.formatException(record.exc_info) if record.exc_info else None
        if self.how == "json":
            said: dict[str, Any] = {"time": time, "level": record.levelname.lower()}
            if note:
                known = {name: value for name, value in asdict(note).items() if value is not None}
                said |= {"event": "request", **known, "seconds": round(note.seconds, 4)}
            else:
                said |= {"event": "message", "message": message, **({"traceback": trace} if trace else {})}
            return json.dumps(said, ensure_ascii=True)
        if note:
            text = f"{counted(note.characters, 'character')}, {counted(note.sentences, 'sentence')}, " if note.characters else ""
            message = f"{note.client} {note.method} {note.route} {note.status} {text}{note.seconds:.3f} s"
            message += f" ({note.error})" if note.error else ""
        line = "".join(character if character.isprintable() else "?" for character in f"{time} {message}")
        return f"{line}\n{trace}" if trace else line


def write_log(how: LogFormat) -> None:
    """Send what this program and uvicorn have to say to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter(how))
    for name, level in ("mt.serve", logging.INFO), ("uvicorn.error", logging.WARNING):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
