"""The report for a terminal: findings one a line, the worst first, then a table of the corpora."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mt.doctor.findings import CorpusFacts, Diagnosis, Finding, number
from mt.doctor.kinds import Severity

PLACES = 3  # of a finding that are named
HEADINGS = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
COLUMNS = {
    "empty": "empty",
    "duplicates": "repeated",
    "copies": "copies",
    "ratio": "odd ratio",
    "length_limit": "too long",
    "leakage": "leaking",
}
"""Counts of the table of corpora, by kind, with their headings."""


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """The whole report."""
    for severity in sorted(HEADINGS, reverse=True):
        found = [finding for finding in diagnosis.findings if finding.severity == severity]
        if found:
            yield HEADINGS[severity]
            yield from (f"  {line(finding)}" for finding in found)
            yield ""
    yield from table(diagnosis.corpora)
    if legend := leaking(diagnosis.corpora):
        yield legend
    yield ""
    yield verdict(diagnosis)


def line(finding: Finding) -> str:
    """What was found in which corpus, where first, and what helps."""
    places = [example["origin"] for example in finding.examples if example["origin"] not in finding.what]
    first = ", ".join(places[:PLACES]) + (", …" if finding.count > PLACES and places else "")
    return f"{finding.corpus}: {finding.what}{f' [{first}]' if first else ''}; {finding.cure}"


def table(corpora: Sequence[CorpusFacts]) -> Iterator[str]:
    """The corpora, one a line, in columns."""
    rows = [("corpus", "role", "pairs", *COLUMNS.values(), "characters")]
    for facts in corpora:
        counts = [str(facts.counts[kind]) for kind in COLUMNS]
        rows.append((facts.name, facts.role, str(facts.pairs), *counts, "{} / {}".format(*facts.characters)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in enumerate(zip(row, widths, strict=True))]
        yield "  ".join(cells)


def leaking(corpora: Sequence[CorpusFacts]) -> str:
    """What the column of this name counts; nothing where no held-out pair is met."""
    met = [
        f"{number(facts.counts['leakage'], 'pair')} of {facts.name}"
        for facts in corpora
        if facts.role != "train" and facts.counts["leakage"]
    ]
    train = sum(facts.counts["leakage"] for facts in corpora if facts.role == "train")
    return f"leaking: {', '.join(met)} and {number(train, 'training pair')} have a side in common, the same or nearly" if met else ""


def verdict(diagnosis: Diagnosis) -> str:
    """One line: how many findings of each severity, and what was only sampled."""
    counts = [sum(finding.severity == severity for finding in diagnosis.findings) for severity in sorted(HEADINGS, reverse=True)]
    found = ", ".join(number(count, noun) for count, noun in zip(counts, ("error", "warning", "note"), strict=True))
    return f"{found} in {number(sum(facts.pairs for facts in diagnosis.corpora), 'pair')}{sampled(diagnosis)}"


def sampled(diagnosis: Diagnosis) -> str:
    """What is to be known about samples; nothing where all pairs were looked at by everything."""
    some = [f"{facts.sampled} of {facts.name}" for facts in diagnosis.corpora if facts.sampled < facts.usable]
    return f"; text, numbers, scripts and pieces were looked at in a sample: {', '.join(some)}" if some else ""
