"""What the filters did: counts by reason, the first examples of each, and one table over all corpora."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from mt.errors import DataError
from mt.formats.pairs import EMPTY, Pair, drop_reason

EXAMPLES = 3  # kept of each reason
READABLE = 100  # characters of a text in an example
WIDTH = 100  # columns of the table


class DroppedPair(NamedTuple):
    """A pair that was dropped: where it is, and its texts, cut to a readable length."""

    origin: str
    src: str = ""
    tgt: str = ""


class Tally:
    """Counts what was kept and what was dropped for which reason, with the first few pairs of each; tallies of parts can be added up."""

    def __init__(self) -> None:
        self.kept = 0
        self.dropped: Counter[str] = Counter()
        """Pairs by reason."""
        self.examples: dict[str, list[DroppedPair]] = {}
        """The first pairs dropped, by reason."""

    @property
    def total(self) -> int:
        """Pairs seen."""
        return self.kept + self.dropped.total()

    def add(self, reason: str | None, origin: str, src: str = "", tgt: str = "") -> None:
        """Count one pair: dropped for `reason`, or kept if that is None."""
        if reason is None:
            self.kept += 1
            return
        self.dropped[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < EXAMPLES:
            examples.append(DroppedPair(origin, cut(src, READABLE), cut(tgt, READABLE)))

    def keep(self, pairs: Iterable[Pair], reason: Callable[[Pair], str | None] = drop_reason) -> Iterator[Pair]:
        """The pairs without a reason to drop them, all of them counted on the way."""
        for pair in pairs:
            why = reason(pair)
            self.add(why, pair.origin, pair.src, pair.tgt)
            if why is None:
                yield pair

    def __add__(self, other: Tally) -> Tally:
        """Both together; the examples of the left one come first."""
        both = Tally()
        both.kept = self.kept + other.kept
        both.dropped = self.dropped + other.dropped
        for reason in both.dropped:
            both.examples[reason] = [*self.examples.get(reason, []), *other.examples.get(reason, [])][:EXAMPLES]
        return both

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.to_json() == other.to_json()

    def line(self, name: str) -> str:
        """One line for the user, such as `train.en: kept 3 of 5 pairs (2 empty side)`; the commonest reason comes first."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())
        return f"{name}: kept {self.kept} of {self.total} pair{'' if self.total == 1 else 's'}" + (f" ({reasons})" if reasons else "")

    def require_pairs(self, name: str) -> None:
        """Raise DataError with the line, the cure and the first pairs dropped if nothing was kept."""
        if self.kept:
            return
        ((commonest, _),) = self.dropped.most_common(1) or ((EMPTY, 0),)
        if commonest == EMPTY:
            cure = "one side has no text; are these the right files?"
        elif commonest.endswith((" piece", " pieces")):
            cure = "raise data.max_pieces, or split the lines."
        else:
            cure = "are these the right files, in the right order? If they are, loosen data.filters."
        examples = ", ".join(example.origin for example in self.examples.get(commonest, []))
        raise DataError(f"{self.line(name)}; {cure}" + (f" First dropped: {examples}" if examples else ""))

    def to_json(self) -> dict[str, Any]:
        """All of it for a JSON file; the commonest reason comes first."""
        dropped = [
            {
                "reason": reason,
                "count": count,
                "share": count / self.total,
                "examples": [example._asdict() for example in self.examples.get(reason, [])],
            }
            for reason, count in self.dropped.most_common()
        ]
        return {"total": self.total, "kept": self.kept, "dropped": dropped}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The tally that `to_json` wrote."""
        tally = cls()
        tally.kept = value["kept"]
        for entry in value["dropped"]:
            tally.dropped[entry["reason"]] = entry["count"]
            tally.examples[entry["reason"]] = [DroppedPair(**example) for example in entry["examples"]]
        return tally


def cut(text: str, width: int) -> str:
    """The text, or its beginning and `…` where it has more than `width` characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────────────


def table(tallies: Mapping[str, Tally]) -> list[str]:
    """The lines of corpus × reason × count × share, aligned, at most 100 columns; all corpora together come last where there are several.

    Shares are of the pairs of a corpus.
    """
    rows = [("corpus", "reason", "pairs", "share")]
    for name, tally in _with_sum(tallies):
        rows.append((name, "kept", str(tally.kept), _percent(tally.kept, tally.total)))
        rows += [("", reason, str(count), _percent(count, tally.total)) for reason, count in tally.dropped.most_common()]
    names, reasons, counts, shares = (max(map(len, column)) for column in zip(*rows, strict=True))
    room = WIDTH - counts - shares - 6
    names = min(names, max(12, room - reasons))
    reasons = min(reasons, room - names)
    return [
        f"{cut(name, names):{names}}  {cut(reason, reasons):{reasons}}  {count:>{counts}}  {share:>{shares}}"
        for name, reason, count, share in rows
    ]


def table_json(tallies: Mapping[str, Tally]) -> dict[str, Any]:
    """The same for a JSON file, with examples: `{"corpora": {name: …}, "all": …}`."""
    return {"corpora": {name: tally.to_json() for name, tally in tallies.items()}, "all": sum(tallies.values(), Tally()).to_json()}


def _with_sum(tallies: Mapping[str, Tally]) -> Iterator[tuple[str, Tally]]:
    yield from tallies.items()
    if len(tallies) > 1:
        yield "all", sum(tallies.values(), Tally())


def _percent(count: int, total: int) -> str:
    """`0%` and `100%` are exact; what rounds to them is not shown as them."""
    share = count / total if total else 0.0
    if count in (0, total):
        return f"{share:.0%}"
    return "<0.01%" if share < 0.00005 else ">99.99%" if share >= 0.99995 else f"{share:.2%}"
