"""Where a run was made: versions, device, commit. A line is added each time it starts or goes on."""

from __future__ import annotations

import json
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import mt
from mt.rundir import RunDir

LIBRARIES = "torch", "sentencepiece", "sacrebleu", "datasets", "numpy"


def record(run: RunDir, **more: Any) -> None:
    """Add what is so now, and `more`, to what the run keeps. Raises OSError where that cannot be written."""
    line = json.dumps({**here(), **more}, ensure_ascii=False)
    with run.starts.open("a", encoding="utf-8", newline="\n") as file:
        file.write(f"{line}\n")


def recorded(run: RunDir) -> list[dict[str, Any]]:
    """Each start, the first one first; what cannot be read is left out."""
    try:
        lines = run.starts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def here() -> dict[str, Any]:
    """Time, versions and machine."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "mt": mt.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
        "system": platform.platform(terse=True),
        "processor": processor(),
    }


def device_name(device: torch.device) -> str:
    """What computes, by its maker's name."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)} (CUDA {torch.version.cuda})"
    return device.type


def processor() -> str:
    """The processor's name where the system tells it, else its kind."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str | None:
    """The commit this program is at, `+` where its files were changed since; None where it was installed and is no checkout."""
    package = Path(mt.__file__).parent
    try:
        if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:  # another repository, that it is installed within
            return None
        head, changes = _git(package, "rev-parse", "HEAD"), _git(package, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return None
    return head and f"{head[:12]}{'+' if changes else ''}"


def _git(folder: Path, *words: str) -> str | None:
    command = ["git", "-C", str(folder), "--no-optional-locks", *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=10)
    return done.stdout.strip() if done.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
