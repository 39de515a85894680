"""Phrases that an output has to say, wherever it suits, and as often as they are given.

Until a row has said all of its phrases, it does not end. What would leave too little room for the missing is ruled out, so that all is
said before the limit. What does not fit is given up, from the last phrase on, so that no row is without an end.

A beam is told which ids begin what is missing or go on with it, and has places for rows that say it early (`mt.search.banks`). A search
that has one row cannot go back: it begins a missing phrase where the first id is not much less probable than the best, or where it would
end, and says it to its end; of several it takes the one whose id is the most probable.

Legend: R rows, V vocabulary, X rows with something to say, G ids that lead on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple

import torch
from torch import Tensor

from mt.constraints.orders import Phrase
from mt.search.banks import Goals
from mt.search.step import State, Step

NEAR = 5.0
"""How much less a log-probability may be than the best: with 6 ids a line greedy search has BLEU 40 at 5, 33 at 3, and 24 at 0."""


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
    """What is to follow of a phrase that the only row of a search has begun."""

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

    def begun(self) -> Iterator[tuple[Phrase, tuple[int, ...], int]]:
        """Each way of each missing phrase, with how many of its ids are the row's newest: none, and all else that is true."""
        for phrase in dict.fromkeys(self.missing):
            for way in phrase:
                yield from ((phrase, way, said) for said in range(len(way)) if self.tail[len(self.tail) - said :] == way[:said])

    @property
    def whole(self) -> int:
        """Ids that are missing if the row does not go on with what it has begun."""
        return sum(len(phrase[0]) for phrase in self.missing)

    @property
    def left(self) -> int:
        """Ids that are missing if it does."""
        return self.whole - max([0, *(len(phrase[0]) - len(way) + said for phrase, way, said in self.begun() if said)])

    @property
    def ahead(self) -> dict[int, int]:
        """Each id that begins what is missing or goes on with it, and how many are missing after it."""
        return {token: self.after(token).left for token in dict.fromkeys(way[said] for _, way, said in self.begun())}

    def forced(self, logp_V: Tensor) -> tuple[Progress, list[int]]:
        """What the row has to go on with, best first, by what it has begun and the room it has; none: as it likes."""
        if possible(logp_V, self.rest[:1]):
            return self, [self.rest[0]]
        row = replace(self, rest=())
        while row.missing and row.whole >= row.room:
            if leading := possible(logp_V, [token for token, left in row.ahead.items() if left < row.room]):
                return row, leading
            row = replace(row, missing=row.missing[:-1])
        return row, []

    def chosen(self, logp_V: Tensor, *, ending: bool) -> tuple[Progress, list[int]]:
        """What a row goes on with if it is the only one: a missing phrase, where that is about as good as anything or it would end."""
        rests = {way[said]: way[said:] for phrase, way, said in self.begun() if way == phrase[0]}
        best = possible(logp_V, [*rests])[:1]
        if best and (ending or bool(logp_V[best[0]] > logp_V.max() - NEAR)):
            return replace(self, rest=rests[best[0]]), best
        return self, []


def possible(logp_V: Tensor, tokens: Sequence[int]) -> list[int]:
    """Those of some ids that have a probability, the most probable first."""
    values = logp_V[[*tokens]].tolist()
    found = [(value, token) for value, token in zip(values, tokens, strict=True) if value > -math.inf]
    return [token for _, token in sorted(found, key=lambda pair: -pair[0])]


class Bound(NamedTuple, Generic[State]):
    """The state of the step within, and what is known of each row."""

    inner: State
    rows: list[Progress]
    eos_R: Tensor
    """Log-probability of the EOS that it is not allowed; −inf: it has none, or may end."""
    begun: bool = False
    """Whether the rows have ids after BOS."""


class Require(Step[Bound[State]]):
    """Each output says the phrases of its sentence. A row that has a single choice keeps it."""

    def __init__(self, step: Step[State], *, eos: int, banks: bool) -> None:
        self.step, self.eos, self.banks = step, eos, banks

    def start(self, state: State, phrases: Sequence[Sequence[Phrase]], limits: Sequence[int]) -> Bound[State]:
        """The state of a search that begins, one row a sentence."""
        rows = [Progress(limit - 1, tuple(own)) for own, limit in zip(phrases, limits, strict=True)]
        return Bound(state, rows, torch.empty(0))

    def __call__(self, last_R: Tensor, state: Bound[State]) -> tuple[Tensor, Bound[State]]:
        """As the step within, less what would leave something unsaid."""
        logp_RV, inner = self.step(last_R, state.inner)
        rows = [row.after(token) for row, token in zip(state.rows, last_R.tolist(), strict=True)] if state.begun else [*state.rows]
        unended_R = torch.full_like(logp_RV[:, 0], -torch.inf)
        if busy := [place for place, row in enumerate(rows) if row.missing]:
            logp_XV = logp_RV[busy]
            choices_X = (logp_XV > -torch.inf).sum(dim=1).tolist()
            eos_X = logp_XV[:, self.eos].clone()
            logp_XV[:, self.eos] = -torch.inf
            ending_X = (eos_X >= logp_XV.max(dim=1).values).tolist()
            for place, logp_V, choices, ending, eos in zip(busy, logp_XV, choices_X, ending_X, eos_X, strict=True):
                if choices > 1:
                    rows[place], tokens = rows[place].forced(logp_V)
                    if not self.banks:
                        rows[place], tokens = (rows[place], tokens[:1]) if tokens else rows[place].chosen(logp_V, ending=ending)
                    if tokens:
                        logp_RV[place] = -torch.inf
                        logp_RV[place, tokens] = logp_V[tokens]
                    elif rows[place].missing:
                        logp_RV[place, self.eos] = -torch.inf
                        unended_R[place] = eos
        return logp_RV, Bound(inner, rows, unended_R, begun=True)

    def reorder(self, state: Bound[State], rows_R: Tensor) -> Bound[State]:
        """The state of the rows that go on."""
        inner = self.step.reorder(state.inner, rows_R)
        return Bound(inner, [state.rows[row] for row in rows_R.tolist()], state.eos_R[rows_R], state.begun)

    def goals(self, state: Bound[State]) -> Goals | None:
        """What leads the rows on to what they have to say."""
        if not self.banks or not any(row.missing for row in state.rows):
            return None
        ahead, device = [row.ahead for row in state.rows], state.eos_R.device
        most = max(map(len, ahead))
        return Goals(
            token_RG=torch.tensor([[*own, *[-1] * (most - len(own))] for own in ahead], device=device),
            missing_RG=torch.tensor([[*own.values(), *[0] * (most - len(own))] for own in ahead], device=device),
            missing_R=torch.tensor([row.whole for row in state.rows], device=device),
            eos_R=state.eos_R,
        )
