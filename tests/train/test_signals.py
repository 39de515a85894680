"""The first signal asks; the second does what it always did."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from threading import Thread

import pytest

from mt.train.signals import BLINK, NOTICE, Stop, answer, stop_on


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


def test_during_a_backward_pass_too(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers wait until Python is back from it, and of two signals it tells of one."""
    monkeypatch.setattr("mt.train.signals.BLINK", 0.0)  # here the two are not far apart
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


def test_a_signal_that_comes_twice_at_once_is_one() -> None:
    """As from `timeout`."""
    with stop_on(signal.SIGINT, signal.SIGTERM) as stop:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(BLINK)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.exit_code == 130


def test_during_a_backward_pass_as_well_it_is_one(capfd: pytest.CaptureFixture[str]) -> None:
    heard, told = os.pipe()
    came: list[int] = []
    os.write(told, bytes([signal.SIGINT, signal.SIGINT, signal.SIGUSR1, signal.SIGTERM, 0]))
    answer(heard, {signal.SIGINT, signal.SIGTERM}, came)
    os.close(told)
    os.close(heard)
    assert came == [signal.SIGINT, signal.SIGTERM]
    assert capfd.readouterr().err == NOTICE.decode()


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


def test_a_rank_that_is_told_by_another_saves_whatever_comes() -> None:
    with stop_on(signal.SIGINT, signal.SIGTERM, launched=True) as stop:
        stop.signal = signal.SIGTERM
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert stop.exit_code == 143
