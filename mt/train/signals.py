"""Signals set a flag; the loop looks at it between updates."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from threading import Thread
from types import FrameType

NOTICE = b"\nstopping: finishing the update or validation at hand, then saving; Ctrl-C again stops without saving\n"
"""An update of a large model may take a minute, in which nothing else is said."""
BLINK = 0.1
"""Seconds within which the same signal again is no second one: `timeout` sends it to its child, and once more to the group of it."""


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
    """Within, the first of these signals asks to stop, and stderr says so; the second does what it did before (Ctrl-C: stops).

    Those after the first say nothing new to what was `launched`: it may get one from the system, and again from its launcher, which talks.
    """
    stop = Stop()
    before = {number: signal.getsignal(number) for number in signals}
    first, until = 0, 0.0

    def ask(number: int, _frame: FrameType | None) -> None:
        nonlocal first, until
        if number == first and time.monotonic() < until:
            return
        if not first:
            stop.signal = first = number
            until = time.monotonic() + BLINK
            if launched:
                for other in before:
                    signal.signal(other, signal.SIG_IGN)
            if len(came) < 2:
                return
            number = came[-1]  # within one backward pass, and Python tells of one
        for other, handler in before.items():
            signal.signal(other, handler)
        signal.raise_signal(number)

    with nullcontext(()) if launched else answered(signals) as came:
        for number in signals:
            signal.signal(number, ask)
        try:
            yield stop
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def answered(signals: Collection[int]) -> Iterator[Sequence[int]]:
    """Within, stderr says at once what the first of these signals does, where their handlers wait for the end of a backward pass.

    Yields those that came so far.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    came: list[int] = []
    listener = Thread(target=answer, args=(heard, signals, came), daemon=True)
    listener.start()
    before = signal.set_wakeup_fd(told)
    try:
        yield came
    finally:
        signal.set_wakeup_fd(before)
        os.write(told, bytes(1))
        listener.join()
        os.close(told)
        os.close(heard)


def answer(heard: int, signals: Collection[int], came: list[int]) -> None:
    """Note each of these signals that a pipe tells of, a byte each, and answer the first; 0 is the end."""
    until = 0.0
    while number := os.read(heard, 1)[0]:
        if number not in signals or (came[-1:] == [number] and time.monotonic() < until):
            continue
        came.append(number)
        until = time.monotonic() + BLINK
        if len(came) == 1:
            with suppress(OSError):
                os.write(2, NOTICE)
