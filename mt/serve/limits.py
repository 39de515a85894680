"""What a server takes on, and what it says to whoever asks for more."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from mt.errors import MTError

CLIENT_GONE = 499
"""Nobody reads this status."""
SAID = frozenset((401, 408, 413, 429, CLIENT_GONE))
"""Refusals with these statuses quote nothing."""
BYTES_OF_CHARACTER = 12
"""Of a character in JSON at most: two escapes such as \\ud83d."""
BESIDE_TEXT = 256 * 1024
"""Bytes of a request for all that is no text: its options, its glossary."""
MOST_TEXTS = 1024
"""Of a request."""
MAY_BE_ZERO = ("batch_seconds", "drain_seconds", "per_client")
MOST_SECONDS = 1e6
"""More is a slip, or more than a timer takes."""
OPTIONS = {"seconds": "--timeout", "body_seconds": "--body-timeout", "drain_seconds": "--drain", "batch_seconds": "--batch-wait"}
"""What limits of time are called where users give them."""
MOST_TERMS = 1000
"""Of the glossary of a request."""
MOST_SAID = 500
"""Characters of a line that says what is wrong with a request, which may quote it."""


@dataclass(frozen=True)
class Limits:
    """What a server takes on. Raises MTError for limits that make no sense."""

    characters: int = 20_000
    """Of all texts of a request."""
    file_bytes: int = 2 * 2**20
    """Of a file to be translated."""
    queue: int = 256
    """Requests that are translated or wait for it."""
    seconds: float = 60.0
    """For a request, once it is read."""
    file_seconds: float = 1800.0
    """For a file."""
    body_seconds: float = 20.0
    """For a request to arrive, a file included."""
    header_seconds: float = 10.0
    """For the head of a request to arrive."""
    answer_seconds: float = 60.0
    """For an answer to be read."""
    drain_seconds: float = 30.0
    """For what is begun, after the server was asked to end."""
    beam: int = 20
    """Widest beam, and most translations of a text."""
    batch: int = 64
    """Sentences that are translated at a time."""
    batch_seconds: float = 0.005
    """How long a sentence waits for others."""
    connections: int = 1000
    """Open at a time; what comes then is closed at once."""
    per_client: int = 0
    """Requests of one address at a time; 0: any number."""
    files: int = 2
    """That are translated at a time."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            fits = value > 0 and (isinstance(value, int) or value <= MOST_SECONDS)
            if not fits and not (name in MAY_BE_ZERO and value == 0):
                raise MTError(f"{OPTIONS.get(name, name)}: give a number above 0 and below a million")

    @property
    def body_bytes(self) -> int:
        """Of a request with texts."""
        return self.characters * BYTES_OF_CHARACTER + BESIDE_TEXT


class RefusedError(Exception):
    """An answer other than 200: a status and a line that says what to do."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None, close: bool = False, www: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.headers = {
            **({"Retry-After": str(retry_after)} if retry_after is not None else {}),
            **({"Connection": "close"} if close else {}),
            **({"WWW-Authenticate": www} if www else {}),
        }

    @property
    def noted(self) -> str:
        """For the log, in which no text of clients is: what else is said may quote it."""
        return self.message if self.status in SAID or self.status >= 500 else HTTPStatus(self.status).phrase.lower()

    @property
    def content(self) -> dict[str, Any]:
        """The body of the answer."""
        return {"error": self.message}
