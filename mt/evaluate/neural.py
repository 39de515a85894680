"""COMET and COMET-Kiwi (Rei et al. 2020, 2022), by the package unbabel-comet, which is the extra `eval-neural`.

A neural model reads the source, the translation and, but for Kiwi, the reference. Its weights are a checkpoint on this machine, or are
fetched by their name from the Hugging Face hub.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.significance import estimate_ci

from mt.errors import ConfigError
from mt.evaluate.metrics import BOOTSTRAP_SAMPLES, BOOTSTRAP_SEED, MetricScore
from mt.extras import install

MODELS = {"comet": "Unbabel/wmt22-comet-da", "comet-kiwi": "Unbabel/wmt22-cometkiwi-da"}
"""The model of each metric unless another is named."""
BATCH = 16


def require(key: str, *, sources: bool) -> None:
    """Raise ConfigError where a neural metric cannot be had."""
    if not sources:
        raise ConfigError(f"the metric {key} reads the source text, too: add --src FILE")
    if find_spec("comet") is None:
        where = "in an environment of its own (docs/evaluation.md)"
        raise ConfigError(f"the metric {key} needs the package unbabel-comet, {where}: {install('eval-neural', tested=False)}")


def neural_score(
    key: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str], *, model: str | None = None
) -> MetricScore:
    """The score of `key` (comet or comet-kiwi) with a 95 % bootstrap interval; `model` is a checkpoint or a name on the hub.

    With several references a line has the mean of its scores with each. Raises ConfigError where the model cannot be loaded.
    """
    name = model or MODELS[key]
    judge = judge_of(name)
    sets = [None] if key == "comet-kiwi" else references
    lines = np.mean([judge.scores(hypotheses, reference, sources) for reference in sets], axis=0)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    means = np.array([lines[rng.choice(len(lines), size=len(lines))].mean() for _ in range(BOOTSTRAP_SAMPLES)])
    centre, half_width = map(float, estimate_ci(means))
    drawn = f"bs:{BOOTSTRAP_SAMPLES}|seed:{BOOTSTRAP_SEED}"
    signature = f"model:{name}|nrefs:{0 if key == 'comet-kiwi' else len(references)}|{drawn}|unbabel-comet:{_version()}"
    return MetricScore(
        key, "COMET-Kiwi" if key == "comet-kiwi" else "COMET", float(lines.mean()), signature, (centre - half_width, centre + half_width)
    )


class Judge:
    """A model that scores translations."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def scores(self, hypotheses: Sequence[str], reference: Sequence[str] | None, sources: Sequence[str]) -> list[float]:
        """The score of each line."""
        data = [{"src": source, "mt": hypothesis} for source, hypothesis in zip(sources, hypotheses, strict=True)]
        if reference is not None:
            data = [{**one, "ref": line} for one, line in zip(data, reference, strict=True)]
        return [float(one) for one in self._model.predict(data, batch_size=BATCH, gpus=0, progress_bar=False)["scores"]]


@functools.lru_cache(maxsize=1)
def judge_of(name: str) -> Judge:
    """The model in a checkpoint, or of that name on the hub; loaded once. Raises ConfigError where it cannot be."""
    import comet

    try:
        return Judge(comet.load_from_checkpoint(name if Path(name).exists() else comet.download_model(name)))
    except (OSError, KeyError, ValueError, RuntimeError) as problem:
        reason = " ".join(str(problem).split())
        raise ConfigError(f"the model {name} cannot be loaded ({reason}); give a checkpoint: --comet-model FILE.ckpt") from problem


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("unbabel-comet")
    except PackageNotFoundError:
        return "unknown"
