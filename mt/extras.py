"""What not everybody needs is not installed along with mt; how it is had then."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires

PROJECT = "mt-trainer"
"""As `pyproject.toml` calls it."""


def install(extra: str) -> str:
    """The command that installs the libraries of an extra: by their names, so that it does not matter where mt itself came from."""
    wanted: list[str] = []
    with suppress(PackageNotFoundError):  # a checkout that was not installed
        wanted = [name for one in requires(PROJECT) or () for name in re.findall(rf"(.*?)\s*;.*\bextra == ['\"]{extra}['\"]", one)]
    names = " ".join(f"'{name}'" for name in wanted) or f"'.[{extra}]' in the folder of pyproject.toml"
    return f"pip install {names}"
