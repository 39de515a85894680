"""The options of `mt translate` that say what translations are to obey, and the report on a glossary."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mt.clean.flags import Flag
from mt.config.protection import KINDS
from mt.config.stage import MAX_BEAM
from mt.constraints.control import Control
from mt.constraints.glossary import Glossary, Term
from mt.errors import DataError, DecodeError, MTError
from mt.files import read_lines
from mt.formats.placeholders import Protected

if TYPE_CHECKING:
    from mt.config.schema import DecodeConfig
    from mt.decode.translation import Translation
    from mt.formats.exchange import Kind

MinLength = Annotated[int, typer.Option(min=0, metavar="N", help="Pieces of a translation at least.")]
NoRepeat = Annotated[int, typer.Option("--no-repeat-ngram", min=0, metavar="N", help="So many pieces in a row come only once; 0: off.")]
Penalty = Annotated[float, typer.Option(metavar="X", help="Above 1: pieces that are there already become less probable.")]
PrefixFile = Annotated[
    Path | None, typer.Option(readable=False, metavar="FILE", help="How each line's translation begins; a blank line: as it likes.")
]
BanFile = Annotated[
    Path | None, typer.Option("--ban", readable=False, metavar="FILE", help="Phrases, one a line, that are not to be written.")
]
RequireFile = Annotated[
    Path | None,
    typer.Option("--require", readable=False, metavar="FILE", help="What each line's translation says, TAB between phrases."),
]
GlossaryFile = Annotated[
    Path | None,
    typer.Option("--glossary", readable=False, metavar="FILE", help="Source term TAB target term, one a line; # begins a comment."),
]
Alternatives = Annotated[
    int | None,
    typer.Option(
        min=1, max=MAX_BEAM, metavar="K", help="So many translations a line, which differ in the piece after the prefix (--prefix-file)."
    ),
]

Protect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME|REGEX",
        help=f"What translations have to keep as it is: {', '.join(KINDS)}, or a regular expression; none: nothing.  [default: the run's]",
    ),
]
RetryLoops = Annotated[
    bool | None,
    typer.Option("--retry-loops/--no-retry-loops", help="Try translations that repeat themselves again.  [default: the run's]"),
]

SHOWN = 5
"""Of what is missed, so many are named."""
LONG = 60
"""Characters of a source line that name it."""


@dataclass(frozen=True)
class Asked:
    """What the options come to."""

    control: Control
    prefixes: Iterable[str] | None
    required: Iterable[list[str]] | None

    def of_run(self, decode: DecodeConfig, *, fail_on: Collection[Flag]) -> Control:
        """With what is left open as a run has it. Raises MTError, in one line, where nothing is protected that might be lost."""
        control = self.control.of_run(protect=decode.protect, retry_loops=decode.retry_loops)
        if Flag.LOST in fail_on and not protects(control):
            raise MTError("--fail-on lost goes with --protect, which says what is not to be lost: add it")
        return control


def asked(
    *,
    min_length: int,
    no_repeat_ngram: int,
    repetition_penalty: float,
    ban: Path | None,
    glossary: Path | None,
    prefix_file: Path | None,
    require: Path | None,
    protect: list[str] | None,
    retry_loops: bool | None,
    kind: Kind | None,
) -> Asked:
    """What the options ask of the translations of a text, or of a document of some kind. Raises MTError, in one line."""
    for name, path in ("--prefix-file", prefix_file), ("--require", require):
        if kind and path:
            raise MTError(f"{name} {path} goes with plain text, line by line; a {kind} is no text (--input-format text reads its lines)")
    try:
        control = Control(
            min_length=min_length,
            no_repeat_ngram=no_repeat_ngram,
            repetition_penalty=repetition_penalty,
            banned=[line.strip() for line in read_lines(ban) if line.strip()] if ban else (),
            glossary=Glossary(terms(glossary)) if glossary else None,
            protect=Protected(tuple(protect) if protect != ["none"] else ()) if protect else None,
            retry_loops=retry_loops,
        )
    except DecodeError as error:
        raise MTError(f"--{error}") from None
    phrases = (line.split("\t") for line in begun(require)) if require else None
    return Asked(control, begun(prefix_file) if prefix_file else None, phrases)


def refuse_choosing(alternatives: int | None, others: Mapping[str, int | None]) -> None:
    """Raise MTError, in one line, where alternatives and something else (by name) would choose what is given."""
    for name, value in others.items():
        if alternatives and value:
            raise MTError(f"--alternatives {alternatives} and {name} {value}: each says which translations are given; leave out one")


def begun(path: Path) -> Iterator[str]:
    """The lines of a file; what is wrong with it, or with its first line, is said at once."""
    lines = read_lines(path)
    return chain(list(islice(lines, 1)), lines)


def refuse_uneven(source: Path, *by_line: Path | None) -> None:
    """Raise DataError if files have not a line for each line of a source; pipes are told when they end."""
    for path in by_line:
        if path and path.is_file() and source.is_file():
            own, lines = (sum(1 for _ in read_lines(one)) for one in (path, source))
            if own != lines:
                raise DataError(f"{path}: has {own} lines and {source} {lines}; give one for each line, blank where nothing is asked for")


def terms(path: Path) -> Iterator[Term]:
    """The entries of a glossary. Raises DataError, naming file and line, for what is none."""
    seen: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        source, *targets = (column.strip() for column in line.split("\t"))
        if not source or len(targets) != 1 or not targets[0]:
            raise DataError(f"{path}:{number}: should be a source term, a TAB and a target term")
        if source in seen:
            raise DataError(f"{path}:{number}: {source!r} is in line {seen[source]} already; keep one of the two")
        seen[source] = number
        yield Term(source, targets[0])


def protects(control: Control) -> bool:
    """Whether there is anything that a translation must not lose."""
    return bool(control.protect and control.protect.patterns)


@dataclass
class Tally:
    """How often something held, and what did not."""

    called: str
    holds: str
    fails: str
    held: int = 0
    missed: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, holds: bool) -> None:
        """One of them."""
        self.held += holds
        self.missed[what] += not holds

    def __str__(self) -> str:
        counts = f"{self.called}: {self.held} {self.holds}, {self.missed.total()} {self.fails}"
        named = [f"{what} ({count} times)" if count > 1 else what for what, count in self.missed.items() if count]
        return counts + (f": {'; '.join(named[:SHOWN])}" if named else "") + ("; …" if len(named) > SHOWN else "")


def with_report(translations: Iterable[Translation], control: Control) -> Iterator[Translation]:
    """The same translations; after the last, what became of the glossary, of what is protected and of loops goes to stderr."""
    terms = Tally("glossary", "honoured", "missed")
    spans = Tally("protected", "kept", "lost")
    loops = Tally("second tries", "without a loop", "no better")
    for translation in translations:
        for term, holds in translation.terms:
            terms.add(f"{term.source} → {term.target}", holds)
        for span, kept in translation.protected:
            spans.add(span, kept)
        if translation.retried:
            loops.add(translation.source[:LONG], "loop" not in translation.flags)
        yield translation
    asked_for = (control.glossary, terms), (protects(control), spans), (control.retry_loops, loops)
    for wanted, tally in asked_for:
        if wanted:
            print(tally, file=sys.stderr)
