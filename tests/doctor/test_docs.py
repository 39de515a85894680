"""docs/doctor.md shows the thresholds that hold."""

from __future__ import annotations

from pathlib import Path

from mt.doctor.kinds import BOUNDS, NEVER, WORDS

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"


def shown(bound: float) -> str:
    return "any" if bound == 0 else "" if bound == NEVER else f"{100 * bound:.4g} %"


def table() -> str:
    """The rows of the table of kinds."""
    return "".join(
        f"| `{kind}` | {WORDS[kind].says} | {' | '.join(map(shown, bounds[:3]))} | {bounds.because} |\n" for kind, bounds in BOUNDS.items()
    )


def test_the_table_of_kinds_is_true() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
