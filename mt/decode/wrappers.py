"""Which wrappers a search's orders come to, from the inside out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mt.decode.constrain import Discourage, MinLength, NoRepeat, Watching
from mt.decode.orders import Orders
from mt.decode.step import Step


def constrained(step: Step[Any], state: Any, orders: Orders, *, eos: int, limits: Sequence[int]) -> tuple[Step[Any], Any]:
    """The step, with its first state, within a wrapper for each order there is; none cost nothing."""
    wrappers: list[Callable[[Step[Any]], Watching[Any]]] = []
    if orders.repetition_penalty != 1:
        wrappers.append(lambda inner: Discourage(inner, orders.repetition_penalty))
    if orders.no_repeat_ngram:
        wrappers.append(lambda inner: NoRepeat(inner, orders.no_repeat_ngram))
    if orders.min_length:
        wrappers.append(lambda inner: MinLength(inner, orders.min_length, eos=eos, limits=limits))
    for wrapper in wrappers:
        outer = wrapper(step)
        step, state = outer, outer.start(state, len(limits))
    return step, state
