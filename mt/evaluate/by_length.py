"""Scores of lines that are about as long as each other: where a system is weak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mt.evaluate.metrics import score

GROUPS = 5
FEWEST = 8  # lines of a group: fewer tell nothing


def by_length(
    lengths: Sequence[int], hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, lang: str | None, intervals: bool = True
) -> list[dict[str, Any]]:
    """BLEU and chrF of groups of lines by the length of their source, shortest first, about as many lines in each.

    An object for each group: `from` and `to`, the lengths it has, `lines`, and `metrics` as `mt eval --json` writes them.
    """
    found = []
    for first, last in spans(lengths):
        own = [place for place, length in enumerate(lengths) if first <= length <= last]
        lines, refs = [hypotheses[place] for place in own], [[side[place] for place in own] for side in references]
        scores = score(lines, refs, metrics=("bleu", "chrf"), lang=lang, intervals=intervals)
        found.append({"from": first, "to": last, "lines": len(own), "metrics": scores.as_json()["metrics"]})
    return found


def spans(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """The shortest and longest length of each group; equal lengths are never parted."""
    groups: list[list[int]] = []
    ordered = sorted(lengths)
    size = max(FEWEST, -(-len(ordered) // GROUPS))
    for length in ordered:
        if groups and (len(groups[-1]) < size or length == groups[-1][-1]):
            groups[-1].append(length)
        else:
            groups.append([length])
    if len(groups) > 1 and len(groups[-1]) < FEWEST:
        groups[-2].extend(groups.pop())
    return [(group[0], group[-1]) for group in groups]
