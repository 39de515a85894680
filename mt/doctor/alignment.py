"""Where two files stop being translations of each other, told by the lengths of their lines.

Long sentences have long translations, so the lengths of partners agree, and those of strangers do not. If a line was lost on one side, each
line from there on agrees with the one beside its partner. That is found with Page's cumulative sum test (1954): for each line the gain of
taking its neighbour instead of its partner is added up, a drift taken off, and never below zero; a sum that reaches the bound is no chance.

Legend: N lines of the shorter file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.integer]
Floats = NDArray[np.float64]

SHIFTS = 1, -1, 2, -2, 3, -3
"""How many lines a side may be ahead."""
DRIFT = 0.2
"""Taken off each gain, in units of a stranger's disagreement. With lengths that tell nothing sums then stay near zero; on Multi30k and
Tatoeba the real gain of a shift is 0.4 to 0.8 a line."""
STEEPNESS = 0.43
"""2 · DRIFT / variance of a gain with lengths that tell nothing (0.93, measured): at a given line a sum of s has probability
e^(-STEEPNESS · s)."""
SURE = 7.0
"""A false alarm on such a corpus has probability e^-SURE, 1 in 1000, whatever its size; on one whose lengths agree it is far rarer."""
FAR = 1.5
"""Disagreements are cut here, |log ratio|, so that no single pair decides."""
TELLING = 0.05  # disagreement of strangers from which on lengths tell anything
NEAR, STRETCH = 60, 400  # lines before the place that the test gives, and lines in all, among which the exact one is looked for
LEAST = 2.0  # gain of a surplus, in units of a stranger's disagreement, that is believed: that there is one is known
CHUNK = 1 << 18  # lines at once
SAMPLE = 100_000  # lines the usual ratio is measured on

WINDOW = 1000
"""Lines over which one asks whether lengths agree at all."""
STRANGERS = 0.95
"""Disagreement of partners / disagreement of strangers from which on they are strangers; 0.35 on Multi30k, 0.6 on Tatoeba."""


class Shift(NamedTuple):
    """From a line on the target lines belong to source lines somewhere else."""

    line: int
    """The first such line of the source, counted from 1; the true place is a few lines around."""
    ahead: int
    """Source line n translates target line n + ahead."""


class Scale(NamedTuple):
    """What is usual in two files."""

    ratio: float
    """Median of log((target characters + 1) / (source characters + 1))."""
    strangers: float
    """Mean disagreement of lines that do not belong together."""


def disagreement(src: Lengths, tgt: Lengths, ratio: float) -> Floats:
    """How far the lengths of partners are from the usual ratio, at most FAR."""
    return np.minimum(np.abs(np.log1p(tgt) - np.log1p(src) - ratio), FAR)


def scale(src: Lengths, tgt: Lengths) -> Scale | None:
    """Measured on a sample of the lines; None where there are none, or all of one length, which tells nothing."""
    common = min(len(src), len(tgt))
    if not common:
        return None
    step = max(1, common // SAMPLE)
    some_src, some_tgt = np.asarray(src[:common:step]), np.asarray(tgt[:common:step])
    ratio = float(np.median(np.log1p(some_tgt) - np.log1p(some_src)))
    others = np.random.default_rng(1).permutation(some_tgt)
    found = Scale(ratio, float(disagreement(some_src, others, ratio).mean()))
    return found if found.strangers >= TELLING else None


def find_shift(src: Lengths, tgt: Lengths) -> Shift | None:
    """The first place from which on a shift by 1 to 3 lines fits the lengths clearly better than none."""
    usual = scale(src, tgt)
    if usual is None:
        return None
    bound = (np.log(len(SHIFTS) * len(src)) + SURE) / STEEPNESS
    found = [Shift(line, ahead) for ahead in SHIFTS if (line := _alarm(src, tgt, ahead, usual, bound)) is not None]
    if not found:
        return None
    # Which of several, and where exactly: the cut after which the gains without drift are largest, around the first place.
    start = max(0, min(shift.line for shift in found) - 1 - NEAR)
    stretch = src[start : start + STRETCH], tgt[start : start + STRETCH]
    cuts = [(*_cut(*stretch, shift.ahead, usual), shift.ahead) for shift in found]
    _, line, ahead = max(cuts)
    return Shift(start + line, ahead)


def _cut(src: Lengths, tgt: Lengths, ahead: int, usual: Scale) -> tuple[float, int]:
    """The largest sum of gains from a line on to the end, and that line (from 1)."""
    total, least, cut = 0.0, 0.0, max(0, -ahead)
    for start, gains in _gains(src, tgt, ahead, usual):
        sums = total + np.cumsum(np.append(0.0, gains))
        if (low := float(sums[:-1].min())) < least:
            least, cut = low, start + int(np.argmin(sums[:-1]))
        total = float(sums[-1])
    return total - least, cut + 1


def _alarm(src: Lengths, tgt: Lengths, ahead: int, usual: Scale, bound: float) -> int | None:
    """The line (from 1) at which the sum that first reaches the bound was zero for the last time."""
    total, least, least_at = 0.0, 0.0, -1
    for start, gains in _gains(src, tgt, ahead, usual):
        sums = total + np.cumsum(gains - DRIFT)
        lows = np.minimum.accumulate(np.minimum(sums, least))
        alarms = np.flatnonzero(sums - lows >= bound)
        until = int(alarms[0]) + 1 if len(alarms) else len(sums)
        if until and lows[until - 1] < least:
            least = float(lows[until - 1])
            least_at = start + int(np.argmin(sums[:until]))
        if len(alarms):
            return least_at + 2
        total = float(sums[-1])
    return None


def _gains(src: Lengths, tgt: Lengths, ahead: int, usual: Scale) -> Iterator[tuple[int, Floats]]:
    """First line (from 0) and gains of a chunk of lines: how much better target line n + ahead fits source line n than line n does."""
    first, last = max(0, -ahead), min(len(src), len(tgt), len(tgt) - ahead)
    for start in range(first, last, CHUNK):
        end = min(start + CHUNK, last)
        here = disagreement(src[start:end], tgt[start:end], usual.ratio)
        there = disagreement(src[start:end], tgt[start + ahead : end + ahead], usual.ratio)
        yield start, (here - there) / usual.strangers


def surplus_at(src: Lengths, tgt: Lengths) -> int | None:
    """Where one file has lines too many, if they are all in one place: the line (from 1) after which a shift by the difference fits best.

    None where lengths do not tell. The lengths of both files are needed to their ends.
    """
    ahead = len(tgt) - len(src)
    usual = scale(src, tgt)
    if usual is None:
        return None
    gain, line = _cut(src, tgt, ahead, usual)
    return line if gain >= LEAST else None


def strangers(src: Lengths, tgt: Lengths) -> tuple[int, int] | None:
    """First and last line (from 1) of the first stretch of lines whose lengths have nothing to do with each other.

    It has at least three windows; in a corpus whose lengths never tell much that is all of it, or nothing.
    """
    common = min(len(src), len(tgt))
    usual = scale(src, tgt)
    if common < WINDOW or usual is None:
        return None
    windows = common // WINDOW
    means = np.array(
        [disagreement(src[w * WINDOW : (w + 1) * WINDOW], tgt[w * WINDOW : (w + 1) * WINDOW], usual.ratio).mean() for w in range(windows)]
    )
    share = means / usual.strangers
    if np.median(share) > STRANGERS:
        return 1, common
    if np.median(share) > 0.75:
        return None
    bad = share > STRANGERS
    run = np.flatnonzero(bad[:-2] & bad[1:-1] & bad[2:])
    if not len(run):
        return None
    first = int(run[0])
    good_again = np.flatnonzero(~bad[first:])
    return first * WINDOW + 1, (first + int(good_again[0])) * WINDOW if len(good_again) else common
