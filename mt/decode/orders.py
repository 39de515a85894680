"""What a search is to obey, in ids."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Orders:
    """For all sentences of a batch; nothing by default."""

    min_length: int = 0
    """Ids before EOS."""
    no_repeat_ngram: int = 0
    """Length of the n-grams that come only once; 0: none."""
    repetition_penalty: float = 1.0
    """Factor on the log-probability of what was generated before; 1: none."""


NO_ORDERS = Orders()
