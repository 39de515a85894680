"""Which wrappers a search's orders come to, from the inside out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mt.constraints.constrain import Discourage, MinLength, NoRepeat, Watching
from mt.constraints.orders import Orders
from mt.constraints.phrases import Ban, Prefix
from mt.constraints.require import Require
from mt.search.step import Step


def constrained(
    step: Step[Any], state: Any, orders: Orders, *, eos: int, limits: Sequence[int], banks: bool = False
) -> tuple[Step[Any], Any]:
    """The step, with its first state, within a wrapper for each order there is; none cost nothing.

    What is forced keeps its place among bans and repetitions, being further in. Required phrases know the bans: they do not begin one.
    """

    def around(outer: Watching[Any]) -> tuple[Step[Any], Any]:
        return outer, outer.start(state, len(limits))

    if orders.repetition_penalty != 1:
        step, state = around(Discourage(step, orders.repetition_penalty))
    if any(orders.prefixes):
        step, state = around(Prefix(step, orders.prefixes))
    if orders.banned:
        step, state = around(Ban(step, orders.banned))
    if any(orders.required):
        require = Require(step, eos=eos, banks=banks)
        step, state = require, require.start(state, orders.required, limits)
    if orders.no_repeat_ngram:
        step, state = around(NoRepeat(step, orders.no_repeat_ngram))
    if orders.min_length:
        step, state = around(MinLength(step, orders.min_length, eos=eos, limits=limits))
    return step, state
