"""What every group of settings has in common: unknown keys refused, frozen, and a place to say what cannot go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

Trail = tuple[str | int, ...]
"""Where a setting is: the keys and list indices that lead to it, as in ("data", "train", 0, "src")."""


class Contradiction(NamedTuple):
    """Settings that are valid one by one but not together."""

    what: str
    """What is wrong, and the cure."""
    trails: tuple[Trail, ...]
    """The settings involved, seen from the stage; the message points to the first."""


def clash(what: str, *dotted: str) -> Contradiction:
    """A contradiction between settings given as dotted keys, as in `average.last`."""
    return Contradiction(what, tuple(tuple(key.split(".")) for key in dotted))


class Stage(BaseModel):
    """A group of settings: unknown keys are refused, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=(), allow_inf_nan=False)

    def contradictions(self) -> Iterator[Contradiction]:
        """Every combination in this stage that cannot work; stages that have such combinations say so here."""
        yield from ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if found := tuple(self.contradictions()):
            raise PydanticCustomError("contradiction", "{text}", {"text": "; ".join(one.what for one in found), "found": found})
        return self


MAX_BEAM = 10_000
"""Widest beam."""

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Auto = Annotated[Literal["auto"], Tag("\0auto")]
"""To be put into a union with a number that has the tag `number`, told apart by `auto_tag`."""
Count = Annotated[int, Field(ge=1, le=10**9)]
"""The bound, like that of each size, is beyond what anybody needs: a slip of the keyboard is told before memory is asked for."""


def auto_tag(value: object) -> str:
    """Which one of a setting that is a number or `auto`."""
    return kind_tag("auto" if value == "auto" else "number")


def kind_tag(kind: object) -> str:
    """The tag of one kind in a union of stages. Tags stand in the location of an error, and no key of a config can hold NUL."""
    return f"\0{kind}"
