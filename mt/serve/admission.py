"""What the command line says of who may ask: keys, web sites, names; each as requests show it, or refused with the cure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from mt.errors import MTError

KEY = re.compile("[!-~]+")
"""ASCII without spaces: a header holds nothing else for sure."""
KEY_VARIABLE = "MT_API_KEY"
NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
USUAL_PORTS = {"http": 80, "https": 443}
"""Browsers leave these out."""


def keys_in(path: Path | None, variable: str | None) -> list[str]:
    """The keys in a file, one a line (# begins a comment), and that of the variable. Raises MTError where one has none, or what is none."""
    keys = {} if variable is None else {KEY_VARIABLE: variable.strip()}
    if variable is not None and not variable.strip():
        raise MTError(f"{KEY_VARIABLE}: is empty; unset it, or give it a key")
    if path:
        try:
            lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n")]
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not UTF-8"
            raise MTError(f"--api-key-file {path}: cannot be read ({reason.lower()})") from None
        found = {f"--api-key-file {path}:{number}": line for number, line in enumerate(lines, 1) if line and not line.startswith("#")}
        if not found:
            raise MTError(f"--api-key-file {path}: has no key; write one a line")
        keys |= found
    for where, key in keys.items():
        if not KEY.fullmatch(key):
            raise MTError(f"{where}: a key is made of ASCII characters without spaces, for it stands in a header")
    return list(keys.values())


def origins_in(given: Iterable[str]) -> list[str]:
    """Web sites as browsers name them. Raises MTError for what is none."""
    return [_origin(one) for one in given]


def _origin(given: str) -> str:
    if given.strip().lower() == "null":
        raise MTError(
            "--cors null: any site can have its pages ask as null; open yours over HTTP (python -m http.server 8080), "
            "and give its address: --cors http://localhost:8080"
        )
    parts, host = urlsplit(""), ""
    with suppress(ValueError):  # of a port, of brackets, of letters
        parts = urlsplit(given.strip())
        host = _name(parts.hostname or "") if parts.port != 0 else ""
    if not (host and parts.scheme) or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise MTError(f"--cors {given}: give a web site without a path, such as https://example.org")
    port = "" if parts.port in (None, USUAL_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def hosts_in(given: Iterable[str]) -> list[str]:
    """Names by which a server may be called. Raises MTError for what is none."""
    names = {one: _name(one.strip().strip("[]")) for one in given}
    for one, name in names.items():
        if not name:
            raise MTError(f"--allowed-host {one}: give a name alone, without http:// and port, such as mt.example.org")
    return list(names.values())


def _name(given: str) -> str:
    """A name or an address as a request has it; empty for what is none."""
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        pass
    try:
        name = given.lower().encode("idna").decode()
    except UnicodeError:
        return ""
    return name if NAME.fullmatch(name) else ""
