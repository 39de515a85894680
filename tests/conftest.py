"""What holds for every test: no network, no traces in the user's home, no deadlines on a busy machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

HUB_CACHE = tempfile.TemporaryDirectory(prefix="mt-tests-hub-")  # removed with the process
CACHE = tempfile.TemporaryDirectory(prefix="mt-tests-cache-")

# Before anything imports `datasets`, which reads both once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = HUB_CACHE.name
# Inherited by processes that tests start.
os.environ["XDG_CACHE_HOME"] = CACHE.name
os.environ["MPLCONFIGDIR"] = f"{CACHE.name}/matplotlib"  # its settings would be looked for in the home as well

settings.register_profile("mt", settings(), deadline=None)
settings.load_profile("mt")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made, rather than found."""
    from mt.launch import inputs  # not before the environment above

    found: list[str] = []
    for name in ("make_store", "make_tokenizer"):
        work: Callable[..., None] = getattr(inputs, name)

        def noting(*args: Any, name: str = name, work: Callable[..., None] = work, **kwargs: Any) -> None:
            found.append(name.removeprefix("make_"))
            work(*args, **kwargs)

        monkeypatch.setattr(inputs, name, noting)
    return found


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No console."""
    from tests.runs import Silent

    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent())
