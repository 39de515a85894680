"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mt.doctor.findings import CorpusFacts, Diagnosis, Finding, percent
from mt.doctor.leakage import LEVELS, SIDES
from mt.doctor.summary import COLUMNS, HEADINGS, leaking, verdict
from mt.page.blocks import Tile, folded, meter, pair, section, table, tiles
from mt.page.document import document
from mt.page.elements import Html, joined, tag


def page(diagnosis: Diagnosis, *, title: str) -> str:
    """The whole page."""
    content = _tiles(diagnosis), _findings(diagnosis), _leakage(diagnosis), _corpora(diagnosis.corpora)
    return document(*content, title=title, about=verdict(diagnosis))


def _tiles(diagnosis: Diagnosis) -> Html:
    found = [Tile(str(sum(facts.pairs for facts in diagnosis.corpora)), "pairs in all")]
    for severity in sorted(HEADINGS, reverse=True):
        count = sum(finding.severity == severity for finding in diagnosis.findings)
        found.append(Tile(str(count), HEADINGS[severity], kind=severity.name.lower() if count else ""))
    return tiles(found)


def _findings(diagnosis: Diagnosis) -> Html:
    parts = []
    for severity in sorted(HEADINGS, reverse=True):
        found = [finding for finding in diagnosis.findings if finding.severity == severity]
        if found:
            parts.append(section(HEADINGS[severity].capitalize(), *map(_finding, found)))
    return joined(parts or [section("Nothing was found")])


def _finding(finding: Finding) -> Html:
    head = joined(
        (
            tag("span", f"{finding.corpus} · {finding.kind.replace('_', ' ')}", class_="kind"),
            tag("p", finding.what),
            meter(finding.share, title=percent(finding.share)),
            tag("p", finding.cure, class_="dim"),
        )
    )
    name = f"finding {finding.severity.name.lower()}"
    if not finding.examples:
        return tag("div", tag("div", head, class_="head"), class_=name)
    return folded(head, *map(_example, finding.examples), kind=name)


def _example(example: dict[str, str]) -> Html:
    """A pair; for leakage the pair it was met in follows."""
    other = {key.removeprefix("train_"): text for key, text in example.items() if key.startswith("train_")}
    return joined(pair(one["src"], one["tgt"], origin=one["origin"]) for one in (example, *([other] if other else [])))


def _leakage(diagnosis: Diagnosis) -> str:
    """How many pairs of each held-out set are in the training data."""
    if not diagnosis.leakage:
        return ""
    head = ["held-out set", "pairs", *(f"{level}: {side}" for level in reversed(LEVELS) for side in SIDES)]
    rows = [
        [name, str(found["pairs"]), *(_share(found[level][side], found) for level in reversed(LEVELS) for side in SIDES)]
        for name, found in diagnosis.leakage.items()
    ]
    return section("Held-out pairs in the training data", table(head, rows))


def _share(count: int, found: dict[str, Any]) -> str:
    return f"{count} ({percent(count / found['pairs'])})" if count else "0"


def _corpora(corpora: Sequence[CorpusFacts]) -> Html:
    head = ["corpus", "role", "pairs", *COLUMNS.values(), "characters, median"]
    rows = [
        [facts.name, facts.role, str(facts.pairs), *(str(facts.counts[kind]) for kind in COLUMNS), "{} / {}".format(*facts.characters)]
        for facts in corpora
    ]
    return section("Corpora", table(head, rows, text=(0, 1)), about=leaking(corpora))
