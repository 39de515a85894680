"""What users should know about translations: warnings on stderr, and an exit code for flags that a pipeline does not take."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from mt.clean.flags import Flag
from mt.cli.control_options import with_report
from mt.constraints.control import NO_CONTROL, Control

if TYPE_CHECKING:
    from mt.decode.translation import Translation

FLAGGED = 3
"""The exit code where a translation has a flag of `--fail-on`."""


class Alarm:
    """Notes where translations have one of some flags."""

    def __init__(self, flags: Collection[Flag]) -> None:
        self.places: dict[str, list[int | str]] = {flag: [] for flag in flags}

    def see(self, translation: Translation, place: int | str) -> None:
        """One translation, and its line or origin."""
        for flag in translation.flags:
            if flag in self.places:
                self.places[flag].append(place)

    def end(self) -> None:
        """Say what was seen, and end the program with its exit code."""
        seen = {flag: places for flag, places in self.places.items() if places}
        for flag, places in seen.items():
            print(f"--fail-on {flag}: {named(places)}", file=sys.stderr)
        if seen:
            raise typer.Exit(FLAGGED)


def with_warnings(
    translations: Iterable[Translation], *, most: int, alarm: Alarm, places: Iterator[int | str], control: Control = NO_CONTROL
) -> Iterator[Translation]:
    """The same translations; after the last, what users should know about them goes to stderr, with the places: lines or origins."""
    told = {
        "split": f"longer than {most} pieces (data.max_pieces), translated in parts",
        "truncated": "the translation was ended by the length limit (decode.max_length_factor)",
        "unmet": "the translation lacks something that it was to have (--prefix-file, --require, --glossary)",
        "lost": "the translation lost something of its source that is protected (--protect)",
    }
    seen: dict[str, list[int | str]] = {flag: [] for flag in told}
    unknown: dict[int | str, int] = {}
    for translation, place in zip(with_report(translations, control), places, strict=False):  # there are always more places
        for flag in seen.keys() & translation.flags:
            seen[flag].append(place)
        if translation.unknown:
            unknown[place] = unknown.get(place, 0) + translation.unknown
        alarm.see(translation, place)
        yield translation
    for flag, text in told.items():
        if seen[flag]:
            warn(f"{named(seen[flag])}: {text}")
    if unknown:
        lines = f"{len(unknown)} line{'' if len(unknown) == 1 else 's'}"
        warn(f"{sum(unknown.values())} unknown in {lines}: characters that the tokenizer has no piece for ({named(list(unknown))})")


def waiting(what: str) -> None:
    """To stderr, at once, where somebody sits and watches: what takes its time now; the libraries alone take seconds."""
    if sys.stderr.isatty():
        print(f"{what} …", file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """To stderr."""
    print(f"warning: {text}", file=sys.stderr)


def named(places: Sequence[int | str], most: int = 5) -> str:
    """`line 2`, `lines 2, 5`, or the first few of them and how many there are; origins as they are."""
    first = ", ".join(map(str, places[:most]))
    lines = f"line{'' if len(places) == 1 else 's'} " if isinstance(places[0], int) else ""
    return f"{lines}{first}" + (f", … ({len(places)} in all)" if len(places) > most else "")
