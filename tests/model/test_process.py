"""What is asked of the C library, where there is one that understands."""

from __future__ import annotations

import ctypes
import os
import sys
from types import SimpleNamespace

import pytest

from mt.model.process import M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, SEARCHED, keep_few_primitives, keep_freed_memory


@pytest.mark.parametrize(
    ("platform", "expected"), [("linux", {M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX}), ("darwin", set()), ("win32", set())]
)
def test_only_linux_is_asked(monkeypatch: pytest.MonkeyPatch, platform: str, expected: set[int]) -> None:
    asked: dict[int, int] = {}
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=asked.__setitem__))
    keep_freed_memory()
    assert asked.keys() == expected
    assert all(0 < size < 2**31 for size in asked.values())  # it takes a C int


def test_a_library_without_the_function_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    asked: list[str] = []

    class Bare:
        def __getattr__(self, name: str) -> None:
            asked.append(name)
            raise AttributeError(name)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Bare())
    keep_freed_memory()
    assert asked == ["mallopt"]


def test_what_a_user_has_set_for_onednn_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "500")
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "1")  # so that it is put back afterwards
    monkeypatch.delenv("LRU_CACHE_CAPACITY")
    keep_few_primitives(SEARCHED)
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "500"
    assert os.environ["LRU_CACHE_CAPACITY"] == str(SEARCHED)
