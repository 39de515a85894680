"""The mean of several checkpoints of a run, kept as one of its checkpoints: at the end of a training, or later, for `mt average`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mt.checkpoint import Weights, check_model, due, load_weights, ranked, read_state, read_weights, save_checkpoint, scores_of
from mt.config.load import load
from mt.data.meter import Say
from mt.errors import DataError, RunError
from mt.launch.holdout import at_home
from mt.launch.prepare import Prepared
from mt.launch.sources import read_dev
from mt.model.device import choose_device
from mt.model.loss import build_loss
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.tokenizer.of_run import check_fingerprints, load_tokenizers
from mt.train.average import mean
from mt.train.validate import Validators, better

# ── at the end of a training ────────────────────────────────────────────────────────────────────────────────────────


def average_at_the_end(prepared: Prepared, *, say: Say) -> None:
    """Keep the mean that the config asks for as the checkpoint `average`; it becomes the best if it validates better."""
    cfg, run, state = prepared.config.train, prepared.run, prepared.state
    steps = sorted({*due(run.steps(), every=prepared.plan.save_every), state.progress.update})
    if cfg.average.best:
        named = [update for update in run.steps() if run.step(update).name == run.names().get("best")]
        steps = sorted(the_best(run, sorted({*steps, *named}), cfg.average.best, metric=cfg.early_stopping.metric))
    weights, names = mean_of(run, [run.step(update) for update in steps[-(cfg.average.last or cfg.average.best) :]], state.model)
    say(f"average: the mean of {', '.join(names)}")
    scores: dict[str, float] = {}
    if prepared.validator:
        scores = prepared.validator(state.loss).scores
        say(f"average: {shown(scores)}")
    metric = cfg.early_stopping.metric
    wins = bool(scores) and better(metric, scores[metric], state.progress.best)
    if run.names().get("best") == run.average.name and not wins:
        say("average: no better than the one of an earlier end, which stays")
        return
    save_checkpoint(run.average, weights=weights, state={**state.origin, "average_of": names, "scores": scores})
    if wins:
        run.set_names(best=run.average)


def the_best(run: RunDir, steps: Sequence[int], count: int, *, metric: str) -> list[int]:
    """The best of these checkpoints by a metric, best first. Raises RunError if it is known of none how good it is."""
    found = ranked(run, steps, metric)[:count]
    if not found:
        raise RunError(f"{run.path}: no checkpoint that is kept has a score, so none is the best; average the last ones")
    return found


def mean_of(run: RunDir, paths: Sequence[Path], model: Transformer, which: Weights | None = None) -> tuple[dict[str, Any], list[str]]:
    """The mean of checkpoints' weights, which are the moving averages where the run has them, and the names of these checkpoints.

    The model has the mean afterwards. Raises RunError for a checkpoint that does not fit into it.
    """
    weights = []
    for path in paths:
        weights.append(read_weights(path, which))
        load_weights(model, weights[-1], source=path)
    averaged = mean(weights)
    load_weights(model, averaged, source=run.checkpoints)
    return averaged, [path.relative_to(run.checkpoints).as_posix() for path in paths]


def shown(scores: dict[str, float]) -> str:
    """Scores of a dev set in a line."""
    return f"loss {scores['loss']:.3f}, BLEU {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}"


# ── of a run that is there ──────────────────────────────────────────────────────────────────────────────────────────


def average_run(
    path: Path,
    *,
    last: int | None,
    best: int | None,
    checkpoints: Sequence[str],
    output: str,
    weights: Weights | None,
    device: str,
    say: Say,
) -> None:
    """Keep the mean of some checkpoints of a run as its checkpoint `output`, and say how it and the best do on the dev set.

    They are the newest (`last`), those that validated best (`best`), or named ones. Raises RunError where that cannot be.
    """
    run = RunDir(path)
    run.find("last")
    config = at_home(load(run.config).config, run)
    into = place_of(run, output)
    if last:
        paths = [run.step(update) for update in run.steps()[-last:]]
    elif best:
        paths = [run.step(update) for update in sorted(the_best(run, run.steps(), best, metric=config.train.early_stopping.metric))]
    else:
        paths = list(dict.fromkeys(map(run.find, checkpoints)))
    if len(paths) < (asked := last or best or 1):
        say(f"{run.path}: only {len(paths)} of {asked} checkpoints are there (train.keep, and train.average.best, say how many stay)")
    if into in paths:
        raise RunError(f"{run.path}: {output} cannot be the mean of itself and others; give another --output")
    tokenizers = load_tokenizers(run, joint=config.tokenizer.joint)
    states = [read_state(one) for one in paths]
    for one, state in zip(paths, states, strict=True):
        check_fingerprints(state, tokenizers, source=one)
        check_model(state, config.model, source=one, config=run.config)
    where = choose_device(device)
    model = Transformer.build(config.model, src_vocab=tokenizers.src.size, tgt_vocab=tokenizers.tgt.size, joint=tokenizers.joint)
    averaged, names = mean_of(run, paths, model, weights)
    say(f"{output}: the mean of {', '.join(names)}")
    scores: dict[str, float] = {}
    try:
        dev = read_dev(config)
    except DataError as error:
        say(f"{output}: not scored, {error}")
        dev = {}
    if dev:
        loss = build_loss(model.to(where), config.train, pad=tokenizers.tgt.pad)
        scores = Validators.build(dev, tokenizers, config=config, device=where)(loss).scores
        if before := scores_of(read_state(run.find("best"))) if "best" in run.names() else {}:
            say(f"best: {shown(before)} ({run.names()['best']})")
        say(f"{output}: {shown(scores)}")
    about = {key: value for key, value in states[0].items() if key in ("tokenizers", "model", "micro_batches")}
    save_checkpoint(into, weights=averaged, state={**about, "average_of": names, "scores": scores})


def place_of(run: RunDir, name: str) -> Path:
    """Where a checkpoint of this name is to be. Raises RunError for a name that another has, or that none can have."""
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_-]{0,99}", name) or name in ("best", "last") or name.startswith("step-"):
        raise RunError(
            f"--output {name}: give a name of letters, digits, - and _, 100 at most, such as average, and not best, last or step-…"
        )
    into = run.checkpoints / name
    if name in run.names().values():
        which = json.dumps([alias for alias, folder in run.names().items() if folder == name])[1:-1]
        raise RunError(f"--output {name}: is what {which} of {run.path} stands for; give another name")
    return into
