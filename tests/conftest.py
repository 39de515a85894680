"""What holds for every test: no network, no traces in the user's home, no deadlines on a busy machine."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

HUB_CACHE = tempfile.TemporaryDirectory(prefix="mt-tests-hub-")  # removed with the process
CACHE = tempfile.TemporaryDirectory(prefix="mt-tests-cache-")

# Before anything imports `datasets`, which reads both once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = HUB_CACHE.name
# Inherited by processes that tests start.
os.environ["XDG_CACHE_HOME"] = CACHE.name

settings.register_profile("mt", settings(), deadline=None)
settings.load_profile("mt")
