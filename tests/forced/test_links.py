"""Links between words: each word of an output goes to the one of the source that its ids look at most."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mt.forced.given import Given
from mt.forced.links import Alignment, Units, alignments, given_of, linked
from mt.search.step import Hypothesis
from tests import toy

TOKENIZER = toy.tokenizers().src
SIDES = st.lists(st.integers(1, 3), min_size=1, max_size=5)
"""How many ids each unit has."""


def units(lengths: list[int]) -> Units:
    return Units([f"w{place}" for place in range(len(lengths))], [place for place, length in enumerate(lengths) for _ in range(length)])


def some_weights(rows: int, columns: int, seed: int) -> Tensor:
    return torch.rand(rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_hand(weights: list[list[float]], source: Units, target: Units) -> list[tuple[int, int]]:
    found = []
    for unit in range(len(target.texts)):
        rows = [row for row, own in zip(weights, target.of_ids, strict=True) if own == unit]
        shares = [
            sum(sum(weight for weight, own in zip(row, source.of_ids, strict=True) if own == other) for row in rows) / len(rows)
            for other in range(len(source.texts))
        ]
        found.append((shares.index(max(shares)), unit))
    return found


@given(source=SIDES, target=SIDES, seed=st.integers(0, 10**6))
def test_each_unit_goes_to_the_one_it_looks_at_most(source: list[int], target: list[int], seed: int) -> None:
    weights_TS = some_weights(sum(target), sum(source), seed)
    found = linked(weights_TS, units(source), units(target))
    assert found == by_hand(weights_TS.tolist(), units(source), units(target))
    assert [unit for _, unit in found] == [*range(len(target))]


def test_an_empty_output_has_no_links() -> None:
    assert linked(torch.ones(0, 3), units([1, 2]), units([])) == []


def test_words_are_what_stands_between_spaces() -> None:
    for line in toy.sentences(20, seed=3):
        ids = TOKENIZER.encode(line)
        found = Units.words(ids, TOKENIZER)
        assert found.texts == line.split()
        assert [TOKENIZER.decode(ids[: found.of_ids.index(place)]) for place in range(len(found.texts))] == [
            " ".join(line.split()[:place]) for place in range(len(found.texts))
        ]
    assert Units.words([], TOKENIZER) == Units([], [])


def test_pieces_are_each_their_own() -> None:
    ids = TOKENIZER.encode("bage depe .")
    assert Units.pieces(ids, TOKENIZER) == Units(TOKENIZER.pieces(ids), [*range(len(ids))])


def test_outputs_of_parts_are_put_together() -> None:
    """Each id looks, when it is written, at the place it names, less the tag; when it is read, elsewhere."""
    tag, sources = [99], [[10, 11, 12], [13, 14]]
    found = [Hypothesis([2, 0, 1, 1, 0], 0.0, 0.0, False, parts=[3, 2]), Hypothesis([1, 2, 0, 1, 0, 1], 0.0, 0.0, False, parts=[4, 2])]

    def attention(given: list[Given]) -> list[tuple[int, Tensor]]:
        looks = []
        for place, (source, target) in enumerate(given):
            weights_TS = torch.zeros(len(target) + 1, len(source))
            for row, where in enumerate(target):
                weights_TS[row, where + 1] = 0.4
            weights_TS[:, 0] = 0.6
            weights_TS[len(target), -1] = 0.9
            looks.append((place, weights_TS))
        return looks[::-1]

    def own(ids: list[int]) -> Units:
        return Units([str(i) for i in ids], [*range(len(ids))])

    outputs = [given_of([tag + ids for ids in sources], one) for one in found]
    both = list(alignments([*outputs, []], attention, source_units=own, target_units=own, tag=1))
    assert [str(one) for one in both] == ["2-0 0-1 1-2 4-3 3-4", "1-0 2-1 0-2 1-3 3-4 4-5", ""]
    assert both[0].source == both[1].source == ["10", "11", "12", "13", "14"]
    assert both[0].target == ["2", "0", "1", "1", "0"]
    assert both[2] == Alignment([], [], [])
