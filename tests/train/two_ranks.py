"""Run by two ranks: what each finds is written to its own file, then the second runs out of memory while the first waits for it."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import torch
from torch import nn

from mt.config.schema import TrainConfig
from mt.errors import MTError, TrainError
from mt.train.memory import enough_memory
from mt.train.parallel import Ranks, started


def complaint(of: Ranks, norm: float, model: nn.Module) -> tuple[str, str]:
    """Of gradients, then of weights that differ."""
    found = []
    for check in (lambda: of.agree(norm), lambda: of.refuse_differences(model)):
        try:
            check()
        except TrainError as error:
            found.append(str(error).split(";")[0])
    return found[0], found[1]


def main(folder: Path) -> None:
    """See the module."""
    with started() as ranks:
        torch.manual_seed(1)
        model = nn.Linear(3, 2)
        ranks.refuse_differences(model)
        with torch.no_grad():
            model.weight[1, 2] += ranks.rank * 1e-7
        norm, weights = complaint(ranks, 1.0 + ranks.rank, model)
        ranks.reseed(7)
        found = {
            "sums": ranks.sums(1 + ranks.rank, 10 + 10 * ranks.rank),
            "settled": ranks.settle(10.0 + ranks.rank, 15 if ranks.rank else None),
            "first": ranks.first(lambda: f"of rank {ranks.rank}"),
            "collected": ranks.collect(ranks.rank),
            "loss": ranks.total(torch.tensor(1.5 + ranks.rank)).item(),
            "broken": str(ranks.total(torch.tensor(math.nan if ranks.rank else 1.0)).item()),
            "norm": norm,
            "weights": weights,
            "seeded": torch.rand(()).item(),
        }
        (folder / f"{ranks.rank}.json").write_text(json.dumps(found))
        if ranks.rank:
            with enough_memory(TrainConfig()):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        ranks.collect("nobody is there")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except MTError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
