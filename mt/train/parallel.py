"""Several processes that train one model, each on its own batches: the gradient of an update is that of all (torch's DDP).

torchrun starts them, and says in the environment who is who. Without it there is one, and all of this comes to nothing.
"""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from mt.errors import ConfigError, MTError, TrainError

PATIENCE = timedelta(minutes=5)
"""For a rank that has stopped without ending; the end of its process is noticed at once."""
LONG = timedelta(days=2)
"""For what the first rank does alone: preparing, validating, saving."""
ROLL_CALL = 5.0
"""Seconds in which the ranks that are left say so."""
BROKEN = "gloo", "NCCL", "Connection closed", "Connection reset"
"""What torch says of a connection, where it has no exception of its own for that."""

T = TypeVar("T")


class Ranks:
    """Who trains: one process, alone. What `Several` says to others is here said to nobody, and costs nothing."""

    rank = 0
    """The number of this process."""
    count = 1
    """How many there are."""

    @property
    def leads(self) -> bool:
        """Whether this is the first rank: the one that prepares, validates, writes and speaks."""
        return self.rank == 0

    def place(self, device: torch.device) -> torch.device:
        """The device of this rank, of those of a kind. Raises ConfigError where there are too few."""
        return device

    def reseed(self, *numbers: int) -> None:
        """Let torch's generator go its own way on each rank but the first; dropout is not to be the same on all."""

    def share(self, loss: nn.Module) -> nn.Module:
        """The module that is called instead, so that gradients are exchanged; all ranks go on with the weights of the first."""
        return loss

    def exchange(self, shared: nn.Module, *, now: bool) -> AbstractContextManager[object]:  # noqa: ARG002
        """Within, a micro-batch of an update is gone through; gradients are exchanged once, with the last."""
        return nullcontext()

    def sums(self, *counts: int) -> tuple[int, ...]:
        """Each count, over all ranks."""
        return counts

    def total(self, loss: Tensor) -> Tensor:
        """The loss of all ranks, where it is."""
        return loss

    def agree(self, norm: float) -> None:
        """Raise TrainError where ranks have another norm of the gradient, which is the same on all as the gradient is."""

    def settle(self, seconds: float, asked: int | None) -> tuple[float, int | None]:
        """What all ranks go by: the clock of the first, and a signal that any has got."""
        return seconds, asked

    def first(self, work: Callable[[], T]) -> T:
        """What the first rank makes of it, while the others wait."""
        return work()

    def collect(self, value: T) -> list[T]:
        """The values of all ranks, in their order."""
        return [value]

    def refuse_differences(self, model: nn.Module) -> None:
        """Raise TrainError where a rank has other weights than the first."""


ALONE = Ranks()


class Several(Ranks):
    """Who trains: the processes that torchrun has started, on one machine or many."""

    def __init__(self, store: Store) -> None:
        self.rank, self.count = dist.get_rank(), dist.get_world_size()
        self.store = PrefixStore("mt", store)
        self.waiting = dist.new_group(backend="gloo", timeout=LONG)

    def place(self, device: torch.device) -> torch.device:
        """Of several GPUs, the one with the number that the rank has on its machine."""
        if device.type == "mps":
            raise ConfigError("device mps: trains with one process only; start without torchrun, or give --device cpu")
        if device.type == "cpu":
            return device
        local, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if local >= there:
            raise ConfigError(f"device cuda: {socket.gethostname()} has {there}, fewer than ranks; start with --nproc-per-node {there}")
        torch.cuda.set_device(local)
        return torch.device("cuda", local)

    def reseed(self, *numbers: int) -> None:
        """A function of the numbers and the rank. The first goes on as one alone would."""
        if self.rank:
            torch.manual_seed(int(np.random.SeedSequence([*numbers, self.rank]).generate_state(1, np.uint64)[0] >> 1))

    def share(self, loss: nn.Module) -> nn.Module:
        """DDP, which exchanges gradients while the backward pass is still on its way to others."""
        device = next(loss.parameters()).device
        ids = [device.index] if device.type == "cuda" else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")  # for one that torch 2.5 does not have
            return DistributedDataParallel(loss, device_ids=ids, broadcast_buffers=False, gradient_as_bucket_view=True)

    def exchange(self, shared: nn.Module, *, now: bool) -> AbstractContextManager[object]:
        """DDP would exchange them with each."""
        assert isinstance(shared, DistributedDataParallel)
        return nullcontext() if now else shared.no_sync()

    def sums(self, *counts: int) -> tuple[int, ...]:
        """Exact up to 2^53."""
        return tuple(int(sum(each)) for each in self._gather(*counts))

    def total(self, loss: Tensor) -> Tensor:
        """So one that is not finite on one rank is so on all, and all skip the update."""
        total = loss.double()
        dist.all_reduce(total)
        return total

    def agree(self, norm: float) -> None:
        """By asking all."""
        (norms,) = self._gather(norm)
        if len({str(one) for one in norms}) > 1:  # as text: not a number is equal to itself
            raise TrainError(f"the ranks no longer have the same gradient, its norm is {', '.join(map(str, norms))}; {self._cure}")

    def settle(self, seconds: float, asked: int | None) -> tuple[float, int | None]:
        """So all end after the same update."""
        clocks, signals = self._gather(seconds, asked or 0)
        return clocks[0], int(max(signals)) or None

    def first(self, work: Callable[[], T]) -> T:
        """The result has to be such that can be pickled. However long it takes, a rank that ends is noticed."""
        value: list[Any] = [work() if self.leads else None]
        arrival = dist.barrier(group=self.waiting, async_op=True)
        while not arrival.is_completed():  # signals are heard between two looks
            time.sleep(0.02)
        arrival.wait()
        dist.broadcast_object_list(value, src=0, group=self.waiting)
        return value[0]

    def collect(self, value: T) -> list[T]:
        """Of anything that can be pickled."""
        values: list[Any] = [None] * self.count
        dist.all_gather_object(values, value, group=self.waiting)
        return values

    def refuse_differences(self, model: nn.Module) -> None:
        """By their fingerprints."""
        ours, *others = self.collect(fingerprint(model))
        if strays := [rank for rank, other in enumerate(others, start=1) if other != ours]:
            raise TrainError(f"the weights of rank {', '.join(map(str, strays))} are no longer those of rank 0; {self._cure}")

    _cure = "are all machines alike, in hardware and in versions? Go on from the last checkpoint with --resume"

    def _gather(self, *numbers: float) -> list[tuple[float, ...]]:
        """For each number those of all ranks. On the CPU also where gradients are not: they are few."""
        rows = [torch.empty(len(numbers), dtype=torch.float64) for _ in range(self.count)]
        dist.all_gather(rows, torch.tensor(numbers, dtype=torch.float64))
        return list(zip(*(row.tolist() for row in rows), strict=True))

    def speaks(self) -> bool:
        """Whether no rank has told of an error yet: what others say after that only follows from it."""
        try:
            return bool(self.store.add("errors", 1) == 1)
        except RuntimeError:  # the store is gone with its machine: better twice than never
            return True

    def lost(self) -> TrainError:
        """What to say when a connection broke: which ranks do not answer any more."""
        missing = [rank for rank in range(self.count) if rank != self.rank]
        until = time.monotonic() + ROLL_CALL
        while missing and time.monotonic() < until:
            missing = [rank for rank in missing if not self.store.check([f"left/{rank}"])]
            time.sleep(0.1)
        who = f"rank {', '.join(map(str, missing))} of {self.count}" if missing else f"contact among the {self.count} ranks"
        cure = "was it killed, for want of memory? Go on from the last checkpoint with --resume"
        return TrainError(f"{who} is lost, the others stop; {cure}")

    def answer(self) -> None:
        """Tell the others that this rank is still there."""
        self.store.set(f"left/{self.rank}", "")


@contextmanager
def started() -> Iterator[Ranks]:
    """Within, the ranks that torchrun has started are connected; without torchrun there is one. Of errors, the first is told, and once."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield ALONE
        return
    ranks = connected()
    try:
        yield ranks
        ranks.first(lambda: None)  # torchrun ends all ranks when one of them ends otherwise than well
    except Exception as error:
        for number in (signal.SIGINT, signal.SIGTERM):  # torchrun ends the others as soon as one has ended
            signal.signal(number, signal.SIG_IGN)
        broken = is_broken(error)
        if broken:
            ranks.answer()
        if not ranks.speaks():
            raise SystemExit(2) from None
        if broken:
            raise ranks.lost() from None
        if isinstance(error, MTError) and not ranks.leads:
            raise type(error)("\n".join(f"rank {ranks.rank}: {line}" for line in str(error).splitlines())) from error
        raise
    dist.destroy_process_group()


def connected() -> Several:
    """The ranks, each with a connection to the others. Raises ConfigError where the environment does not say who they are."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    try:
        store, rank, count = next(rendezvous("env://"))
        dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=PATIENCE)
    except (ValueError, RuntimeError) as error:
        what = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but ranks cannot be connected ({what}); use torchrun") from None
    return Several(store)


def is_broken(error: Exception) -> bool:
    """Whether it tells of a lost connection to other ranks."""
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and any(words in str(error) for words in BROKEN))


def fingerprint(model: nn.Module) -> str:
    """Of all weights, to the last bit: sums of the numbers that their bits are, made where the weights are."""
    bits = [p.detach().contiguous().view(torch.int32).sum(dtype=torch.int64) for p in model.parameters()]
    return hashlib.sha256(torch.stack(bits).cpu().numpy().tobytes()).hexdigest()
