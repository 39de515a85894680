"""What a run is at: training, finished, stopped, killed or failed, told by its lock and the end of its journal."""

from __future__ import annotations

from typing import NamedTuple

from mt.report.history import History
from mt.rundir import RunDir


class State(NamedTuple):
    """What a run is at, in a word, and with the reason."""

    name: str
    told: str


def state_of(run: RunDir, history: History) -> State:
    """By what the journal ends with, and by its lock, which a process that was killed leaves behind."""
    why = str(history.ended.get("reason", "")) if history.ended else None
    if why not in (None, "interrupted"):
        return State("finished", f"finished: {why}")
    if run.is_locked():
        return State("training", "training")
    if why:
        return State("stopped", "stopped, to go on with --resume")
    if run.lock_file.exists():
        return State("killed", "killed, to go on with --resume")
    if not history.rows:
        return State("prepared", "prepared, not trained")
    return State("failed", "ended by an error")


def duration(seconds: float) -> str:
    """Short: `45 s`, `12 min`, `3 h 05 min`, `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
