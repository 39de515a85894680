"""Search by looking at everything, and beam search as its definition reads; over the tables of `table_model`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tests.oracle.table_model import EOS, Table


class Output(NamedTuple):
    """As the hypotheses of mt.search, made by other means."""

    ids: list[int]
    log_prob: float
    score: float
    truncated: bool


def brute_force(table: Table, *, limit: int, length_penalty: float) -> list[Output]:
    """Every output of at most `limit` tokens, EOS counted; best score first."""

    def outputs(ids: tuple[int, ...], log_prob: float) -> Iterator[Output]:
        logp = table(ids)
        length = len(ids) + 1
        if logp[EOS] > -math.inf:
            total = log_prob + logp[EOS]
            yield Output(list(ids), total, total / length**length_penalty, length == limit and logp[EOS] < max(logp))
        if length < limit:
            for token, value in enumerate(logp):
                if token != EOS and value > -math.inf:
                    yield from outputs((*ids, token), log_prob + value)

    return sorted(outputs((), 0.0), key=lambda output: -output.score)


def plain_beam_search(table: Table, *, limit: int, width: int, length_penalty: float, patience: float, n_best: int) -> list[Output]:
    """2W candidates a position; an EOS counts among the first W; the first W others live on; until W · patience are found."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    found: list[Output] = []
    for length in range(1, limit + 1):
        candidates = [
            (log_prob + value, ids, token, max(table(ids)) > value)
            for log_prob, ids in live
            for token, value in sorted(enumerate(table(ids)), key=lambda entry: (-entry[1], entry[0]))
            if value > -math.inf and (token == EOS or length < limit)
        ]
        candidates = sorted(candidates, key=lambda candidate: -candidate[0])[: 2 * width]
        for log_prob, ids, token, second_best in candidates[:width]:
            if token == EOS:
                found.append(Output(list(ids), log_prob, log_prob / length**length_penalty, length == limit and second_best))
        live = [(log_prob, (*ids, token)) for log_prob, ids, token, _ in candidates if token != EOS][:width]
        if len(found) >= round(width * patience) or not live:
            break
    return sorted(found, key=lambda output: -output.score)[:n_best]


def plain_greedy_search(table: Table, *, limit: int) -> list[int]:
    """The most probable token each time."""
    ids: tuple[int, ...] = ()
    while len(ids) + 1 < limit:
        logp = table(ids)
        token = logp.index(max(logp))
        if token == EOS:
            break
        ids += (token,)
    return list(ids)
