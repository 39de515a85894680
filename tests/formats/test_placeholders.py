"""What a translation lost of what a program fills in."""

from __future__ import annotations

import pytest

from mt.formats.placeholders import lost


@pytest.mark.parametrize(
    ("source", "target", "missing"),
    [
        ("%d files of %d", "%d Dateien von %d", []),
        ("%d files of %d", "%d Dateien", ["%d"]),
        ("%(name)s has %-5.2f", "% (name)s hat %-5.2f", ["%(name)s"]),
        ("%1$s to %2$s", "von %2$s bis %1$s", []),
        ("%1 of %L2", "von %L2", ["%1"]),
        ("{0} and {name} and {price:.2f}", "{0} und {nome}", ["{name}", "{price:.2f}"]),
        ("{{ user }} ${home} {}", "{ {user} }", ["{ user }", "{home}", "{}"]),
        ('<b>bold</b> <a href="x">y</a>', "<b>fett</b> y", ['<a href="x">', "</a>"]),
        ("100 % sure, 100% sure, a 100%ige Sache, a < b > c", "sicher", []),
        ("100%% of %s", "100% von %s", ["%%"]),
        ("nothing", "%d {0} <b>", []),
    ],
)
def test_what_is_lost(source: str, target: str, missing: list[str]) -> None:
    assert lost(source, target) == missing
