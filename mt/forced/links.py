"""Which words of an output belong to which of its source, told by what the decoder looked at.

Legend: S source ids, T target ids, I ids of one side, U units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby, islice
from operator import itemgetter
from typing import NamedTuple

import torch
from torch import Tensor

from mt.forced.given import Given
from mt.search.step import Hypothesis
from mt.tokenizer.spm import SPACE, Tokenizer


class Units(NamedTuple):
    """What links go from and to: words, or pieces where there are no spaces between words."""

    texts: list[str]
    of_ids: list[int]
    """The unit that each id is part of."""

    @classmethod
    def words(cls, ids: Sequence[int], tokenizer: Tokenizer) -> Units:
        """What stands between spaces."""
        starts = [place == 0 or piece.startswith(SPACE) for place, piece in enumerate(tokenizer.pieces(ids))]
        of_ids = [number - 1 for number in accumulate(starts)]
        grouped = groupby(zip(of_ids, ids, strict=True), key=itemgetter(0))
        texts = [tokenizer.decode([i for _, i in own]) for _, own in grouped]
        return cls(texts, of_ids)

    @classmethod
    def pieces(cls, ids: Sequence[int], tokenizer: Tokenizer) -> Units:
        """Each id, as the tokenizer writes it."""
        return cls(tokenizer.pieces(ids), list(range(len(ids))))

    @property
    def members_UI(self) -> Tensor:
        """Which ids each unit has, as ones among zeros."""
        return (torch.arange(len(self.texts))[:, None] == torch.tensor(self.of_ids, dtype=torch.int64)).double()


class Alignment(NamedTuple):
    """Units of a source and of an output, and the links between them."""

    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]
    """Places in source and target, from 0; one for each unit of the target, in order."""

    def __str__(self) -> str:
        """As in Pharaoh: `0-0 2-1`."""
        return " ".join(f"{source}-{target}" for source, target in self.links)


def linked(weights_TS: Tensor, source: Units, target: Units) -> list[tuple[int, int]]:
    """For each unit of the target the one of the source that it looks at most: summed over that one's ids, the mean over its own."""
    share_UU = target.members_UI @ weights_TS.double() @ source.members_UI.T
    return [(int(best), unit) for unit, best in enumerate(share_UU.argmax(dim=1))] if source.texts and target.texts else []


def given_of(sources: Sequence[list[int]], found: Hypothesis) -> list[Given]:
    """An output with the sources of its parts."""
    rest = iter(found.ids)
    return [Given(ids, list(islice(rest, length))) for ids, length in zip(sources, found.parts or [len(found.ids)], strict=True)]


def alignments(
    outputs: Sequence[Sequence[Given]],
    attention: Callable[[Sequence[Given]], Iterable[tuple[int, Tensor]]],
    *,
    source_units: Callable[[Sequence[int]], Units],
    target_units: Callable[[Sequence[int]], Units],
    tag: int,
) -> Iterator[Alignment]:
    """The alignment of each output, given by its parts; `attention` is `attended` of a model, `tag` counts the ids before each source.

    A word has the weights of the steps that write it. Those of the step after it, which reads it, are better in other models (Chen et al.
    2020, 2004.14837), and much worse in those of docs/results.md.
    """
    given = [part for parts in outputs for part in parts]
    found: list[Alignment] = [Alignment([], [], [])] * len(given)
    for place, weights_TS in attention(given):
        source, target = source_units(given[place].source[tag:]), target_units(given[place].target)
        found[place] = Alignment(source.texts, target.texts, linked(weights_TS[:-1, tag:], source, target))
    rest = iter(found)
    for parts in outputs:
        yield joined(list(islice(rest, len(parts))))


def joined(parts: Sequence[Alignment]) -> Alignment:
    """The alignment of a line out of those of its consecutive parts."""
    whole = Alignment([], [], [])
    for part in parts:
        before = len(whole.source), len(whole.target)
        whole.links.extend((source + before[0], target + before[1]) for source, target in part.links)
        whole.source.extend(part.source)
        whole.target.extend(part.target)
    return whole
