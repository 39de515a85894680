"""Where a run goes on: its newest checkpoint that is whole, and what is the best so far."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from mt.checkpoint import check_model, read_state, scores_of
from mt.config.schema import ModelConfig
from mt.data.meter import Say
from mt.errors import RunError
from mt.rundir import RunDir
from mt.train.state import State


def recover(state: State, run: RunDir, model: ModelConfig, *, say: Say) -> Path | None:
    """Restore the newest whole checkpoint, telling of damaged ones; None if there is none at all.

    Raises RunError if all are damaged, or of another model.
    """
    damage: list[RunError] = []
    for path in candidates(run, say=say):
        if found := restore(state, path, model, run):
            damage.append(found)
            continue
        if damage:
            for each in damage:
                say(told(each))
            say(f"{run.path}: goes on from {path.name}, the newest checkpoint that is whole")
            run.set_names(last=path)
        state.progress.best = best_of(state, run, path)
        return path
    if damage:
        raise RunError(f"{told(damage[0])}, and there is no whole one before it; put it back, or start over with --overwrite")
    return None


def restore(state: State, path: Path, model: ModelConfig, run: RunDir) -> RunError | None:
    """Restore a checkpoint; what is wrong with it if it is damaged. Raises RunError if it is of another model than the config's."""
    try:
        saved = read_state(path)
    except RunError as damage:
        return damage
    check_model(saved, model, source=path, config=run.config)
    try:
        state.restore(path)
    except RunError as damage:
        return damage
    return None


def told(damage: RunError) -> str:
    """What is wrong, without the cure."""
    return str(damage.args[0]).split(";")[0]


def candidates(run: RunDir, *, say: Say) -> list[Path]:
    """The checkpoints to go on from: `last`, then those before it. One after it was not named yet, so it is not known how good it is."""
    try:
        last = run.names().get("last")
    except RunError as error:
        say(f"{told(error)}: which checkpoint was the best is forgotten")
        run.names_file.unlink()
        last = None
    steps = [run.step(update) for update in reversed(run.steps())]
    return steps if last is None else [run.checkpoints / last, *(path for path in steps if path.name < last)]


def newest_state(run: RunDir) -> dict[str, Any]:
    """What the newest checkpoint tells that can be read; nothing if there is none."""
    for update in reversed(run.steps()):
        with suppress(RunError):
            return read_state(run.step(update))
    return {}


def best_of(state: State, run: RunDir, path: Path) -> float | None:
    """The best score of the checkpoints that are there; None if that is forgotten: then the next validation is the best."""
    best, progress = run.names().get("best"), state.progress
    if best == run.average.name and run.average.exists():  # the run had ended, and goes on
        return scores_of(read_state(run.average)).get(progress.metric or "", progress.best)
    is_there = best is not None and (best > path.name or (run.checkpoints / best).exists())  # a later one will come again
    return progress.best if is_there else None
