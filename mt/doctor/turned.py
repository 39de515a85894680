"""Whether a corpus has its sides the other way round than another: by the commonest words of each side."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from mt.doctor.looks import Sample

COMMONEST = 200
"""Words of a side that are compared."""
FEWEST = 10
"""Words that each side must share with the other's other side."""
PAIRS = 20_000
"""Pairs of a sample whose words are counted; the commonest are soon known."""


def turned(ours: Sample, theirs: Sample) -> bool:
    """Whether our sources have the words of their targets and our targets those of their sources, far more than the other way."""
    (src, tgt), (other_src, other_tgt) = _words(ours), _words(theirs)
    straight, crossed = (src & other_src, tgt & other_tgt), (src & other_tgt, tgt & other_src)
    return min(map(len, crossed)) >= FEWEST and sum(map(len, crossed)) > 2 * sum(map(len, straight))


def _words(sample: Sample) -> tuple[set[str], set[str]]:
    """The commonest words of each side, without those common on both, such as names and marks."""
    counts = Counter[str](), Counter[str]()
    for pair, _ in islice(sample.pairs(), PAIRS):
        for side, text in enumerate(pair.sides):
            counts[side].update(text.lower().split())
    src, tgt = ({word for word, _ in count.most_common(COMMONEST)} for count in counts)
    return src - tgt, tgt - src
