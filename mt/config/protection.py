"""What translations are to keep of their sources: kinds by name, or regular expressions."""

from __future__ import annotations

import re

KINDS = ("tags", "placeholders", "numbers", "urls", "emails")
"""Their patterns are in `mt.formats.placeholders`."""


def flaw_of(pattern: str) -> str | None:
    """What is wrong with a name or a regular expression, and the cure."""
    if pattern in KINDS:
        return None
    if pattern == "none":
        return "'none' goes alone: leave it out, or the others"
    if re.fullmatch(r"[a-zA-Z_]*", pattern):  # letters alone are a slip of a name, and no pattern worth having
        return f"{pattern!r} is no kind; give {', '.join(KINDS)}, or a regular expression"
    import regex  # what looks for them; few settings have one

    try:
        re.compile(pattern)  # which says more clearly what is wrong
        regex.compile(pattern)
    except (re.error, regex.error) as error:
        return f"{pattern!r} is no regular expression: {error}"
    return None
