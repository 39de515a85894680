"""How far a long pass over a corpus is: a bar in a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from tqdm import tqdm

LINE_EVERY = 30.0  # seconds between plain lines where there is no terminal

STEP = 1000

Item = TypeVar("Item")
Say = Callable[[str], None]
"""Takes a line for the user."""


class Meter:
    """Counts pairs; the number of all is not known beforehand."""

    def __init__(self, what: str, say: Say | None = None) -> None:
        """`what` is being done, as in `storing`. Without `say`, and without a terminal, nothing is shown."""
        self.what, self.say = what, say
        self.pairs, self.began = 0, time.monotonic()
        self.next_line = self.began + LINE_EVERY
        terminal = say is not None and sys.stderr.isatty()
        self.bar = tqdm(desc=what, unit=" pairs", disable=not terminal, dynamic_ncols=True, leave=False, delay=1.0)

    def add(self, pairs: int) -> None:
        """So many more are done."""
        self.pairs += pairs
        self.bar.update(pairs)
        now = time.monotonic()
        if self.say and self.bar.disable and now >= self.next_line:
            self.next_line = now + LINE_EVERY
            self.say(f"{self.what}: {self.pairs} pairs, {self.pairs / (now - self.began):.0f} a second")

    def counted(self, pairs: Iterable[Item]) -> Iterator[Item]:
        """The same, counted on the way, a thousand at a time."""
        rest = iter(pairs)
        while some := list(islice(rest, STEP)):
            yield from some
            self.add(len(some))

    def close(self) -> None:
        """The bar goes away."""
        self.bar.close()
