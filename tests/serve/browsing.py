"""For tests of the page: a tab of a browser, and answers as the server gives them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE = 30_000
"""Milliseconds after which what is waited for does not come any more."""

Json = dict[str, Any]


class Tab:
    """A page with a memory of its own, and what it asked for and said meanwhile."""

    def __init__(self, context: Any, address: str) -> None:
        from playwright.sync_api import expect  # an extra, which may be absent

        self.context, self.address, self.expect = context, address, expect
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.requests: list[Any] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self) -> Any:
        """Go to the page, and wait until it knows the model."""
        self.page.goto(self.address)
        self.expect(self.page.locator("#model")).not_to_be_empty(timeout=PATIENCE)
        return self.page

    def write(self, text: str) -> None:
        """Text as the reader's, to be translated at once: however slow this machine is, there is one request."""
        self.page.locator("#source").evaluate(
            """(field, text) => {
              field.value = text;
              field.dispatchEvent(new InputEvent("input", {bubbles: true}));
              field.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true, bubbles: true}));
            }""",
            text,
        )

    def answer(self, route: str, made: Callable[[Json], Json], *, status: int = 200, headers: dict[str, str] | None = None) -> list[Json]:
        """Have requests for a route answered by a function of their bodies; returns the bodies, as they come."""
        bodies: list[Json] = []

        def fulfil(found: Any) -> None:
            bodies.append(found.request.post_data_json if found.request.post_data else {})
            found.fulfill(status=status, json=made(bodies[-1]), headers=headers or {})

        self.page.route(f"**/{route}", fulfil)
        return bodies

    def asked(self, route: str) -> list[Json]:
        """The bodies of the requests for a route."""
        return [request.post_data_json for request in self.requests if request.url.endswith(route)]

    def shows(self, text: str, *, within: str = "#result") -> None:
        """Wait until that is all there is."""
        self.expect(self.page.locator(within)).to_have_text(text, use_inner_text=True, timeout=PATIENCE)

    def state(self, text: str) -> None:
        """Wait until the line on how things are says that."""
        self.expect(self.page.locator("#state")).to_contain_text(text, timeout=PATIENCE)


def drop(page: Any, name: str, content: str, *, count: int = 1) -> None:
    """Let files fall on the page."""
    page.evaluate(
        """([name, content, count]) => {
          const dataTransfer = new DataTransfer();
          for (let i = 0; i < count; i++) dataTransfer.items.add(new File([content], name));
          for (const type of ["dragenter", "dragover", "drop"])
            document.body.dispatchEvent(new DragEvent(type, {dataTransfer, bubbles: true, cancelable: true}));
        }""",
        [name, content, count],
    )


def tokens(text: str, probabilities: dict[str, float] | None = None) -> list[Json]:
    """What stands between spaces, with its place in code points."""
    found = [{"text": one[0], "start": one.start(), "end": one.end()} for one in re.finditer(r"\S+", text)]
    return [{**one, "probability": (probabilities or {}).get(str(one["text"]), 0.9)} for one in found]


def sentence(source: str, text: str, *, before: str = "", **more: Any) -> Json:
    """As the server tells of one whose words belong to each other in order."""
    own, theirs = tokens(source), tokens(text, more.pop("probabilities", None))
    alignment = [[place, place, 0.8] for place in range(min(len(own), len(theirs)))]
    made = {"source": source, "text": text, "before": before, "score": -0.5, "flags": [], "alignment": alignment}
    return {**made, "tokens": theirs, "source_tokens": own, **more}


def translated(*sentences: Json, **more: Any) -> Json:
    """An answer with one text."""
    text = "".join(one["before"] + one["text"] for one in sentences)
    first = {"text": text, "flags": [], "hypotheses": [{"text": text, "score": -0.5, "log_prob": -2.0}], "sentences": list(sentences)}
    return {"translations": [{**first, **more}]}


def upper(body: Json) -> Json:
    """A model that shouts."""
    return translated(sentence(body["text"], body["text"].upper()))


def info(**more: Any) -> Json:
    """What a server says about itself."""
    languages = {
        "source": {"code": "en", "name": "English"},
        "targets": [{"code": "de", "name": "German"}, {"code": "fr", "name": "French"}],
    }
    limits = {"characters": 10, "file_bytes": 100}
    return {"model": "runs/x", **languages, "limits": limits, "version": "1", "needs_key": False, "formats": ["txt", "po"], **more}
