"""Scores by length: each line is in one group, and a group's scores are those of its lines alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists

from mt.evaluate.by_length import FEWEST, GROUPS, by_length, spans
from mt.evaluate.metrics import score


@given(lists(integers(0, 40), max_size=200))
def test_groups_part_the_lines(lengths: list[int]) -> None:
    found = spans(lengths)
    counts = [sum(first <= length <= last for length in lengths) for first, last in found]
    assert sum(counts) == len(lengths)
    assert found == sorted(found)
    assert len(found) <= GROUPS
    assert len(found) < 2 or min(counts) >= FEWEST


def test_scores_are_those_of_the_lines_alone() -> None:
    hypotheses = [f"the cat number {n} sat on the mat" for n in range(20)]
    references = [[f"the cat number {n} {'sat' if n < 10 else 'stood'} on the mat" for n in range(20)]]
    short, long = by_length([3] * 10 + [9] * 10, hypotheses, references, lang=None)
    assert (short["from"], short["to"], short["lines"], long["from"]) == (3, 3, 10, 9)
    alone = score(hypotheses[10:], [references[0][10:]], lang=None, metrics=("bleu", "chrf"), intervals=True)
    assert long["metrics"] == alone.as_json()["metrics"]
    assert short["metrics"][0]["score"] > long["metrics"][0]["score"]
