"""The pages of the documentation as tests see them: their blocks, and the commands in these."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "data" / "quickstart" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(mt [a-z][^`\n]*)`")
ENDS = {"|", "||", "&&", ";", ">", "&", "<"}


class Block(NamedTuple):
    """What stands between two fences."""

    kind: str
    text: str
    line: int
    """Of its first fence."""

    def commands(self) -> list[str]:
        """What somebody types, lines that go on put together: after `$ ` in a console, all lines of a script."""
        text = self.text.replace("\\\n", " ")
        if self.kind == "console":
            return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
        return [line for line in text.splitlines() if line.strip()] if self.kind in ("bash", "sh") else []


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        indent = len(found["indent"])
        inside = "".join(line[indent:] or "\n" for line in found["text"].splitlines(keepends=True))
        yield Block(found["kind"], inside, text.count("\n", 0, found.start()) + 1)


def spoken(page: Path) -> list[str]:
    """Commands of `mt` within a sentence, such as `mt eval --hyp out.de`."""
    return SPAN.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


def calls(command: str) -> Iterator[list[str]]:
    """The words of each `mt …` in a line of a shell, without the program, redirections and comments."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    found: list[list[str]] = [[]]
    words = list(lexer)
    for word in words:
        if word in ENDS or set(word) <= set("|&;<>"):
            found.append([])
        else:
            found[-1].append(word)
    for part in found:
        for at, word in enumerate(part):
            if (word == "mt" and part[at - 1 : at] != ["-m"]) or word.endswith("/bin/mt") or part[at : at + 2] == ["-m", "mt"]:
                yield part[at + 1 + (word == "-m") :]
                break
