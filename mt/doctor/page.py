"""The report as one HTML page that needs nothing else. Text from corpora is escaped, and what cannot be seen in it is shown by number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from mt.doctor.characters import INVISIBLE
from mt.doctor.findings import CorpusFacts, Diagnosis, Finding, percent
from mt.doctor.leakage import LEVELS, SIDES
from mt.doctor.summary import COLUMNS, HEADINGS, verdict

_UNSEEN = re.compile(f"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffd\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff{INVISIBLE}]")


def page(diagnosis: Diagnosis, *, title: str) -> str:
    """The whole page."""
    sections = "".join((_findings(diagnosis), _leakage(diagnosis), _corpora(diagnosis.corpora)))
    template = Template((files("mt.doctor") / "page.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), about=escape(verdict(diagnosis)), tiles=_tiles(diagnosis), sections=sections)


def shown(text: str) -> str:
    """Text for the page: escaped, and characters that cannot be seen as their number."""
    return _UNSEEN.sub(lambda found: f"<mark>U+{ord(found[0]):04X}</mark>", escape(text))


def _tiles(diagnosis: Diagnosis) -> str:
    tiles = [("", str(sum(facts.pairs for facts in diagnosis.corpora)), "pairs in all")]
    for severity in sorted(HEADINGS, reverse=True):
        count = sum(finding.severity == severity for finding in diagnosis.findings)
        tiles.append((severity.name.lower() if count else "", str(count), HEADINGS[severity]))
    return "\n".join(f'<div class="tile"><b class="{kind}">{number}</b>{name}</div>' for kind, number, name in tiles)


def _findings(diagnosis: Diagnosis) -> str:
    parts = []
    for severity in sorted(HEADINGS, reverse=True):
        found = [finding for finding in diagnosis.findings if finding.severity == severity]
        if found:
            parts.append(f"<h2>{HEADINGS[severity].capitalize()}</h2>\n" + "".join(map(_finding, found)))
    return "".join(parts) or "<h2>Nothing was found</h2>\n"


def _finding(finding: Finding) -> str:
    share = f'<div class="meter" title="{percent(finding.share)}"><i style="width: {100 * finding.share:.2f}%"></i></div>'
    head = (
        f'<span class="kind">{shown(finding.corpus)} · {finding.kind.replace("_", " ")}</span>'
        f'<p>{shown(finding.what)}</p>{share}<p class="dim">{shown(finding.cure)}</p>'
    )
    name = f"finding {finding.severity.name.lower()}"
    if not finding.examples:
        return f'<div class="{name}"><div>{head}</div></div>\n'
    examples = "".join(_example(example) for example in finding.examples)
    return f'<details class="{name}"><summary>{head}</summary><div class="examples">{examples}</div></details>\n'


def _example(example: dict[str, str]) -> str:
    """A pair; for leakage the pair it was met in follows."""
    other = {key.removeprefix("train_"): text for key, text in example.items() if key.startswith("train_")}
    return "".join(
        f'<div class="pair"><span class="origin">{shown(one["origin"])}</span>'
        f'<span dir="auto">{shown(one["src"])}</span><span dir="auto">{shown(one["tgt"])}</span></div>'
        for one in (example, *([other] if other else []))
    )


def _leakage(diagnosis: Diagnosis) -> str:
    """How many pairs of each held-out set are in the training data."""
    if not diagnosis.leakage:
        return ""
    head = ["held-out set", "pairs", *(f"{level}: {side}" for level in reversed(LEVELS) for side in SIDES)]
    rows = [
        [shown(name), str(found["pairs"]), *(_share(found[level][side], found) for level in reversed(LEVELS) for side in SIDES)]
        for name, found in diagnosis.leakage.items()
    ]
    return f"<h2>Held-out pairs in the training data</h2>\n{_table(head, rows)}"


def _share(count: int, found: dict[str, Any]) -> str:
    return f"{count} ({percent(count / found['pairs'])})" if count else "0"


def _corpora(corpora: Sequence[CorpusFacts]) -> str:
    head = ["corpus", "role", "pairs", *COLUMNS.values(), "characters, median"]
    rows = [
        [
            shown(facts.name),
            facts.role,
            str(facts.pairs),
            *(str(facts.counts[kind]) for kind in COLUMNS),
            "{} / {}".format(*facts.characters),
        ]
        for facts in corpora
    ]
    return f"<h2>Corpora</h2>\n{_table(head, rows)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of HTML as a table."""

    def cells(tag: str, row: Sequence[str]) -> Iterator[str]:
        return (f"<{tag}>{cell}</{tag}>" for cell in row)

    body = "\n".join(f"<tr>{''.join(cells('td', row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{"".join(cells("th", head))}</tr></thead><tbody>{body}</tbody></table></div>\n'
