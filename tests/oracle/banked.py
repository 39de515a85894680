"""Beam search for outputs that say phrases, as its definition reads, over the tables of `table_model`; all fit, and have one way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from mt.search.banks import COST
from tests.oracle.brute_force import Output
from tests.oracle.table_model import EOS, Table

Ids = tuple[int, ...]


class Candidate(NamedTuple):
    total: float
    ids: Ids
    token: int
    bank: int
    worth: float
    best: float
    """Log-probability of the most probable continuation of the row."""


def unsaid(ids: Ids, phrases: Sequence[Ids]) -> list[Ids]:
    """What is missing, each phrase as often as it is."""
    missing = list(phrases)
    for end in range(1, len(ids) + 1):
        for phrase in set(missing):
            if ids[:end][-len(phrase) :] == phrase:
                missing.remove(phrase)
    return missing


def left(ids: Ids, phrases: Sequence[Ids]) -> int:
    """Ids that are missing if the row goes on with the longest beginning of a phrase that it ends in."""
    missing = unsaid(ids, phrases)
    begun = [n for phrase in missing for n in range(1, len(phrase)) if ids[-n:] == phrase[:n]]
    return sum(map(len, missing)) - max(begun, default=0)


def leading(ids: Ids, phrases: Sequence[Ids]) -> set[int]:
    """What begins a missing phrase, or goes on with it."""
    return {p[n] for p in unsaid(ids, phrases) for n in range(len(p)) if ids[len(ids) - n :] == p[:n]}


def candidates(table: Table, total: float, ids: Ids, *, limit: int, width: int, phrases: Sequence[Ids]) -> list[Candidate]:
    """The continuations of a row that count: the best, and what leads on."""
    logp, whole = table(ids), sum(map(len, unsaid(ids, phrases)))
    room, leads = limit - 1 - len(ids), leading(ids, phrases)
    allowed = [
        token
        for token, value in enumerate(logp)
        if value > -math.inf and (not whole if token == EOS else room > 0 and left((*ids, token), phrases) < room + (not whole))
    ]
    end = max((logp[t] for t in allowed if t in leads), default=-math.inf)
    stands_in = next((t for t in allowed if t in leads and logp[t] == end and whole < room and logp[EOS] > end), None)
    ordered = sorted(allowed, key=lambda t: (-logp[t], t))
    return [
        Candidate(total + logp[t], ids, t, whole, total + logp[EOS] - COST * whole, max(logp))
        if t == stands_in
        else Candidate(total + logp[t], ids, t, bank := left((*ids, t), phrases), total + logp[t] - COST * bank, max(logp))
        for place, t in enumerate(ordered)
        if place <= width + len(leads) or t in leads
    ]


def plain_banked_beam_search(table: Table, *, limit: int, width: int, phrases: Sequence[Ids]) -> list[Output]:
    """Candidates in turns, one of each bank; an EOS counts among the first W; the first W others live on; until W are found."""
    live: list[tuple[float, Ids]] = [(0.0, ())]
    found: list[Output] = []
    for length in range(1, limit + 1):
        ordered = sorted(
            (c for total, ids in live for c in candidates(table, total, ids, limit=limit, width=width, phrases=phrases)),
            key=lambda c: -c.worth,
        )
        turns = {bank: count() for bank in range(limit)}
        dealt = sorted(((next(turns[c.bank]), c) for c in ordered), key=lambda pair: pair[0])
        for _, c in dealt[:width]:
            if c.token == EOS:
                log_prob = c.total
                found.append(Output(list(c.ids), log_prob, log_prob / length, length == limit and table(c.ids)[EOS] < c.best))
        live = [(c.total, (*c.ids, c.token)) for _, c in dealt if c.token != EOS][:width]
        if len(found) >= width or not live:
            break
    return sorted(found, key=lambda output: -output.score)
