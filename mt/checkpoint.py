"""Checkpoints: a directory for each step, written beside, synced and renamed, so that it exists whole or not at all.

model.safetensors   the weights (tied ones once)
ema.safetensors     their moving average, if there is one
state.json          counters, position in the data, best score; human-readable
trainer.pt          optimiser, scaler and generator states: tensors and plain values, read with weights_only=True
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mt.config.schema import ModelConfig
from mt.errors import RunError
from mt.files import NO_ROOM, sync
from mt.rundir import OLD, PARTIAL, RunDir, read_object

FORMAT = 1
"""Version of the layout above; a reader refuses a newer one."""

TRAINING_ONLY = {"dropout", "attention_dropout", "activation_dropout", "word_dropout", "gradient_checkpointing"}
"""Settings of the model that its translations do not depend on."""

ANOTHER = "put it back, or remove this checkpoint and let the names in names.json stand for another"
"""The cure for a checkpoint that is not whole."""

Weights = Literal["raw", "ema"]


def save_checkpoint(
    path: Path, *, weights: Mapping[str, Tensor], ema: Mapping[str, Tensor] | None = None, state: Mapping[str, Any], trainer: Any = None
) -> None:
    """Write a checkpoint, whole or not at all. Raises RunError if the disk refuses; then nothing has changed."""
    partial, old = path.with_name(path.name + PARTIAL), path.with_name(path.name + OLD)
    try:
        for left in (partial, old):
            shutil.rmtree(left, ignore_errors=True)
        partial.mkdir(parents=True)
        save_file(contiguous(weights), partial / "model.safetensors")
        if ema is not None:
            save_file(contiguous(ema), partial / "ema.safetensors")
        if trainer is not None:
            torch.save(trainer, partial / "trainer.pt")
        (partial / "state.json").write_text(json.dumps({"format": FORMAT, **state}, indent=1) + "\n", encoding="utf-8", newline="\n")
        for file in (*partial.iterdir(), partial):
            sync(file)
        if path.exists():
            path.rename(old)
        partial.rename(path)
        sync(path.parent)
    except (OSError, RuntimeError, SafetensorError) as error:  # a full disk is an OSError to neither torch nor safetensors
        cure = "the checkpoints before it are whole: make room, then go on with --resume"
        if isinstance(error, OSError) and error.errno not in NO_ROOM:
            cure = f"is {path.parent} a folder of yours?"
        reason = getattr(error, "strerror", None) or f"is the disk full? {(str(error) or type(error).__name__).splitlines()[0]}"
        raise RunError(f"{path}: cannot be saved ({reason}); {cure}") from error
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        for left in (partial, old):
            shutil.rmtree(left, ignore_errors=True)


def contiguous(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What safetensors stores: detached, on the CPU, each tensor by itself."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}


def rotate(run: RunDir, *, keep: int, every: int, best: int = 0, metric: str = "bleu") -> None:
    """Delete all checkpoints but the newest `keep` and the `best` best of those due `every` so many updates; what has a name stays.

    One that was not due, such as that of an interrupt, is gone when the next is there: so the same stay as without the interrupt.
    """
    candidates = due(run.steps(), every=every)
    stay = {*candidates[-keep:], *(ranked(run, candidates, metric)[:best] if best else ())}
    kept = {run.step(update).name for update in stay} | set(run.names().values())
    for path in map(run.step, run.steps()):
        if path.name not in kept:
            remove(path)


def remove(path: Path) -> None:
    """Delete a checkpoint: also when that is interrupted, no part of it is taken for one. Raises RunError if the disk refuses."""
    going = path.with_name(path.name + PARTIAL)
    try:
        path.rename(going)
        shutil.rmtree(going)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RunError(f"{path}: cannot be removed ({reason}); remove it yourself, then go on with --resume") from error


def due(steps: Sequence[int], *, every: int) -> list[int]:
    """The checkpoints that a run saves whether it is interrupted or not: each multiple of `every`."""
    return [update for update in steps if update % every == 0]


def ranked(run: RunDir, steps: Sequence[int], metric: str) -> list[int]:
    """Those of these checkpoints that were validated, the best by this metric first, of equals the earlier; damaged ones are left out."""
    scores: dict[int, float] = {}
    for update in sorted(steps):
        with suppress(RunError):
            found = scores_of(read_state(run.step(update))).get(metric, math.nan)
            scores |= {} if math.isnan(found) else {update: found}
    return sorted(scores, key=lambda update: scores[update] if metric == "loss" else -scores[update])


def scores_of(state: Mapping[str, Any]) -> dict[str, float]:
    """What the validation of a checkpoint found, by metric; nothing if it had none, is from before that was noted, or is damaged."""
    progress = state.get("progress")
    found = state.get("scores") or (progress.get("scores") if isinstance(progress, dict) else None)
    return {name: score for name, score in found.items() if isinstance(score, int | float)} if isinstance(found, dict) else {}


def read_state(path: Path) -> dict[str, Any]:
    """The state.json of a checkpoint. Raises RunError if it is missing, or of a version this program does not know."""
    state = read_object(path / "state.json", cure=ANOTHER)
    if not isinstance(state.get("format"), int):
        raise RunError(f"{path / 'state.json'}: is damaged; {ANOTHER}")
    if state["format"] != FORMAT:
        raise RunError(f"{path}: written in format {state.get('format')}, this version of mt reads format {FORMAT}; update mt")
    return state


def check_model(state: Mapping[str, Any], model: ModelConfig, *, source: Path, config: Path) -> None:
    """Raise RunError if the config asks for another model than the checkpoint is of; what matters in training alone may differ."""
    before = state.get("model", {})  # those written before it was noted have none
    if not isinstance(before, dict):
        raise RunError(f"{source / 'state.json'}: is damaged (its model is no object); put the original back, or take another checkpoint")
    known = {**ModelConfig().model_dump(mode="json"), **before} if before else {}  # a setting that came later was at its default
    for key, value in model.model_dump(mode="json", exclude=TRAINING_ONLY).items():
        if known.get(key, value) != value:
            raise RunError(f"{config}: model.{key} is {value}, but {source.name} was trained with {known[key]}; set it back")


def weights_file(path: Path, which: Weights | None = None) -> Path:
    """Where the weights of a checkpoint are: raw or ema; None is ema where there is one. Raises RunError where there is none."""
    ema = path / "ema.safetensors"
    if which == "ema" and not ema.exists():
        raise RunError(f"{path}: has no moving average (train.ema was 0); use --weights raw")
    return ema if which == "ema" or (which is None and ema.exists()) else path / "model.safetensors"


def read_weights(path: Path, which: Weights | None = None) -> dict[str, Tensor]:
    """The weights of a checkpoint: raw or ema; None is ema where there is one. Raises RunError if they are missing or broken."""
    file = weights_file(path, which)
    try:
        return load_file(file)
    except Exception as error:  # safetensors raises its own kinds, which say little about the file
        raise RunError(f"{file}: cannot be read ({error}); {ANOTHER}") from None


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: Path) -> None:
    """Copy weights into a model. Raises RunError naming what does not fit."""
    own = dict(model.named_parameters())
    if own.keys() != weights.keys():
        raise RunError(f"{source}: other parameters than this model has: {', '.join(sorted(own.keys() ^ weights.keys())[:4])} …")
    for name, parameter in own.items():
        if parameter.shape != weights[name].shape:
            raise RunError(f"{source}: {name} is {list(weights[name].shape)}, this model's is {list(parameter.shape)}")
        with torch.no_grad():
            parameter.copy_(weights[name])


def read_trainer(path: Path) -> Any:
    """Optimiser, scaler and generator states. Raises RunError if they are missing, broken or no plain values."""
    file = path / "trainer.pt"
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # zip, pickle and torch each raise their own kinds
        raise RunError(f"{file}: cannot be read ({type(error).__name__}), so the run cannot go on from here; {ANOTHER}") from None
