"""Which pairs are not trained on, and why: pure functions from a pair to a reason, and a tally that reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sized

from mt.data.pairs import Pair
from mt.errors import DataError

EMPTY = "empty side"
EXAMPLES = 3


def drop_reason(pair: Pair) -> str | None:
    """What its file says against it, `empty side` if one side holds nothing but white space, else None."""
    return pair.flaw or (None if pair.src.strip() and pair.tgt.strip() else EMPTY)


def length_reason(src_ids: Sized, tgt_ids: Sized, *, max_pieces: int) -> str | None:
    """`longer than N pieces` if a side is, else None. Pieces count neither end mark nor tag.

    A side of no pieces at all is an `empty side`: normalisation may leave nothing of one that was not blank.
    """
    if not len(src_ids) or not len(tgt_ids):
        return EMPTY
    if max(len(src_ids), len(tgt_ids)) > max_pieces:
        return f"longer than {max_pieces} piece{'' if max_pieces == 1 else 's'}"
    return None


class Tally:
    """Counts what was kept and what was dropped for which reason, with the first few origins of each."""

    def __init__(self) -> None:
        self.kept = 0
        self.dropped: Counter[str] = Counter()
        """Pairs by reason."""
        self.examples: dict[str, list[str]] = {}
        """The origins of the first pairs dropped, by reason."""

    @property
    def total(self) -> int:
        """Pairs seen."""
        return self.kept + self.dropped.total()

    def add(self, reason: str | None, origin: str) -> None:
        """Count one pair: dropped for `reason`, or kept if that is None."""
        if reason is None:
            self.kept += 1
            return
        self.dropped[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < EXAMPLES:
            examples.append(origin)

    def keep(self, pairs: Iterable[Pair], reason: Callable[[Pair], str | None] = drop_reason) -> Iterator[Pair]:
        """The pairs without a reason to drop them, all of them counted on the way."""
        for pair in pairs:
            why = reason(pair)
            self.add(why, pair.origin)
            if why is None:
                yield pair

    def line(self, name: str) -> str:
        """One line for the user, such as `train.en: kept 3 of 5 pairs (2 empty side)`; the commonest reason comes first."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())
        return f"{name}: kept {self.kept} of {self.total} pair{'' if self.total == 1 else 's'}" + (f" ({reasons})" if reasons else "")

    def require_pairs(self, name: str) -> None:
        """Raise DataError with the line, the first examples and the cure if nothing was kept."""
        if self.kept:
            return
        ((commonest, _),) = self.dropped.most_common(1) or ((EMPTY, 0),)
        cure = "one side has no text; are these the right files?" if commonest == EMPTY else "raise data.max_pieces, or split the lines."
        examples = ", ".join(self.examples.get(commonest, []))
        raise DataError(f"{self.line(name)}; {cure}" + (f" First dropped: {examples}" if examples else ""))
