"""A run that is killed in every way, at moments that nobody chose, comes to the same as one that is left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_test.py"


def test_killed_at_random_moments_a_run_comes_to_the_same() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--kills", "8", "--seed", "5"], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 kills\n" in done.stdout
    assert "no difference" in done.stdout
