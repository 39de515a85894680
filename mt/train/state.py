"""Everything that has to survive a kill: weights, optimiser, scaler, moving average, generators, counters and the position in the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mt.checkpoint import load_weights, read_state, read_trainer, read_weights, save_checkpoint
from mt.config.schema import TrainConfig
from mt.data.plan import Cursor
from mt.errors import RunError
from mt.model.loss import LossOfBatch
from mt.rundir import RunDir
from mt.train.average import MovingAverage
from mt.train.events import Ended, Spent
from mt.train.optim import build_optimizer
from mt.train.parallel import ALONE, Ranks
from mt.train.precision import Precision, build_scaler


@dataclass
class Progress:
    """How far the run is; JSON in the checkpoint."""

    update: int = 0
    """Updates made."""
    cursor: Cursor = field(default_factory=Cursor)
    """The next micro-batch."""
    seconds: float = 0.0
    """Wall time of the run so far."""
    spent: Spent = field(default_factory=Spent)
    """What it went to."""
    skipped: int = 0
    """Updates skipped, in all."""
    skipped_in_a_row: int = 0
    smoothed: float | None = None
    """The loss over the newest updates; None before the first."""
    lowest: float | None = None
    """The lowest that was; None before it can be told."""
    risen: int = 0
    """Updates in a row for which it has been far above that."""
    calm: int = 0
    """The newest update for which it was near that."""
    metric: str | None = None
    """What decided at the newest validation; None before the first."""
    best: float | None = None
    """Best score of it so far."""
    stale: int = 0
    """Validations since then."""
    scores: dict[str, float] = field(default_factory=dict)
    """What the validation at this update found, by metric; empty if there was none."""
    ended: str | None = None
    """Why the run is over, if it is."""
    journal_bytes: int = 0
    """Length of the journal at this point."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Progress:
        """What `asdict` made."""
        spent = values.get("spent") or {"data": values.get("waited", 0.0)}  # those written before knew of data alone
        rest = {name: value for name, value in values.items() if name != "waited"}
        return cls(**{**rest, "cursor": Cursor(**values["cursor"]), "spent": Spent(**spent)})

    def end(self, reason: str) -> Ended:
        """What to tell of a run that is over."""
        shares = self.spent.shares(self.seconds)
        return Ended(self.update, reason, self.skipped, self.cursor.epoch, self.seconds, shares)


class State:
    """The moving parts of a run."""

    def __init__(
        self,
        loss: LossOfBatch,
        cfg: TrainConfig,
        *,
        precision: Precision,
        device: torch.device,
        origin: Mapping[str, Any],
        ranks: Ranks = ALONE,
    ) -> None:
        """`origin`: what every checkpoint says of the model beside how far it is: its settings, and the fingerprints of its tokenizers."""
        self.loss, self.model = loss, loss.model
        self.ranks, self.seed = ranks, cfg.seed
        self.shared: nn.Module = loss
        self.precision, self.device = precision, device
        self.optimizer = build_optimizer(self.model, cfg.optimizer)
        self.scaler = build_scaler(precision, device)
        self.ema = MovingAverage(self.model, decay=cfg.ema) if cfg.ema else None
        self.progress = Progress()
        self.origin = origin

    def share(self) -> None:
        """From now on gradients are those of all ranks; each has to ask for it."""
        self.shared = self.ranks.share(self.loss)

    def evaluated(self) -> AbstractContextManager[None]:
        """Within, the model has the weights that are validated and used: the moving average, if there is one."""
        return self.ema.in_place_of(self.model) if self.ema else nullcontext()

    def generators(self) -> dict[str, Any]:
        """The states of this rank's generators."""
        cuda = self.device.type == "cuda"
        return {"cpu_generator": torch.get_rng_state(), "cuda_generators": [torch.cuda.get_rng_state(self.device)] if cuda else []}

    def save(self, run: RunDir, generators: Sequence[Mapping[str, Any]] | None = None) -> Path:
        """Write the checkpoint of the present update; `generators` are those of all ranks, where there are several."""
        first, *others = generators or [self.generators()]
        trainer = {
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            **first,
            "other_ranks": others,
        }
        path = run.step(self.progress.update)
        save_checkpoint(
            path,
            weights=dict(self.model.named_parameters()),
            ema=self.ema.average if self.ema else None,
            state={**self.origin, "progress": asdict(self.progress)},
            trainer=trainer,
        )
        return path

    def restore(self, path: Path) -> None:
        """Go on exactly where a checkpoint was written."""
        try:
            self.progress = Progress.from_json(read_state(path)["progress"])
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{path}: its state.json cannot be resumed from ({error}); remove this checkpoint to go on from the one before"
            ) from None
        load_weights(self.model, read_weights(path, "raw"), source=path)
        if self.ema:
            average: dict[str, Tensor] = read_weights(path, "ema")
            self.ema.average = {name: average[name].to(self.device) for name in self.ema.average}
        trainer = read_trainer(path)
        if not isinstance(trainer, dict) or not {"optimizer", "scaler", "cpu_generator", "cuda_generators"} <= trainer.keys():
            raise RunError(f"{path}: its trainer.pt is not whole; remove this checkpoint to go on from the one before")
        self.optimizer.load_state_dict(trainer["optimizer"])
        self.scaler.load_state_dict(trainer["scaler"])
        self.ranks.reseed(self.seed, self.progress.update)
        for generators in [trainer, *trainer.get("other_ranks", [])][self.ranks.rank : self.ranks.rank + 1]:  # none for a rank that is new
            torch.set_rng_state(generators["cpu_generator"])
            if self.device.type == "cuda":
                torch.cuda.set_rng_state(generators["cuda_generators"][0], self.device)
