"""What is asked of translations beside being probable, in text; `orders` has it in ids."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mt.decode.orders import Orders
from mt.errors import DecodeError

MOST = 10_000
"""The largest least length."""
MAX_PENALTY = 10.0
"""Far beyond what helps."""


@dataclass(frozen=True)
class Control:
    """What every translation is to obey; nothing by default. Raises DecodeError for settings that cannot be met."""

    min_length: int = 0
    """Pieces of a translation at least; the length limit makes room for them."""
    no_repeat_ngram: int = 0
    """So many pieces in a row come only once; 0: no such rule."""
    repetition_penalty: float = 1.0
    """Pieces that are there already: their log-probability is multiplied by it, in what is reported too."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_length <= MOST:
            raise DecodeError(f"min-length {self.min_length}: give a number of pieces from 0 to {MOST}")
        if self.no_repeat_ngram < 0:
            raise DecodeError(f"no-repeat-ngram {self.no_repeat_ngram}: give a number of pieces, or 0 for no such rule")
        if not 1 <= self.repetition_penalty <= MAX_PENALTY or math.isnan(self.repetition_penalty):
            raise DecodeError(f"repetition-penalty {self.repetition_penalty:g}: give a number from 1 (none) to {MAX_PENALTY:g}")

    def orders(self) -> Orders:
        """In ids."""
        return Orders(self.min_length, self.no_repeat_ngram, self.repetition_penalty)


NO_CONTROL = Control()
