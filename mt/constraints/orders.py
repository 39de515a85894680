"""What a search is to obey, in ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Phrase = tuple[tuple[int, ...], ...]
"""The ways of writing a phrase: any will do, the first is what is written where one has to be."""


@dataclass(frozen=True)
class Orders:
    """For the sentences of a batch; nothing by default."""

    min_length: int = 0
    """Ids before EOS."""
    no_repeat_ngram: int = 0
    """Length of the n-grams that come only once; 0: none."""
    repetition_penalty: float = 1.0
    """Factor on the log-probability of what was generated before; 1: none."""
    banned: Sequence[Sequence[int]] = ()
    """Sequences, none empty, that never occur."""
    prefixes: Sequence[Sequence[int]] = ()
    """How the outputs of each sentence begin, if any do so; all shorter than the limit."""
    required: Sequence[Sequence[Phrase]] = ()
    """What the outputs of each sentence say, if any have to."""

    def least(self, sentence: int) -> int:
        """The smallest limit, EOS counted, that leaves room for the least length and the sentence's prefix."""
        return max(self.min_length, len(self.prefixes[sentence]) if self.prefixes else 0) + 1


NO_ORDERS = Orders()
