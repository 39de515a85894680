"""Markup that cannot be confused with text: whatever is not `Html` is escaped when it goes into an element."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

# Soft hyphen, Arabic letter mark, zero-width space, word joiner and invisible operators, direction marks and overrides. Not the zero-width
# joiners, which Persian, Indic scripts and emoji are written with.
INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
_UNSEEN = re.compile(f"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffd\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff{INVISIBLE}]")
_VOID = frozenset(("br", "hr", "col"))


class Html(str):
    """Markup, to be taken as it is."""

    __slots__ = ()


NOTHING, NEWLINE = Html(""), Html("\n")


def shown(text: str) -> Html:
    """Text for a page: escaped, and characters that cannot be seen as their number; markup as it is."""
    if isinstance(text, Html):
        return text
    return Html(_UNSEEN.sub(lambda found: f"<mark>U+{ord(found[0]):04X}</mark>", escape(text)))


def tag(name: str, *content: str, **attributes: str | bool | None) -> Html:
    """An element: `tag("a", text, href="#x", class_="dim")`. An attribute that is None or False is left out; `_` stands for `-`."""
    given = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{joined(content)}</{name}>")


def joined(parts: Iterable[str], *, between: Html = NOTHING) -> Html:
    """Parts in a row."""
    return Html(between.join(map(shown, parts)))


def _attribute(name: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{_UNSEEN.sub(" ", escape(value))}"'
