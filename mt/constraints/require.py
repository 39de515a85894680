"""Phrases that an output has to say, wherever it suits, and as often as they are given.

Until a row has said all of its phrases, it does not end. Where the model would end it, or the room before the limit is just enough for
what is missing, the row goes on with a missing phrase: of several with the one whose first id is the most probable, of equals the first.
What does not fit is given up, from the last phrase on, so that no row is without an end.

Legend: R rows, V vocabulary, X rows with something to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple

import torch
from torch import Tensor

from mt.constraints.orders import Phrase
from mt.search.step import State, Step


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a row has come."""

    room: int
    """Ids it may still have before EOS."""
    missing: tuple[Phrase, ...]
    """What it has still to say."""
    tail: tuple[int, ...] = ()
    """Its newest ids, as many as the longest phrase has."""
    rest: tuple[int, ...] = ()
    """What is to follow of a phrase that was begun because it was time."""

    def after(self, token: int) -> Progress:
        """With one id more."""
        if not self.missing:
            return self
        most = max(len(way) for phrase in self.missing for way in phrase)
        tail = (*self.tail, token)[-most:]
        missing = [*self.missing]
        for phrase in {*missing}:  # one that is to be said twice is said once by this
            if any(tail[-len(way) :] == way for way in phrase):
                missing.remove(phrase)
        return Progress(self.room - 1, tuple(missing), tail, self.rest[1:] if self.rest[:1] == (token,) else ())

    def next(self, logp_V: Tensor, *, ending: bool) -> tuple[Progress, int | None]:
        """What the row has to go on with, if anything, given the log-probabilities and whether it would end by itself."""
        if self.rest and logp_V[self.rest[0]] > -torch.inf:
            return self, self.rest[0]
        missing = self.missing
        while missing:
            needed = sum(len(phrase[0]) for phrase in missing)
            if needed > self.room:
                missing = missing[:-1]
                continue
            if needed < self.room and not ending:
                break
            values = logp_V[[phrase[0][0] for phrase in missing]].tolist()
            best = max(range(len(values)), key=values.__getitem__)
            if values[best] > -torch.inf:
                first, *_ = way = missing[best][0]
                return replace(self, missing=missing, rest=way), first
            if needed < self.room:
                break
            missing = missing[:-1]
        return replace(self, missing=missing, rest=()), None


class Bound(NamedTuple, Generic[State]):
    """The state of the step within, and the progress of each row."""

    inner: State
    rows: list[Progress]
    begun: bool = False
    """Whether the rows have ids after BOS."""


class Require(Step[Bound[State]]):
    """Each output says the phrases of its sentence. A row that has a single choice keeps it."""

    def __init__(self, step: Step[State], *, eos: int) -> None:
        self.step, self.eos = step, eos

    def start(self, state: State, phrases: Sequence[Sequence[Phrase]], limits: Sequence[int]) -> Bound[State]:
        """The state of a search that begins, one row a sentence."""
        return Bound(state, [Progress(limit - 1, tuple(own)) for own, limit in zip(phrases, limits, strict=True)])

    def __call__(self, last_R: Tensor, state: Bound[State]) -> tuple[Tensor, Bound[State]]:
        """As the step within, less what would leave something unsaid."""
        logp_RV, inner = self.step(last_R, state.inner)
        rows = [row.after(token) for row, token in zip(state.rows, last_R.tolist(), strict=True)] if state.begun else [*state.rows]
        if busy := [place for place, row in enumerate(rows) if row.missing]:
            logp_XV = logp_RV[busy]
            choices_X = (logp_XV > -torch.inf).sum(dim=1).tolist()
            eos_X = logp_XV[:, self.eos].clone()
            logp_XV[:, self.eos] = -torch.inf
            ending_X = (eos_X >= logp_XV.max(dim=1).values).tolist()
            for place, logp_V, choices, ending in zip(busy, logp_XV, choices_X, ending_X, strict=True):
                if choices > 1:
                    rows[place], token = rows[place].next(logp_V, ending=ending)
                    if token is not None:
                        own = logp_RV[place, token].clone()
                        logp_RV[place] = -torch.inf
                        logp_RV[place, token] = own
                    elif rows[place].missing:
                        logp_RV[place, self.eos] = -torch.inf
        return logp_RV, Bound(inner, rows, begun=True)

    def reorder(self, state: Bound[State], rows_R: Tensor) -> Bound[State]:
        """The state of the rows that go on."""
        return Bound(self.step.reorder(state.inner, rows_R), [state.rows[row] for row in rows_R.tolist()], state.begun)
