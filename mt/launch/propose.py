"""From what a corpus is like, and how fast this machine trains on it, to a config with the reason for each choice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from mt.config.load import load
from mt.config.presets import (
    MOST_PASSES,
    Preset,
    dropout_for,
    ema_for,
    preset_for,
    vocabulary_for,
    warmup_for,
)
from mt.data.meter import Say
from mt.formats.pairs import counted
from mt.launch.look import Look
from mt.launch.prepare import prepare
from mt.launch.rehearsal import rehearse, validation_seconds
from mt.model.device import fastest
from mt.train.forecast import duration
from mt.train.memory import memory_of

ENOUGH = 20_000
"""Pairs, the first ones of a larger corpus, that are enough to tell how fast training is."""
USED = 0.95
"""Of the minutes that are given: how fast it is, is an estimate."""
JUDGING = 0.08
"""Of them, for validations."""
FEWEST, MOST = 4, 20
"""Validations of a run."""
FEW_PASSES = 3
"""Below, the end of a run is given in updates."""


class Setting(NamedTuple):
    """A line of a config."""

    key: str
    value: str
    """As YAML."""
    why: str


@dataclass(frozen=True)
class Pace:
    """What training takes here, as measured."""

    update: float
    """Seconds of one."""
    per_epoch: float
    """Updates."""
    validation: float
    """Seconds of one, of all lines of the dev set; 0 without one."""
    speed: float
    """Target tokens a second."""


@dataclass(frozen=True)
class Proposal:
    """A config to be written."""

    preset: Preset
    sections: dict[str, list[Setting]]
    seconds: float
    """It will take about so long."""


def measured(draft: str, look: Look, *, device: str, say: Say) -> Pace:
    """How fast training by the text of a config is, by some updates; what was prepared for it stays in the cache."""
    overrides = [f"data.train.0.max_pairs={ENOUGH}"] if look.pairs > ENOUGH else []
    with TemporaryDirectory() as folder:
        run, file = Path(folder, "run"), Path(folder, "draft.yaml")
        run.mkdir()
        file.write_text(draft, encoding="utf-8")
        config = load(file, [*overrides, f"run_dir={json.dumps(str(run))}"]).config
        say("measuring: some updates, and a part of a validation, whose weights are thrown away")
        prepared = prepare(config, device=device, say=lambda _: None)
        assert prepared.validator
        validation = validation_seconds(prepared.validator, prepared.state, prepared.config)
        found = rehearse(prepared.state, prepared.data, prepared.config, prepared.plan, micro_batches=prepared.micro_batches)
    more = look.pairs / min(look.pairs, ENOUGH)
    return Pace(found.seconds, prepared.updates_per_epoch * more, validation, found.per_second)


@dataclass(frozen=True)
class Course:
    """How long a run is, and how often it is validated."""

    updates: int
    passes: float
    validations: int
    seconds: float
    """All of it."""


def course_of(preset: Preset, pace: Pace, minutes: float | None) -> Course:
    """What fits into the minutes, or what the preset has."""
    seconds = minutes * 60 * USED if minutes else preset.passes * pace.per_epoch * pace.update
    validations = int(max(FEWEST, min(MOST, JUDGING * seconds / max(pace.validation, 0.01))))
    judging = validations * pace.validation
    passes = min(MOST_PASSES, (seconds - judging if minutes else seconds) / pace.update / pace.per_epoch)
    passes = max(passes, 1 / pace.per_epoch)
    passes = int(passes) if passes >= FEW_PASSES else passes
    updates = max(1, int(passes * pace.per_epoch))
    return Course(updates, passes, validations, updates * pace.update + judging)


def propose(look: Look, *, device: torch.device, minutes: float | None, pace: Pace | None = None) -> Proposal:
    """Settings for a corpus; `pace` None: provisional ones, as fast as those that come of it."""
    preset = preset_for(look.pairs, gpu=device.type == "cuda")
    course = course_of(preset, pace or Pace(0.2, look.pairs / 60, 5.0, 0.0), minutes)
    vocabulary = vocabulary_for(look.pairs, alphabet=look.alphabet)
    sections = {
        "tokenizer": [Setting("vocab_size", str(vocabulary), vocabulary_why(look, vocabulary))],
        "model": list(model_settings(preset, course)),
        "train": [*end_settings(course, minutes, pace), *train_settings(preset, course, pace, device)],
    }
    return Proposal(preset, sections, course.seconds)


def model_settings(preset: Preset, course: Course) -> Iterator[Setting]:
    """The model."""
    yield Setting("dim", str(preset.dim), f"preset {preset.name}")
    yield Setting("ffn", str(preset.ffn), "four times as wide, as in the paper")
    yield Setting("heads", str(preset.heads), f"of {preset.dim // preset.heads} numbers each")
    yield Setting("encoder_layers", str(preset.layers), "more of them need more pairs, and more time")
    yield Setting("decoder_layers", str(preset.layers), "as many")
    seen = f"each pair is seen {counted(max(1, round(course.passes)), 'time')}"
    yield Setting("dropout", f"{dropout_for(course.passes):g}", f"{seen}: the more often, the more dropout")


def end_settings(course: Course, minutes: float | None, pace: Pace | None) -> Iterator[Setting]:
    """When the run ends."""
    each = pace.per_epoch * pace.update if pace else 0
    speed = f"{pace.speed:.0f} target tokens a second, as measured here" if pace else ""
    if course.passes >= FEW_PASSES:
        yield Setting("max_epochs", f"{course.passes:.0f}", f"passes over the corpus, {duration(each)} each at {speed}")
    else:
        yield Setting("max_updates", str(course.updates), f"{course.passes:.2g} of a pass over the corpus, at {speed}")
    if minutes:
        yield Setting("max_minutes", f"{minutes:g}", "the most it may take, whatever the estimate says")


def train_settings(preset: Preset, course: Course, pace: Pace | None, device: torch.device) -> Iterator[Setting]:
    """How it is trained."""
    tokens, steps = tokens_of(preset, device)
    small = "small batches make more updates in the same time" if preset.name == "tiny" else "padding included"
    yield Setting("batch_tokens", str(tokens), small)
    if steps > 1:
        yield Setting("accumulate", str(steps), f"batches an update, {preset.tokens} tokens together: more at once do not fit this GPU")
    yield Setting("optimizer", f"{{lr: {preset.lr:g}}}", "goes with batches of this size; halve it if the loss rises again")
    falls = f"falls to nothing at the end, which is update {course.updates} or so"
    yield Setting("schedule", f"{{kind: cosine, warmup: {warmup_for(course.updates)}}}", falls)
    yield Setting("label_smoothing", "0.1", "keeps the model from being too sure of what it has seen")
    yield Setting("ema", f"{ema_for(course.updates):g}", "the moving average of the weights is what is validated and used")
    every = -(-course.updates // course.validations)
    took = f", {pace.validation:.1f} seconds each" if pace else ""
    yield Setting("validation", f"{{every: {every}}}", f"updates: {counted(course.validations, 'validation')} in all{took}")


def vocabulary_why(look: Look, size: int) -> str:
    """Why it has this size."""
    if size == 2 * look.alphabet // 1000 * 1000:
        return f"pieces: {look.alphabet} characters, and as many that are longer"
    return "pieces for both sides: few pairs show long pieces too rarely" if size <= 4000 else "pieces for both sides"


def tokens_of(preset: Preset, device: torch.device) -> tuple[int, int]:
    """Tokens of a batch, and batches of an update, that fit into memory: some 100 bytes for each number of a layer."""
    room = memory_of(device) if device.type == "cuda" else None
    needed = preset.tokens * preset.dim * preset.layers * 100
    steps = 1
    while room and needed / steps > room / 2:
        steps *= 2
    return preset.tokens // steps, steps


def where(device: torch.device) -> str:
    """What trains, in words."""
    if device.type == "cuda":
        return f"trained on {torch.cuda.get_device_name(device)}"
    threads = counted(torch.get_num_threads(), "thread")
    return f"trained on {threads} of a CPU in {fastest(device)}" if device.type == "cpu" else f"trained on {device.type}"
