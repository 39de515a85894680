"""How mt is installed; what not everybody needs is not installed along with it, and how it is had then."""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, requires
from urllib.parse import urlparse
from urllib.request import url2pathname

PROJECT = "mt-trainer"
"""As `pyproject.toml` calls it."""

CONSTRAINTS = "constraints.txt"
"""The versions that were tested, in the folder of the project."""
ACTIVATE = "source .venv/bin/activate"
INSTALL = f"pip install -c {CONSTRAINTS} '.[export,serve]'"
"""As README.md has both."""


def install(extra: str, *, tested: bool = True) -> str:
    """The command that installs the libraries of an extra: by their names, so that it does not matter where mt itself came from.

    `tested`: in the versions that were tested, as far as they are at hand.
    """
    wanted: list[str] = []
    with suppress(PackageNotFoundError):  # a checkout that was not installed
        wanted = [name for one in requires(PROJECT) or () for name in re.findall(rf"(.*?)\s*;.*\bextra == ['\"]{extra}['\"]", one)]
    constraints = (_constraints() if wanted else CONSTRAINTS) if tested else None
    names = " ".join(f"'{name}'" for name in wanted) or f"'.[{extra}]' in the folder of pyproject.toml"
    return f"pip install {f'-c {shlex.quote(constraints)} ' if constraints else ''}{names}"


def _constraints() -> str | None:
    """The file with the versions that were tested, where mt was installed from a folder that is still there."""
    origin = json.loads(distribution(PROJECT).read_text("direct_url.json") or "{}").get("url", "")
    file = os.path.join(url2pathname(urlparse(origin).path), CONSTRAINTS)
    return file if origin and os.path.isfile(file) else None
