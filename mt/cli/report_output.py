"""Reports in a file: a page or Markdown, by the file's name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mt.errors import MTError

if TYPE_CHECKING:
    from mt.evaluate.layout import Block

Report = Annotated[
    Path | None, typer.Option(readable=False, metavar="FILE", help="Write a report to read: FILE.html, a page by itself, or FILE.md.")
]


def refuse_other(report: Path | None, json_file: Path | None) -> None:
    """Raise MTError for a name that does not say what the report is to be, or is that of the JSON, too."""
    if report and report.suffix.lower() not in (".html", ".md"):
        raise MTError(f"--report {report}: give FILE.html, a page, or FILE.md, Markdown")
    if report and json_file and report.absolute() == json_file.absolute():
        raise MTError(f"--report {report}: --json goes there, too; give each a file of its own")


def as_report(report: Path, blocks: Iterable[Block], *, title: str, about: str) -> str:
    """What goes into the file."""
    from mt.evaluate.layout import as_markdown, as_page

    if report.suffix.lower() == ".md":
        return as_markdown(blocks, title=title, about=about)
    return as_page(blocks, title=title, about=about)
