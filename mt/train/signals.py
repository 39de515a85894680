"""Signals set a flag; the loop looks at it between updates."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

NOTICE = b"\nfinishing the update, then saving; Ctrl-C again stops at once\n"
"""An update of a large model may take a minute, in which nothing else is said."""


class Stop:
    """Whether somebody asked for the end, and by which signal."""

    def __init__(self, signal: int | None = None) -> None:
        self.signal = signal

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, 0 if nobody asked."""
        return 128 + self.signal if self.signal else 0


@contextmanager
def stop_on(*signals: int, launched: bool = False) -> Iterator[Stop]:
    """Within, the first of these signals asks to stop, and stderr says so; the second does what it did before (Ctrl-C: stops at once).

    Those after the first say nothing new to what was `launched`: it may get one from the system, and again from its launcher, which talks.
    """
    stop = Stop()
    before = {number: signal.getsignal(number) for number in signals}

    def ask(number: int, _frame: FrameType | None) -> None:
        stop.signal = number
        if not launched:
            with suppress(OSError):
                os.write(2, NOTICE)  # print() may be at work where the signal comes, and cannot be entered twice
        for other, handler in before.items():
            signal.signal(other, signal.SIG_IGN if launched else handler)

    for number in signals:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
