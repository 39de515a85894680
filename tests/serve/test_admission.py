"""What the command line says of who may ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt.errors import MTError
from mt.serve.admission import hosts_in, keys_in, origins_in


def test_keys_are_lines_and_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes("\ufeffone\r\n# a comment\r\n\r\n two\r\n".encode())
    assert keys_in(file, "three") == ["three", "one", "two"]
    assert keys_in(None, None) == []


@pytest.mark.parametrize("key", ["two words", "schlüssel", "a\tb", "a\x00b"])
def test_a_key_that_no_header_holds_is_refused(tmp_path: Path, key: str) -> None:
    file = tmp_path / "keys"
    file.write_text(f"fine\n{key}\n", encoding="utf-8")
    with pytest.raises(MTError, match=r"keys:2: a key is made of ASCII") as refused:
        keys_in(file, None)
    assert key not in str(refused.value)
    with pytest.raises(MTError, match="MT_API_KEY"):
        keys_in(None, key)


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://example.org", "https://example.org"),
        ("HTTPS://Example.org/", "https://example.org"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://example.org:80", "http://example.org"),
        ("https://example.org:443/", "https://example.org"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("app://obsidian.md", "app://obsidian.md"),
    ],
)
def test_sites_are_named_as_browsers_do(given: str, origin: str) -> None:
    assert origins_in([given]) == [origin]


@pytest.mark.parametrize(
    "given", ["*", "null", "", "example.org", "https://example.org/page", "https://*.example.org", "http://a:x", "http://["]
)
def test_what_is_no_site_is_told_in_a_line(given: str) -> None:
    with pytest.raises(MTError, match=r"^--cors .*such as|^--cors null.*: --cors http"):
        origins_in([given])


@pytest.mark.parametrize(
    ("given", "name"), [("MT.example.org", "mt.example.org"), ("[::1]", "::1"), ("bücher.example", "xn--bcher-kva.example")]
)
def test_names_are_as_requests_have_them(given: str, name: str) -> None:
    assert hosts_in([given]) == [name]


@pytest.mark.parametrize("given", ["mt.example.org:8000", "http://mt.example.org", "*", "a b", "", ".example.org"])
def test_what_is_no_name_is_told_in_a_line(given: str) -> None:
    with pytest.raises(MTError, match=r"^--allowed-host .*such as"):
        hosts_in([given])
