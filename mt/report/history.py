"""What the journal of a run tells, whatever state it is in: still being written, cut off within a line, with losses that are no number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mt.rundir import RunDir

COLUMNS = "update", "loss", "lr", "norm", "tokens", "seconds"
Points = NDArray[np.float64]


@dataclass
class History:
    """A run in numbers, oldest first."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    """Of each update that was made, its COLUMNS."""
    validations: list[dict[str, Any]] = field(default_factory=list)
    """Each as the journal has it."""
    ended: dict[str, Any] | None = None
    """The end, if it has come to one and did not go on from there."""
    skipped: int = 0
    """Updates that were skipped."""
    unreadable: int = 0
    """Lines that tell nothing: the last one, where it is being written."""

    @classmethod
    def of(cls, run: RunDir) -> History:
        """All that can be read of a run's journal; nothing where there is none."""
        history = cls()
        for event in history._events(run):
            history._add(event)
        return history

    def _events(self, run: RunDir) -> Iterator[dict[str, Any]]:
        try:
            file = run.journal.open("rb")
        except OSError:
            return
        with file:
            for line in file:
                try:
                    event = json.loads(line)
                except (ValueError, RecursionError):
                    self.unreadable += 1
                    continue
                if isinstance(event, dict):
                    yield event
                else:
                    self.unreadable += 1

    def _add(self, event: dict[str, Any]) -> None:
        try:
            match event.get("event"):
                case "update" if event["skipped"]:
                    self.skipped += 1
                case "update":
                    self.rows.append(tuple(float(event[name]) for name in COLUMNS))
                case "validated" if isinstance(event["scores"], dict):
                    self.validations.append({**event, "update": int(event["update"]), "scores": numbers(event["scores"])})
                case "ended":
                    self.ended = event
                    return
                case _:
                    self.unreadable += 1
                    return
        except (KeyError, TypeError, ValueError):
            self.unreadable += 1
            return
        self.ended = None  # it went on

    @property
    def update(self) -> int:
        """Updates made."""
        last = [int(self.rows[-1][0])] if self.rows else []
        return max([*last, *(event["update"] for event in self.validations[-1:])], default=0)

    @property
    def seconds(self) -> float:
        """Time it took, as far as that is told."""
        if self.ended and isinstance(told := self.ended.get("seconds"), int | float):
            return float(told)
        return float(np.nansum(self.column("seconds"))) + sum(_number(event.get("seconds")) for event in self.validations)

    @property
    def best(self) -> dict[str, Any] | None:
        """The validation that no other was better than, by what the run went by."""
        return next((event for event in reversed(self.validations) if event.get("best")), None)

    @property
    def shares(self) -> dict[str, float]:
        """What the time went to, as the newest event tells it."""
        told = next((one.get("shares") for one in (self.ended, *reversed(self.validations)) if one and one.get("shares")), None)
        return numbers(told) if isinstance(told, dict) else {}

    @cached_property
    def _table(self) -> Points:
        return np.array(self.rows, dtype=np.float64).reshape(-1, len(COLUMNS))

    def column(self, name: str) -> Points:
        """Of each update, one of the COLUMNS."""
        return self._table[:, COLUMNS.index(name)]


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Those that are numbers; the journal has `nan` and `inf` as strings, JSON having none."""
    return {name: number for name, value in values.items() if (number := _number(value, None)) is not None}


def _number(value: Any, default: Any = 0.0) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return default
