"""A model that is a table: for each prefix the log-probabilities of the next id. It lets a search be checked by hand, or by brute force."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

PAD, UNK, BOS, EOS = range(4)
WORDS = 4
"""The first id that is a word."""

Table = Callable[[tuple[int, ...]], list[float]]
"""Ids so far, without BOS → natural log-probability of each id of the vocabulary."""

Row = tuple[int, tuple[int, ...]]
"""Number of the sentence, ids so far, without BOS."""


class TableStep:
    """A step over one table for each sentence of a batch.

    It fails when a search continues a row with what its table does not allow. `rows` notes how many rows each call had.
    """

    def __init__(self, *tables: Table, dtype: torch.dtype = torch.float64) -> None:
        self.tables = tables
        self.dtype = dtype
        self.rows: list[int] = []

    def start(self) -> list[Row]:
        return [(sentence, ()) for sentence in range(len(self.tables))]

    def __call__(self, last_R: Tensor, state: list[Row]) -> tuple[Tensor, list[Row]]:
        if self.rows:
            state = [(sentence, (*ids, token)) for (sentence, ids), token in zip(state, last_R.tolist(), strict=True)]
            assert all(self.tables[sentence](ids[:-1])[ids[-1]] > -math.inf for sentence, ids in state)
        else:
            assert last_R.tolist() == [BOS] * len(self.tables)
        self.rows.append(len(state))
        return torch.tensor([self.tables[sentence](ids) for sentence, ids in state], dtype=self.dtype), state

    def reorder(self, state: list[Row], rows_R: Tensor) -> list[Row]:
        return [state[row] for row in rows_R.tolist()]

    def goals(self, _state: list[Row]) -> None:
        return None


def random_table(seed: int, *, words: int, sparsity: float = 0.0, levels: int | None = None) -> Table:
    """Distributions over EOS and `words` words that depend on the whole prefix, hence on the position too.

    `sparsity`: the probability that an entry is impossible. `levels`: how many different values there are, to make ties.
    """

    @functools.cache
    def table(ids: tuple[int, ...]) -> list[float]:
        rng = random.Random(f"{seed}/{ids}")
        weights = [math.exp(rng.gauss(0, 1)) if levels is None else 1.0 + rng.randrange(levels) for _ in range(1 + words)]
        weights = [0.0 if rng.random() < sparsity else weight for weight in weights]
        total = sum(weights) or 1.0
        return [-math.inf] * EOS + [math.log(weight / total) if weight else -math.inf for weight in weights]

    return table


def written_table(words: str, rows: Mapping[str, Mapping[str, float]]) -> Table:
    """From words to the probabilities of the next, as in `{"": {"a": 0.4, "</s>": 0.6}, "a": {"</s>": 1}}`."""
    vocabulary = ["<pad>", "<unk>", "<s>", "</s>", *words.split()]

    def table(ids: tuple[int, ...]) -> list[float]:
        row = rows[" ".join(vocabulary[i] for i in ids)]
        return [math.log(row[word]) if word in row else -math.inf for word in vocabulary]

    return table


def spell(ids: Sequence[int], words: str) -> str:
    """The words of a `written_table` again."""
    return " ".join(words.split()[i - WORDS] for i in ids)
