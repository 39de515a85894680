"""Constraints: steps around a step that rule out what an output must not be. A search knows nothing of them.

Each is a wrapper; what it rules out has log-probability −inf, and the rest stays as it was (not renormalised), so that a hypothesis's
log-probability is the model's own. Only `Discourage` changes it. A row that has a single choice keeps it: what an inner wrapper forces, an
outer one does not forbid.

Legend: R rows, V vocabulary, T positions so far, N n-grams so far, C chosen rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple

import torch
from torch import Tensor

from mt.search.banks import Goals
from mt.search.step import State, Step


class Rows(NamedTuple, Generic[State]):
    """The state of the step within, and what a wrapper knows of each row."""

    inner: State
    sentence_R: Tensor
    """Place of its sentence in the batch."""
    seen_RT: Tensor
    """What it was asked to continue: BOS, and its ids."""

    @property
    def ids_RT(self) -> Tensor:
        """What it has generated."""
        return self.seen_RT[:, 1:]


class Watching(Step[Rows[State]]):
    """A step that knows what its rows have generated; subclasses say in `restrain` what follows from it."""

    def __init__(self, step: Step[State]) -> None:
        self.step = step

    def start(self, state: State, sentences: int) -> Rows[State]:
        """The state of a search that begins, one row a sentence."""
        return Rows(state, torch.arange(sentences), torch.empty(sentences, 0, dtype=torch.int64))

    def __call__(self, last_R: Tensor, state: Rows[State]) -> tuple[Tensor, Rows[State]]:
        """As the step within, restrained."""
        logp_RV, inner = self.step(last_R, state.inner)
        device = logp_RV.device
        seen_RT = torch.cat([state.seen_RT.to(device), last_R.to(device)[:, None]], dim=1)
        rows = Rows(inner, state.sentence_R.to(device), seen_RT)
        self.restrain(logp_RV, rows)
        return logp_RV, rows

    @abstractmethod
    def restrain(self, logp_RV: Tensor, rows: Rows[State]) -> None:
        """Change the log-probabilities in place."""

    def reorder(self, state: Rows[State], rows_R: Tensor) -> Rows[State]:
        """The state of the rows that go on."""
        return Rows(self.step.reorder(state.inner, rows_R), state.sentence_R[rows_R], state.seen_RT[rows_R])

    def goals(self, state: Rows[State]) -> Goals | None:
        """As the step within."""
        return self.step.goals(state.inner)


class MinLength(Watching[State]):
    """No EOS before so many ids, or before the limit leaves nothing but EOS."""

    def __init__(self, step: Step[State], length: int, *, eos: int, limits: Sequence[int]) -> None:
        super().__init__(step)
        self.eos = eos
        self.least_B = torch.tensor([min(length, limit - 1) for limit in limits], dtype=torch.int64)

    def restrain(self, logp_RV: Tensor, rows: Rows[State]) -> None:
        """Rule EOS out where it is too early."""
        self.least_B = self.least_B.to(logp_RV.device)
        early_R = self.least_B[rows.sentence_R] > rows.ids_RT.size(1)
        if early_R.any():
            logp_RV[early_R & free(logp_RV), self.eos] = -torch.inf


class NoRepeat(Watching[State]):
    """No n ids in a row that were generated before (Paulus et al. 2018, https://arxiv.org/abs/1705.04304), but for what leads on to goals.

    EOS is never one of them.
    """

    def __init__(self, step: Step[State], n: int) -> None:
        super().__init__(step)
        self.n = n

    def restrain(self, logp_RV: Tensor, rows: Rows[State]) -> None:
        """Rule out what would make an n-gram a second time."""
        ids_RT = rows.ids_RT
        length = ids_RT.size(1)
        if length < self.n:
            return
        grams_RNn = ids_RT.unfold(1, self.n, 1)
        same_RN = (grams_RNn[:, :, :-1] == ids_RT[:, None, length - self.n + 1 :]).all(dim=2)
        row_X, gram_X = (same_RN & free(logp_RV)[:, None]).nonzero(as_tuple=True)
        token_X = grams_RNn[row_X, gram_X, -1]
        if goals := self.step.goals(rows.inner):
            repeats_X = (goals.token_RG[row_X] != token_X[:, None]).all(dim=1)
            row_X, token_X = row_X[repeats_X], token_X[repeats_X]
        logp_RV[row_X, token_X] = -torch.inf


class Discourage(Watching[State]):
    """The log-probability of each id that was generated before, times a penalty above 1.

    CTRL (Keskar et al. 2019, https://arxiv.org/abs/1909.05858) divides logits, whose zero is arbitrary: those below it come out more
    probable. Log-probabilities are never above 0, so a multiple of them is never more probable, and what is certain stays certain.
    """

    def __init__(self, step: Step[State], penalty: float) -> None:
        super().__init__(step)
        self.penalty = penalty

    def restrain(self, logp_RV: Tensor, rows: Rows[State]) -> None:
        """Multiply, once however often an id was generated."""
        logp_RV.scatter_(1, rows.ids_RT, logp_RV.gather(1, rows.ids_RT) * self.penalty)


def free(logp_RV: Tensor) -> Tensor:
    """Whether (R,) a row has more than one choice."""
    return (logp_RV > -torch.inf).sum(dim=1) > 1
