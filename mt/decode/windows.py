"""Lines in windows: so many at a time, or as many as are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator


def windows(lines: Iterable[str], most: int, paused: Callable[[], bool]) -> Iterator[list[str]]:
    """Lists of `most` lines, or of those there are when the lines pause."""
    window: list[str] = []
    for line in lines:
        window.append(line)
        if len(window) >= most or paused():
            yield window
            window = []
    if window:
        yield window
