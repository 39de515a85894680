"""Searches over table models under orders, and what the orders mean, by other means than the wrappers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from mt.constraints.orders import Orders
from mt.constraints.wrappers import constrained
from mt.search.beam import beam_search
from mt.search.greedy import greedy_search
from mt.search.sample import sample_search
from mt.search.step import Hypothesis
from tests.oracle.brute_force import Output, brute_force
from tests.oracle.table_model import BOS, EOS, Table, TableStep

Search = Callable[..., list[list[Hypothesis]]]


class Searched(NamedTuple):
    """Arguments of any search."""

    step: Any
    state: Any
    limits: list[int]


def prepared(tables: list[Table], limits: list[int], orders: Orders, *, banks: bool = False) -> Searched:
    table_step = TableStep(*tables)
    step, state = constrained(table_step, table_step.start(), orders, eos=EOS, limits=limits, banks=banks)
    return Searched(step, state, limits)


def by_greedy(*tables: Table, limits: list[int], orders: Orders) -> list[list[Hypothesis]]:
    step, state, _ = prepared([*tables], limits, orders)
    return [[one] for one in greedy_search(step, state, bos=BOS, eos=EOS, limits=limits)]


def by_beam(*tables: Table, limits: list[int], orders: Orders, width: int = 4) -> list[list[Hypothesis]]:
    step, state, _ = prepared([*tables], limits, orders, banks=width > 1)
    return beam_search(step, state, bos=BOS, eos=EOS, limits=limits, width=width, n_best=width)


def by_sampling(*tables: Table, limits: list[int], orders: Orders) -> list[list[Hypothesis]]:
    step, state, _ = prepared([*tables], limits, orders)
    # The seed goes with the limit, so that it does not depend on batch mates.
    return [[one] for one in sample_search(step, state, bos=BOS, eos=EOS, limits=limits, seeds=limits, temperature=2.0)]


SEARCHES: list[Search] = [by_greedy, by_beam, by_sampling]


def best_within(table: Table, *, limit: int, allowed: Callable[[list[int]], bool]) -> list[Output]:
    """All outputs that may be, best first."""
    return [output for output in brute_force(table, limit=limit, length_penalty=1.0) if allowed(output.ids)]


def same(found: list[Hypothesis], expected: list[Output]) -> bool:
    """As many, with the same ids, log-probabilities and scores; whether the limit ended them is another matter under orders."""
    pairs = zip(found, expected, strict=False)
    return len(found) == len(expected) and all(
        h.ids == o.ids and torch.isclose(torch.tensor([h.log_prob, h.score]), torch.tensor([o.log_prob, o.score])).all() for h, o in pairs
    )


def occurs(phrase: tuple[int, ...], ids: list[int]) -> bool:
    return any(tuple(ids[i : i + len(phrase)]) == phrase for i in range(len(ids)))
