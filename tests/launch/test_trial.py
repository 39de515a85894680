"""The largest batches are tried before the first update, which leaves no trace; and `auto` finds how large they may be."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mt.config.load import load
from mt.config.schema import Config
from mt.data.loader import TrainingData
from mt.data.plan import Order, Span
from mt.errors import TrainError
from mt.launch import prepare, run
from mt.launch.ahead import data_of_config
from mt.launch.prepare import Prepared
from mt.model.loss import LossOfBatch
from mt.rundir import RunDir
from mt.train import trial
from mt.train.parallel import Ranks
from mt.train.trial import LEAST, MOST, choose_batch_tokens, largest, most_that_fits, shape_of
from tests import toy
from tests.launch.test_resume import KilledError, kill
from tests.runs import Silent, contents, differences, four_updates, journal, train
from tests.train import tiny

pytestmark = pytest.mark.usefixtures("quiet")

RANDOM = ("model.dropout=0.2", "train.ema=0.9", "train.accumulate=2", "tokenizer.sample={bpe_dropout: 0.3}", "train.r_drop=1")


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Batches are tried on this machine as well; the shapes that were."""
    for module in (trial, prepare):
        monkeypatch.setattr(module, "TRIED_ON", {"cpu"})
    tried: list[Any] = []
    try_out = trial.try_out

    def listening(state: Any, shapes: Any, **rest: Any) -> None:
        tried.extend(shapes)
        try_out(state, shapes, **rest)

    monkeypatch.setattr(trial, "try_out", listening)
    return tried


def room_for(positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let memory run out with a batch of more positions than that."""
    forward = LossOfBatch.forward

    def bounded(self: LossOfBatch, src_BS: Tensor, inputs_BT: Tensor, gold_BT: Tensor, real_N: Tensor | None = None) -> tuple[Tensor, int]:
        if self.training and src_BS.numel() + gold_BT.numel() > positions:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        return forward(self, src_BS, inputs_BT, gold_BT, real_N)

    monkeypatch.setattr(LossOfBatch, "forward", bounded)


def training_data(folder: Path, *overrides: str) -> TrainingData:
    """The batches of a run that was trained."""
    found: list[Prepared] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "train", lambda prepared, **_: found.append(prepared) or 1)
        train(four_updates(folder, *overrides), overwrite=True)
    return found[0].data


# ── the trial ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_the_same_to_the_last_bit_whether_batches_were_tried_or_not(
    folder: Path, forced: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it was killed, and goes on with another trial."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "TRIED_ON", set())
        assert train(four_updates(folder, *RANDOM)).code == 0
    assert forced == []
    untried = RunDir((folder / "run").rename(folder / "untried"))
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent(lambda update: kill() if update == 3 else None))
    with pytest.raises(KilledError):
        train(four_updates(folder, *RANDOM))
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent())
    once = len(forced)
    assert train(four_updates(folder, *RANDOM), resume=True).code == 0
    assert len(forced) == 2 * once > 0
    tried = RunDir(folder / "run")
    for update in (2, 4):
        assert differences(contents(tried.step(update)), contents(untried.step(update))) == []
    assert journal(tried) == journal(untried)


def test_no_batch_of_an_epoch_is_larger_than_those_that_are_tried(folder: Path) -> None:
    data = training_data(folder)
    shapes = largest(data)
    assert len(shapes) <= 4
    all_of = [data.order.sizes(draws).max(axis=0) for draws in data.order.batches(0, 0)]
    rows = [len(draws) for draws in data.order.batches(0, 0)]
    for size in (lambda r, s, t: r * (s + t), lambda r, s, t: r * t, lambda r, s, t: r * max(s, t) ** 2, lambda r, s, t: max(s, t)):  # noqa: ARG005
        assert max(size(*shape) for shape in shapes) >= max(size(r, *sides) for r, sides in zip(rows, all_of, strict=True))


def test_noise_makes_batches_longer_and_max_pieces_is_the_bound(folder: Path) -> None:
    plain = training_data(folder, "data.max_pieces=30")
    noisy = training_data(folder, "data.max_pieces=30", "tokenizer.sample={bpe_dropout: 0.9}")
    draws = plain.order.largest()[0]
    one, other = shape_of(plain, draws), shape_of(noisy, draws)
    assert one.rows == other.rows == len(draws)
    assert one.src < other.src <= 31
    assert one.tgt < other.tgt <= 31


def test_memory_that_runs_out_does_so_before_the_first_update(folder: Path, forced: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    room_for(100, monkeypatch)
    with pytest.raises(TrainError, match=r"out of memory with a batch of \d+ × \d+ × \d+ .*, 1.00 GiB more were needed; lower "):
        train(four_updates(folder))
    assert forced
    assert not (folder / "run" / "journal.jsonl").exists()


# ── auto ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [0, 1, 37, 500, LEAST, 1000, 4096, 5000, 50_000, 10**6])
def test_the_largest_number_that_fits_is_found_in_few_trials(limit: int) -> None:
    tried: list[int] = []

    def fits(number: int) -> bool:
        tried.append(number)
        return number <= limit

    found = most_that_fits(fits, most=MOST)
    assert min(limit, MOST) * 15 / 16 - 1 <= found <= min(limit, MOST)
    assert max(tried) <= MOST
    assert len(tried) <= 15


def data_of(tokens: int, *, pairs: int = 50_000) -> Any:
    """What is looked at of the batches of a large corpus."""
    lengths = np.random.default_rng(1).integers(3, 40, size=(pairs, 2)).astype(np.int32)
    return SimpleNamespace(order=Order(lengths, [Span(0, pairs)], budget=tokens, seed=1), augment=None)


def test_auto_is_the_most_whose_largest_batch_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    state = tiny.slope_state(1.0)
    forward = state.loss.forward

    def bounded(src_BS: Tensor, inputs_BT: Tensor, gold_BT: Tensor, real_N: Tensor) -> Any:
        if src_BS.numel() + gold_BT.numel() > 5000:
            raise torch.OutOfMemoryError
        return forward(src_BS, inputs_BT, gold_BT, real_N)

    monkeypatch.setattr(state.loss, "forward", bounded)
    found = choose_batch_tokens(state, data_of, cfg=tiny.cfg(batch_tokens="auto"), room=None)
    most = max(shape.rows * (shape.src + shape.tgt) for shape in largest(data_of(found)))
    assert 0.85 * 5000 < most <= 5000
    assert all(p.grad is None for p in state.model.parameters())


def test_auto_leaves_an_epoch_of_a_hundred_updates() -> None:
    found = choose_batch_tokens(tiny.slope_state(1.0), data_of, cfg=tiny.cfg(batch_tokens="auto"), room=None)
    assert 100 <= data_of(found).order.measure().batches < 200


def test_where_not_even_one_pair_fits_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    state = tiny.slope_state(1.0)

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(state.loss, "forward", full)
    with pytest.raises(TrainError, match="with a batch of 1 × 40 × 40 .*; that is one pair: set model.gradient"):
        choose_batch_tokens(state, partial(data_of, pairs=1000), cfg=tiny.cfg(batch_tokens="auto"), room=None)


def test_what_was_found_is_kept_and_a_run_goes_on_with_it(folder: Path, forced: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LEAST", 20), ("MOST", 300)):
        monkeypatch.setattr(trial, name, value)
    toy.write_corpus(folder, train=400, dev=4)
    room_for(200, monkeypatch)
    done = train(four_updates(folder, "train.batch_tokens=auto", "train.max_updates=2"))
    assert done.code == 0
    assert forced
    found = load(folder / "run" / "config.yaml").config.train.budget
    assert 20 < found < 200
    assert done.says(f"train.batch_tokens: auto is {found} here")
    monkeypatch.undo()
    again = train(four_updates(folder, "train.batch_tokens=auto", "train.max_updates=3"), resume=True)
    assert again.code == 0
    assert load(folder / "run" / "config.yaml").config.train.budget == found


def test_on_a_cpu_auto_is_a_rule(folder: Path) -> None:
    done = train(four_updates(folder, "train.batch_tokens=auto", "train.max_updates=1"))
    assert done.says("train.batch_tokens: auto is 1024 here")
    assert load(folder / "run" / "config.yaml").config.train.batch_tokens == 1024


def test_pairs_are_shown_without_a_trial(folder: Path, forced: list[Any]) -> None:
    four_updates(folder)
    said: list[str] = []
    data = data_of_config(folder / "toy.yaml", [*toy.TINY, "train.batch_tokens=auto"], say=said.append)
    assert data.budget == 1024
    assert "train.batch_tokens: auto, shown as 1024; training on CUDA tries how many fit" in said
    assert forced == []


class Three(Ranks):
    """The first of three, whose devices have other amounts of free memory."""

    count = 3

    def collect(self, value: Any) -> list[Any]:
        return [value, 700, 900]


def test_of_several_ranks_the_one_with_least_memory_decides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def prepared(config: Config, *, room: int | None, **_: Any) -> Any:
        given.append(room)
        return SimpleNamespace(config=config)

    monkeypatch.setattr(run, "prepare", prepared)
    monkeypatch.setattr(run, "room_of", lambda _: 800)
    for tokens in ("auto", "300"):
        config = four_updates(folder, f"train.batch_tokens={tokens}")
        run.begin(config, RunDir(folder / "run"), resume=False, overwrite=False, device="cpu", ranks=Three(), say=print)
    assert given == [700, None]
