"""What a translation lost of what a program fills in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config.protection import KINDS
from mt.errors import DecodeError
from mt.formats import placeholders as module
from mt.formats.placeholders import PATTERNS, Protected, lost


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


URL = "https://example.org/a/b?x=1&y={id}#top-2"


@pytest.mark.parametrize(
    ("patterns", "text", "expected"),
    [
        (("tags",), 'press <b>OK</b><br/>, <a href="x?a=1">or</a> a < b', ["<b>", "</b>", "<br/>", '<a href="x?a=1">', "</a>"]),
        (("placeholders",), "{date}: %s of %1$d, %%, {} and 100% sure", ["{date}", "%s", "%1$d", "%%", "{}"]),
        (("numbers",), "On 2024-01-31 at 12:30, 1,000.50 of 3. And 1/2, B2B.", ["2024-01-31", "12:30", "1,000.50", "3", "1/2", "2"]),
        (("urls",), f"See {URL}, (www.example.org/x_(y)). http://a.b/!", [URL, "www.example.org/x_(y", "http://a.b/"]),
        (("emails",), "Write to a.b+c@mail.example.org. Or @home, a@b", ["a.b+c@mail.example.org"]),
        (KINDS, f"<i>{URL}</i> costs 3 {{eur}}", ["<i>", URL, "</i>", "3", "{eur}"]),
        ((r"ID-\d+", "numbers"), "ID-12 and 12", ["ID-12", "12"]),
        ((r"(?P<q>['\"]).*?(?P=q)",), "say 'yes' or \"no\"", ["'yes'", '"no"']),
        ((r"(x*)",), "abc", []),
        ((), "{date} 3", []),
    ],
)
def test_what_is_protected(patterns: tuple[str, ...], text: str, expected: list[str]) -> None:
    assert Protected(patterns).spans(text) == expected


def test_what_comes_twice_has_to_come_twice_and_as_it_is() -> None:
    numbers = Protected(("numbers",))
    assert numbers.judged("3 of 3 and 12", "12 von 3") == [("3", True), ("3", False), ("12", True)]
    assert numbers.lost("1,000 in 12", "1.000 in 2012") == ["1,000", "12"]
    assert numbers.lost("no number", "7") == []


@pytest.mark.parametrize("pattern", ["number", "Tags", "", "x(", "[a", "*"])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(DecodeError, match="protect: .* is no (kind; give tags, placeholders|regular expression: )"):
        Protected((pattern,))


def test_a_pattern_that_takes_forever_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    slow = Protected((r"\d+", r"(a|aa)+b"))
    assert slow.spans("3 aab") == ["3", "aab"]
    with pytest.raises(DecodeError, match=r"protect: '\(a\|aa\)\+b' takes more than 0.2 seconds for a line \(a{60}…\); write it"):
        slow.spans("a" * 70)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_go_through_a_word_of_any_length(kind: str) -> None:
    for text in ("x" * 100_000, "1" * 100_000, "<b" * 50_000, "http://" + "." * 100_000, "{" * 100_000, "a.b@" * 25_000, "%" * 99_999):
        found = Protected((kind,)).spans(text)  # an error if it takes longer than PATIENCE, as what backtracks does
        assert all(span in text for span in found)
        assert sum(map(len, found)) <= len(text)


def test_each_kind_has_a_pattern() -> None:
    assert set(PATTERNS) == set(KINDS)


@given(st.text(alphabet="ab1.,{}<>%d/@: \u00a0", max_size=30), st.text(alphabet="ab1.,{}<>%d/@: ", max_size=30))
def test_what_is_kept_is_there_letter_by_letter_and_nothing_is_lost_by_a_copy(source: str, target: str) -> None:
    protected = Protected(KINDS)
    assert protected.lost(source, source) == []
    for span, kept in protected.judged(source, target):
        assert span in source
        assert not kept or span in target
    assert sum(map(len, protected.spans(source))) <= len(source)  # none within another
