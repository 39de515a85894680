"""The first signal asks; the second does what it always did."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from threading import Thread

import pytest

from mt.train.signals import NOTICE, Stop, stop_on


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_noted_and_nothing_is_interrupted(number: signal.Signals, code: int) -> None:
    with stop_on(signal.SIGINT, signal.SIGTERM) as stop:
        assert (stop.signal, stop.exit_code) == (None, 0)
        os.kill(os.getpid(), number)
        assert (stop.signal, stop.exit_code) == (number, code)


def test_whoever_asks_is_told_once_what_happens(capfd: pytest.CaptureFixture[str]) -> None:
    with stop_on(signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert capfd.readouterr().err == NOTICE.decode()


def test_during_a_backward_pass_too(capfd: pytest.CaptureFixture[str]) -> None:
    """Handlers wait until Python is back from it, and of two signals it tells of one."""
    seen: list[int | None] = []

    def press_twice() -> None:
        time.sleep(0.03)
        os.kill(os.getpid(), signal.SIGINT)
        until = time.monotonic() + 10
        while capfd.readouterr().err != NOTICE.decode() and time.monotonic() < until:
            time.sleep(0.01)
        seen.append(stop.signal)
        os.kill(os.getpid(), signal.SIGINT)

    with stop_on(signal.SIGINT, signal.SIGTERM) as stop:
        user = Thread(target=press_twice)
        user.start()
        with pytest.raises(KeyboardInterrupt):
            hashlib.pbkdf2_hmac("sha256", b"", b"", 500_000)  # as long, and Python's lock is free meanwhile
        user.join()
    assert seen == [None]


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    with stop_on(signal.SIGINT, signal.SIGTERM) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.exit_code == 143


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_on(signal.SIGINT, signal.SIGTERM):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_nobody_asked() -> None:
    assert Stop().exit_code == 0
