"""The batches of a run, from any position on, made here or by other processes: the same ones in the same order in either case."""

from __future__ import annotations

import atexit
import multiprocessing
import signal
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, partial
from itertools import islice, tee
from multiprocessing import resource_tracker
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from mt.data.augment import Augmenter
from mt.data.batches import Batch, collate
from mt.data.chance import Indices
from mt.data.plan import WINDOW, Cursor, Order, Span, deals
from mt.data.store import Example, Store
from mt.data.workers import SIGNALS, follow_parent
from mt.tokenizer.spm import Tokenizers

AHEAD = 4  # batches that each worker has ready


class TrainingData(Dataset[Batch]):
    """The batches of a run, epoch after epoch. Can be pickled: a worker opens the store, and orders it, for itself."""

    def __init__(
        self,
        store: Store,
        tokenizers: Tokenizers,
        *,
        budget: int,
        seed: int,
        spans: Sequence[Span] | None = None,
        augment: Augmenter | None = None,
        prefixes: Sequence[tuple[int, ...]] | None = None,
        window: int = WINDOW,
        workers: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        """`spans` are the store's, with the weights that count; `prefixes` the ids before the sources of each corpus, if there are any;
        `workers` the processes that make batches, 0 being this one.
        """
        self.store, self.tokenizers, self.augment = store, tokenizers, augment
        self.spans, self.budget, self.seed, self.window = spans or store.spans, budget, seed, window
        self.prefixes = prefixes or [()] * len(self.spans)
        self.workers, self.rank, self.ranks = workers, rank, ranks

    @cached_property
    def order(self) -> Order:
        """Which pairs are in which batch."""
        before = [len(prefix) for prefix in self.prefixes]
        return Order(self.store.lengths_N2, self.spans, budget=self.budget, seed=self.seed, window=self.window, before=before)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "order"}

    def groups(self, cursor: Cursor, *, size: int) -> Generator[tuple[list[Batch], Cursor]]:
        """Endless: the micro-batches of an update, and the cursor after them. The last group of an epoch may be smaller, none spans two.

        Of several ranks each has its own batches, and one that has fewer an empty one in their place. Workers end with the generator.
        """
        ahead, behind = tee(deals(self.order, cursor, accumulate=size, rank=self.rank, ranks=self.ranks))
        places = (place for deal in ahead for place in deal.batches)
        with closing(from_workers(self, places, workers=self.workers) if self.workers else self.made(places)) as batches:
            for deal in behind:
                yield list(islice(batches, len(deal.batches))), deal.after

    def made(self, places: Iterator[Cursor | None]) -> Generator[Batch]:
        """The batches at these places, made by this process."""
        yield from map(self.batch, places)

    def batch(self, place: Cursor | None) -> Batch:
        """The batch at a place in the data; None is an empty one."""
        return collate(self.examples(place) if place else [], self.tokenizers)

    __getitem__ = batch

    def examples(self, place: Cursor) -> list[Example]:
        """The pairs of a batch as the model will see them."""
        return self.seen(self.order.batches(place.epoch, place.window)[place.batch], epoch=place.epoch)

    def seen(self, draws: Indices, *, epoch: int) -> list[Example]:
        """The pairs of these draws as the model will see them: each is a function of the settings, the epoch and its draw."""
        examples = self.store.take(draws)
        if self.augment:
            examples = self.augment(examples, epoch=epoch)
        if not any(self.prefixes):
            return examples
        return [example._replace(prefix=self.prefixes[example.corpus]) for example in examples]


def from_workers(data: TrainingData, places: Iterator[Cursor | None], *, workers: int) -> Generator[Batch]:
    """The batches at these places, in this order, made by processes that end with the generator, and with this process.

    They leave signals to this process: what it does about Ctrl-C, such as to finish an update and save, needs batches still.
    """
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")  # a fork of this process would copy threads
    context.set_forkserver_preload(["mt.data.loader", "datasets"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")  # more workers than cores: as asked for
        loader = DataLoader(
            data,
            batch_size=None,
            sampler=places,
            collate_fn=_as_it_is,
            num_workers=workers,
            prefetch_factor=AHEAD,
            worker_init_fn=_begin,
            multiprocessing_context=context,
            generator=torch.Generator(),  # without it a number is drawn from torch's own: with workers, dropout would be another one
        )
        with signals_later():
            batches: Any = iter(loader)
    end = partial(_end, batches)
    atexit.register(end)  # before multiprocessing's own, which waits for workers that have not been told
    try:
        yield from batches
    finally:
        end()
        atexit.unregister(end)


@contextmanager
def signals_later() -> Iterator[None]:
    """Within, signals wait; processes started within never get them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(_worker: int) -> None:
    follow_parent()


def _as_it_is(batch: Any) -> Any:
    return batch


def _end(batches: Any) -> None:
    """Tell the workers to end, and see to it."""
    batches._shutdown_workers()
    for worker in batches._workers:
        if worker.is_alive():
            worker.kill()
            worker.join()
