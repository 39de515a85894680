"""Settings of the training loop: optimizer, learning rate, limits, checkpoints, validation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from mt.config.stage import MAX_BEAM, Auto, Contradiction, Count, Fraction, Stage, auto_tag, clash, kind_tag

Frozen = Literal["encoder", "decoder", "embeddings"]


class OptimizerConfig(Stage):
    """AdamW (Loshchilov & Hutter 2019, https://arxiv.org/abs/1711.05101)."""

    lr: float = Field(default=1e-3, gt=0, le=1000)
    """Peak learning rate, reached after the warm-up."""
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    """Decay of the two moments."""
    eps: float = Field(default=1e-9, ge=1e-12)
    """Added to the denominator."""
    weight_decay: float = Field(default=1e-4, ge=0, le=10)
    """Decoupled; not on biases and norms."""
    decay_embeddings: bool = True
    """Whether the weights of the embeddings decay as well, those of a tied output layer with them."""


class InverseSqrt(Stage):
    """Linear warm-up to lr, then lr · √(warmup / update)."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    """Which curve."""
    warmup: Count | None = None
    """Updates; left out: a tenth of the run's, at most 1000 (which it is where only max_minutes is given)."""


class Noam(Stage):
    """The original: factor · dim^-0.5 · min(update^-0.5, update · warmup^-1.5) (Vaswani et al. 2017, eq. 3); has no lr of its own."""

    kind: Literal["noam"]
    """Which curve."""
    warmup: Count | None = None
    """Updates; left out: a tenth of the run's, at most 1000 (which it is where only max_minutes is given)."""
    factor: float = Field(default=1.0, gt=0)
    """Scales the whole curve."""


class Cosine(Stage):
    """Linear warm-up to lr, then half a cosine down to floor · lr at the last update."""

    kind: Literal["cosine"]
    """Which curve."""
    warmup: Count | None = None
    """Updates; left out: a tenth of the run's, at most 1000 (which it is where only max_minutes is given)."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """Share of lr left at the end."""


class Linear(Stage):
    """Linear warm-up to lr, then a straight line down to floor · lr at the last update."""

    kind: Literal["linear"]
    """Which curve."""
    warmup: Count | None = None
    """Updates; left out: a tenth of the run's, at most 1000 (which it is where only max_minutes is given)."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """Share of lr left at the end."""


class Constant(Stage):
    """Linear warm-up to lr, then lr."""

    kind: Literal["constant"]
    """Which curve."""
    warmup: Count | None = None
    """Updates; left out: a tenth of the run's, at most 1000 (which it is where only max_minutes is given)."""


def _schedule_kind(value: Any) -> str:
    kind = value.get("kind", "inverse_sqrt") if isinstance(value, dict) else getattr(value, "kind", "inverse_sqrt")
    return kind_tag(kind)


Schedule = Annotated[
    Annotated[InverseSqrt, Tag(kind_tag("inverse_sqrt"))]
    | Annotated[Noam, Tag(kind_tag("noam"))]
    | Annotated[Cosine, Tag(kind_tag("cosine"))]
    | Annotated[Linear, Tag(kind_tag("linear"))]
    | Annotated[Constant, Tag(kind_tag("constant"))],
    Discriminator(_schedule_kind),
]


class AverageConfig(Stage):
    """Averaging of checkpoints when the run ends."""

    last: int = Field(default=0, ge=0, le=10_000)
    """How many of the newest checkpoints are averaged; 0 is none."""
    best: int = Field(default=0, ge=0, le=10_000)
    """Instead, how many of those that validated best by early_stopping.metric; they are kept besides the newest."""

    @property
    def wanted(self) -> bool:
        """Whether there is to be an average at all."""
        return bool(self.last or self.best)

    def contradictions(self) -> Iterator[Contradiction]:
        """There is one average."""
        if self.last and self.best:
            yield clash(f"the {self.last} last, or the {self.best} best? leave one of the two out", "best", "last")


class ValidationConfig(Stage):
    """What is measured on the dev set, and how often."""

    every: Count | None = None
    """Updates between validations; left out: about once an epoch, between 100 and 2000."""
    beam: int = Field(default=1, ge=1, le=MAX_BEAM)
    """Beam width of the decoded BLEU and chrF; 1 is greedy."""
    max_lines: Count = 2000
    """The first lines of the dev set that are used."""
    samples: int = Field(default=5, ge=0, le=10_000)
    """Fixed dev lines whose translation is shown each time."""
    attention: int = Field(default=1, ge=0, le=10)
    """Of these so many, at most, whose attention is drawn for TensorBoard."""


class EarlyStopping(Stage):
    """When to stop, and which checkpoint is the best."""

    metric: Literal["bleu", "chrf", "loss"] = "bleu"
    """What decides; higher is better for bleu and chrf, lower for loss."""
    patience: int = Field(default=10, ge=0, le=10**9)
    """Validations without a better score before training stops; 0 never stops early."""


class TrainConfig(Stage):
    """The training loop."""

    max_updates: Count | None = None
    """Updates at which the run ends. With no limit given at all, a default derived from the corpus."""
    max_epochs: Count | None = None
    """Passes over the training data at which the run ends."""
    max_minutes: float | None = Field(default=None, gt=0)
    """Minutes of training at which the run ends; they add up over resumes."""
    batch_tokens: Annotated[Auto | Annotated[int, Field(ge=1, le=10**8), Tag(kind_tag("number"))], Discriminator(auto_tag)] = 4096
    """Rows × longest side, end mark and padding included, per device and micro-batch; a longer sentence is a batch by itself.
    auto: on CUDA the most that fits, up to 65536 and a hundredth of an epoch, found by trial; elsewhere 1024."""
    accumulate: int = Field(default=1, ge=1, le=100_000)
    """Micro-batches per update."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """AdamW."""
    schedule: Schedule = InverseSqrt()
    """Learning rate over the updates."""
    label_smoothing: Fraction = 0.1
    """Probability mass spread over the whole vocabulary."""
    r_drop: float = Field(default=0.0, ge=0, le=1000)
    """α of R-Drop (https://arxiv.org/abs/2106.14448), such as 5: two passes a pair, drawn to each other, at twice the cost; 0 is off."""
    clip_norm: float = Field(default=1.0, ge=0)
    """Largest norm of the gradient; 0 is no clipping."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """auto: bf16 where the hardware has it, else fp16 on CUDA, else fp32."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """auto: cuda, else mps, else cpu."""
    compile: bool = False
    """Compile the layers with torch.compile: a minute at the start, then faster on a GPU, but not on a CPU."""
    save_every: Count | None = None
    """Updates between checkpoints; left out: as validation.every."""
    keep: Count = 5
    """Newest checkpoints kept, besides the best (and the average.best best)."""
    average: AverageConfig = AverageConfig()
    """Averaging at the end."""
    ema: Fraction = 0.0
    """Decay of the moving average of the weights, such as 0.999; 0 is off. When on, validation and translation use the average."""
    validation: ValidationConfig = ValidationConfig()
    """Validation."""
    early_stopping: EarlyStopping = EarlyStopping()
    """Early stopping."""
    max_skipped: Count = 20
    """Non-finite updates in a row after which training stops."""
    max_risen: int = Field(default=1000, ge=0, le=10**9)
    """Updates in a row whose loss, smoothed over 100, is more than 1 above its lowest: after so many training stops; 0 never stops."""
    report: bool = True
    """Whether the end of the run is `reports/index.html`, a page with its curves, samples and scores; `mt report RUN` writes it, too."""
    init_from: Path | None = None
    """Run directory whose best weights and tokenizer this run starts from (`--init-from`); its model settings must be the same."""
    freeze: list[Frozen] = []
    """Parts that stay as they are; with tied embeddings the output layer is one of them."""
    seed: int = Field(default=1, ge=0, lt=2**32)
    """Seed of everything random."""

    @property
    def budget(self) -> int:
        """What batch_tokens is, or has come to; of a run that is prepared it is a number."""
        assert isinstance(self.batch_tokens, int)
        return self.batch_tokens

    def contradictions(self) -> Iterator[Contradiction]:
        """Curves need what they are made of, and an average needs its checkpoints."""
        if isinstance(self.schedule, Cosine | Linear) and self.max_updates is None and self.max_epochs is None:
            what = f"{self.schedule.kind} falls until the end, so the end must be known; set train.max_updates or train.max_epochs"
            yield clash(f"{what} (max_minutes is not enough)" if self.max_minutes else what, "schedule.kind", "max_updates", "max_epochs")
        if isinstance(self.schedule, Noam) and self.optimizer.lr != OptimizerConfig().lr:
            what = "the noam schedule ignores it; leave it out and scale with train.schedule.factor, or choose inverse_sqrt"
            yield clash(what, "optimizer.lr", "schedule.kind")
        if self.keep < self.average.last:
            what = f"{self.keep} kept checkpoints are fewer than the {self.average.last} of train.average.last"
            yield clash(f"{what}; set train.keep to {self.average.last} or more", "keep", "average.last")
