"""One HTML page that needs nothing else: no script, no request, its style within; light and dark, for a screen, a phone and paper."""

from __future__ import annotations

from importlib.resources import files

from mt.page.elements import NEWLINE, Html, joined, tag

# What a page may do, should text ever become markup: nothing but show itself.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def document(*content: str, title: str, about: str = "") -> str:
    """The whole page: its title, a line about it in grey, and what else there is."""
    look = Html((files("mt.page") / "look.css").read_text(encoding="utf-8"))
    head = (
        Html('<meta charset="utf-8">\n'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Html('<meta name="color-scheme" content="light dark">\n'),
        Html('<link rel="icon" href="data:,">\n'),  # else a browser asks the server for one
        tag("title", title),
        tag("style", look),
    )
    top = tag("header", tag("h1", title), tag("p", about, class_="dim") if about else "")
    body = tag("body", tag("main", top, NEWLINE, joined(content)))
    return "<!doctype html>\n" + tag("html", tag("head", *head), NEWLINE, body, lang="en") + "\n"
