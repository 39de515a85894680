"""How fast training will be: real updates on real batches, measured, whose weights are thrown away."""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import torch

from mt.clean.filters import drop_reason
from mt.config.schema import Config
from mt.data.batches import collate
from mt.data.loader import TrainingData
from mt.data.plan import Cursor
from mt.model.process import TRAINED, keep_few_primitives, keep_freed_memory
from mt.train.events import Update
from mt.train.loop import Plan, rate_of
from mt.train.parallel import ALONE
from mt.train.state import State
from mt.train.update import update
from mt.train.validate import Validator, Validators

ENOUGH = 24
"""Updates, the first ones of which are slower than the rest and do not count."""
COLD = 4
SECONDS = 8.0
"""After which no other update begins."""
LINES = 128
"""Of a dev set that are translated to tell how long all of it takes."""


@dataclass(frozen=True)
class Speed:
    """What was measured, and what it comes to for an update of the run."""

    updates: int
    """That were measured, of one micro-batch each."""
    seconds: float
    """Of an update of the run, with all its micro-batches."""
    tokens: float
    """Real target tokens of one."""
    peak: int
    """Bytes the process has had at most, or of the GPU where it trains there."""

    @property
    def per_second(self) -> float:
        """Real target tokens a second."""
        return self.tokens / self.seconds


def rehearse(state: State, data: TrainingData, config: Config, plan: Plan, *, micro_batches: float) -> Speed:
    """Make updates, one on the largest batch before the others; of several ranks this one alone. The state is of no use afterwards.

    An update of the run has so many micro-batches, on average.
    """
    state.ranks, cfg = ALONE, config.train
    if state.device.type == "cpu":
        keep_freed_memory()
        keep_few_primitives(TRAINED)
    made: list[Update] = []
    began = start = time.perf_counter()
    others = (data.examples(place) for place, _ in data.order.cursors(Cursor()))
    for examples in islice(chain([data.seen(data.order.largest()[0], epoch=0)], others), ENOUGH):
        batch = collate(examples, data.tokenizers)
        if data.workers:  # who make them meanwhile
            start = time.perf_counter()
        rate = rate_of(state, cfg, plan, state.progress.update + 1)
        made.append(update(state, [batch], cfg=cfg, lr=rate, start=start))
        if time.perf_counter() - began > SECONDS:
            break
        start = time.perf_counter()
    return speed_of(made, micro_batches=micro_batches, peak=peak_memory(state.device))


def speed_of(made: Sequence[Update], *, micro_batches: float, peak: int) -> Speed:
    """What updates of one micro-batch tell of those of the run; the first ones only if there are no others."""
    warm = made[COLD:] or made[1:] or made
    passes, optimizing, tokens = (
        sum(each) / len(warm) for each in ([u.seconds - u.optimizing for u in warm], [u.optimizing for u in warm], [u.tokens for u in warm])
    )
    return Speed(updates=len(made), seconds=micro_batches * passes + optimizing, tokens=micro_batches * tokens, peak=peak)


def peak_memory(device: torch.device) -> int:
    """Bytes that this process has had at most, those of the GPU where it trains there."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:  # getrusage on Linux may tell of the process that started this one
        return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))[1]) * 1024  # type: ignore[index]
    except (OSError, TypeError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def validation_seconds(validators: Validators, state: State, config: Config) -> float:
    """About how long a validation will take: by some lines of each dev set, translated to the length of their references.

    A model that has learnt nothing does not know when to stop.
    """
    total = 0.0
    for name, whole in validators.each.items():
        usable = [pair for pair in whole.pairs if not drop_reason(pair)]
        some = usable[:: -(-len(usable) // LINES)]
        src, tgt = (sum(map(len, ids)) for ids in whole.ids(some))
        factor = min(100.0, max(0.01, (tgt + len(some)) / max(src, 1)))
        decode = config.decode.model_copy(update={"max_length_factor": factor, "max_length_extra": 1})
        limited, corpus = config.model_copy(update={"decode": decode}), config.data.dev_sets()[name]
        for lines in (some[:1], some):  # the first time something is imported
            found = Validator(lines, corpus, whole.tokenizers, config=limited, device=state.device, name=name)(state.loss)
        total += found.seconds * len(whole.pairs) / len(some)
    return total
