"""What the training loop tells: the console, the journal and TensorBoard listen, and every reported number is made from these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from mt.focus import Attention


@dataclass(frozen=True)
class Spent:
    """Seconds of a whole run, resumes included, by what they went to. The rest of its time goes to whoever listens."""

    model: float = 0.0
    """Forward and backward passes."""
    optimizer: float = 0.0
    """The optimiser and the moving average; a GPU may still be at it when the next pass begins, which then waits."""
    data: float = 0.0
    """Waiting for batches."""
    validation: float = 0.0
    saving: float = 0.0

    def and_also(self, **seconds: float) -> Spent:
        """With so much more."""
        return replace(self, **{name: getattr(self, name) + more for name, more in seconds.items()})

    def shares(self, seconds: float) -> dict[str, float]:
        """The part of each in all the time of the run, the largest first."""
        shares = {name: value / max(seconds, 1e-9) for name, value in vars(self).items()}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))


@dataclass(frozen=True)
class Update:
    """One update of the weights, or one that was skipped because loss or gradient was not finite."""

    update: int
    """Updates made so far, this one included unless it was skipped."""
    epoch: int
    """From 0."""
    loss: float
    """Label-smoothed cross-entropy for each target token, natural logarithm."""
    lr: float
    """The rate it was made with."""
    norm: float
    """Norm of the gradient, before clipping and without loss scale."""
    scale: float
    """Loss scale; 1 unless fp16."""
    tokens: int
    """Real target tokens, EOS counted."""
    src_tokens: int
    """Real source tokens, EOS counted."""
    padded: int
    """Places of the source and target tensors together."""
    seconds: float
    """Wall time since the update before, the loading of data included."""
    waited: float = 0.0
    """Of which for its data."""
    optimizing: float = 0.0
    """Of which for the optimiser."""
    skipped: bool = False
    """Loss or gradient was not finite; the weights are as they were."""
    origins: tuple[str, ...] = ()
    """Where the pairs of a skipped one come from, those of all ranks."""


@dataclass(frozen=True)
class Sample:
    """A dev line and what the model makes of it."""

    source: str
    reference: str
    translation: str
    to: str | None = None
    """The target language that was asked for, if there are tags."""


@dataclass(frozen=True)
class Validated:
    """One validation on the dev set."""

    update: int
    epoch: int
    loss: float
    """Cross-entropy without smoothing for each target token."""
    tokens: int
    """Target tokens the loss is over."""
    lines: int
    """Lines BLEU and chrF are over."""
    scores: dict[str, float]
    """`loss`, `bleu` and `chrf`: what early stopping may look at."""
    signatures: dict[str, str]
    """How BLEU and chrF were computed."""
    beam: int
    weights: str
    """`raw` or `ema`."""
    precision: str
    """What the model computed in."""
    best: bool
    """No validation before was better."""
    seconds: float
    samples: list[Sample] = field(default_factory=list)
    to: str | None = None
    """The target language that was asked for, if there are tags, and one dev set."""
    sets: dict[str, dict[str, float]] = field(default_factory=dict)
    """The scores of each dev set, where there are several: then those above are their means."""
    shares: dict[str, float] = field(default_factory=dict)
    """Shares of the time of the run so far, by what they went to."""
    attention: list[Attention] = field(default_factory=list)
    """What the model looked at for the first samples: to be drawn, and not in the journal."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint is on the disk."""

    update: int
    path: Path


@dataclass(frozen=True)
class Ended:
    """The run is over, for this reason."""

    update: int
    reason: str
    skipped: int
    """Updates skipped in the whole run."""
    epochs: int
    """Whole passes over the data."""
    seconds: float
    """Wall time of the whole run, resumes included."""
    shares: dict[str, float] = field(default_factory=dict)
    """Shares of it, by what they went to."""


Event = Update | Validated | Saved | Ended
