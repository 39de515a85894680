"""The batches of a run: every pair once an epoch, from any position on, the same ones from any number of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config.schema import AugmentConfig, BpeDropout, Sample
from mt.data.augment import Augmenter
from mt.data.batches import Batch
from mt.data.build import Source, build_store
from mt.data.loader import TrainingData
from mt.data.plan import Cursor, Span
from mt.data.store import Store
from mt.formats.pairs import Pair
from tests import toy

COUNT = 103


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 103 toy pairs, numbered from 1."""
    pairs = [Pair(source, toy.translation(source), f"train.src:{n}") for n, source in enumerate(toy.sentences(COUNT), 1)]
    path = tmp_path_factory.mktemp("loader") / "train"
    build_store(path, [Source("train", pairs)], toy.tokenizers(), max_pieces=None)
    return path


@pytest.fixture(scope="module")
def store(path: Path) -> Store:
    return Store(path)


def training_data(
    store: Store, *, sample: Sample | None = None, noise: AugmentConfig | None = None, max_pieces: int | None = None, **settings: Any
) -> TrainingData:
    given = {"budget": 150, "seed": 1, "window": 40, **settings}
    of = toy.tokenizers()
    augment = Augmenter(noise or AugmentConfig(), sample=sample, tokenizers=of, max_pieces=max_pieces, seed=given["seed"])
    return TrainingData(store, of, augment=augment, **given)


def rows(batch: Batch) -> dict[str, tuple[list[int], list[int], list[int]]]:
    """Source, inputs and gold of each pair, by where it comes from."""
    columns = (batch.src_BS.tolist(), batch.inputs_BT.tolist(), batch.gold_BT.tolist())
    return {origin: row for origin, *row in zip(batch.origins, *columns, strict=bool(batch.origins))}


def drawn(data: TrainingData, cursor: Cursor, *, size: int, count: int) -> list[tuple[Any, Cursor]]:
    """So many groups from there on, in a form that can be compared."""
    groups = data.groups(cursor, size=size)
    try:
        return [([rows(batch) for batch in micro], after) for micro, after in islice(groups, count)]
    finally:
        groups.close()


def epoch_of(data: TrainingData, *, size: int = 1, epoch: int = 0) -> list[list[Batch]]:
    """The micro-batches of each update of an epoch."""
    updates = []
    groups = data.groups(Cursor(epoch), size=size)
    for micro, after in groups:
        updates.append(micro)
        if after.epoch > epoch:
            groups.close()
            return updates
    raise AssertionError


def origins(updates: list[list[Batch]]) -> list[str]:
    return sorted(origin for micro in updates for batch in micro for origin in batch.origins)


EVERY = sorted(f"train.src:{n}" for n in range(1, COUNT + 1))


# ── order ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 3])
def test_an_epoch_of_groups_holds_every_pair_once(store: Store, size: int) -> None:
    updates = epoch_of(training_data(store), size=size)
    assert origins(updates) == EVERY
    assert {len(micro) for micro in updates[:-1]} == {size}


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_see_every_pair_once_in_as_many_updates(store: Store, ranks: int) -> None:
    every = [epoch_of(training_data(store, rank=rank, ranks=ranks), size=2) for rank in range(ranks)]
    assert origins([micro for updates in every for micro in updates]) == EVERY
    assert len({tuple(map(len, updates)) for updates in every}) == 1
    for batch in (batch for updates in every for micro in updates for batch in micro):
        assert batch.tokens == int((batch.gold_BT != 0).sum())


@settings(max_examples=20)
@given(size=st.integers(1, 4), resumed_at=st.integers(0, 19), sampled=st.booleans(), rank=st.integers(0, 1))
def test_going_on_from_any_cursor_gives_the_rest(store: Store, size: int, resumed_at: int, sampled: bool, rank: int) -> None:
    given_ = {"sample": BpeDropout(bpe_dropout=0.2) if sampled else None, "rank": rank, "ranks": 2}
    every = drawn(training_data(store, **given_), Cursor(), size=size, count=20)
    cursor = every[resumed_at - 1][1] if resumed_at else Cursor()
    assert drawn(training_data(store, **given_), cursor, size=size, count=20 - resumed_at) == every[resumed_at:]
    assert every[-1][1].epoch >= 1, "the test should see the end of an epoch"


def test_another_seed_gives_other_batches(store: Store) -> None:
    one, other = (drawn(training_data(store, seed=seed), Cursor(), size=1, count=3) for seed in (1, 2))
    assert one != other


def test_weights_are_honoured(store: Store) -> None:
    spans = [Span(0, 100, 2.5), Span(100, 3, 0.5)]
    seen = Counter(origins(epoch_of(training_data(store, spans=spans))))
    assert Counter(seen[f"train.src:{n}"] for n in range(1, 101)) == {2: 50, 3: 50}
    assert sum(seen[f"train.src:{n}"] for n in (101, 102, 103)) == 2


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("workers", [1, 3, 4])
def test_63_any_number_of_workers_gives_the_same_batches(store: Store, workers: int) -> None:
    """Every pair once, too: row 63 of the list of trouble cases. Neither is torch's generator touched, which dropout draws from."""
    sample = BpeDropout(bpe_dropout=0.2)
    count = len(epoch_of(training_data(store), size=2)) + 2
    alone = drawn(training_data(store, sample=sample), Cursor(0, 1), size=2, count=count)
    before = torch.get_rng_state()
    assert drawn(training_data(store, sample=sample, workers=workers), Cursor(0, 1), size=2, count=count) == alone
    assert torch.equal(torch.get_rng_state(), before)
    assert origins(epoch_of(training_data(store, workers=workers))) == EVERY


PROGRAM = """
import os, signal, sys
from pathlib import Path
from mt.data.loader import TrainingData
from mt.data.plan import Cursor
from mt.data.store import Store
from tests import toy
if __name__ == "__main__":
    data = TrainingData(Store(Path(sys.argv[1])), toy.tokenizers(), budget=150, seed=1, workers=2)
    groups = data.groups(Cursor(), size=1)
    for _ in range(3):
        next(groups)
    print("ready", flush=True)
    match sys.argv[2]:
        case "end":
            pass
        case "error":
            raise ZeroDivisionError
        case "signals":  # to the whole process group, as a terminal and a batch system do; training goes on until it has saved
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.signal(number, lambda *_: None)
                os.killpg(0, number)
                signal.signal(number, before)
            for _ in range(30):
                next(groups)
            print("went on", flush=True)
        case name:
            os.kill(os.getpid(), signal.Signals[name])
            next(groups)
"""


@pytest.mark.parametrize(
    ("how", "code", "complaint"),
    [
        ("end", 0, None),
        ("error", 1, "ZeroDivisionError"),
        ("SIGINT", -signal.SIGINT, "KeyboardInterrupt"),
        ("SIGKILL", -signal.SIGKILL, None),
    ],
    ids=str,
)
def test_workers_end_with_the_process_that_started_them(path: Path, tmp_path: Path, how: str, code: int, complaint: str | None) -> None:
    """However it ends, quickly, without a word of theirs. The pipe is at its end only when all that hold it are gone."""
    done = run_program(path, tmp_path, how)
    assert done.returncode == code, done.stderr
    assert done.stdout.split() == ["ready"]
    if complaint:
        assert (done.stderr.count("Traceback"), done.stderr.splitlines()[-1]) == (1, complaint)
    elif how == "end":
        assert done.stderr == ""
    else:
        assert "Traceback" not in done.stderr  # but Python may count what the killed process could not give back


def test_workers_leave_signals_to_the_process_that_started_them(path: Path, tmp_path: Path) -> None:
    done = run_program(path, tmp_path, "signals")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["ready", "went", "on"], "")


def run_program(path: Path, tmp_path: Path, how: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, program, path, how]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=180, start_new_session=True)


# ── sub-word sampling ───────────────────────────────────────────────────────────────────────────────────────────────


def sampled(store: Store, *, epoch: int = 0, **settings: Any) -> dict[str, Any]:
    """The rows of the first window of an epoch, wherever they are in it."""
    data = training_data(store, budget=10**6, window=10**6, **settings)
    return rows(data.batch(Cursor(epoch)))


def unpadded(ids: list[int]) -> list[int]:
    return [i for i in ids if i != toy.tokenizers().src.pad]


def test_sampled_pieces_spell_the_same_text(store: Store) -> None:
    plain, found = sampled(store), sampled(store, sample=BpeDropout(bpe_dropout=0.3))
    tokenizer = toy.tokenizers().src
    for pair in store.pairs():
        assert [tokenizer.decode(ids) for ids in found[pair.origin]] == [pair.src, pair.tgt, pair.tgt]
    assert sum(unpadded(found[origin][0]) != unpadded(plain[origin][0]) for origin in plain) > 90


def test_sampling_is_a_function_of_seed_epoch_and_draw(store: Store) -> None:
    sample = BpeDropout(bpe_dropout=0.3)
    one = sampled(store, sample=sample)
    assert sampled(store, sample=sample) == one
    assert all(other != one for other in (sampled(store, sample=sample, epoch=1), sampled(store, sample=sample, seed=2)))


def test_the_company_in_a_batch_does_not_matter(store: Store) -> None:
    sample = BpeDropout(bpe_dropout=0.3)
    whole = {origin: [unpadded(ids) for ids in row] for origin, row in sampled(store, sample=sample).items()}
    small = training_data(store, sample=sample, budget=60)
    for micro in epoch_of(small):
        for origin, row in rows(micro[0]).items():
            assert [unpadded(ids) for ids in row] == whole[origin]


def test_a_pair_that_comes_again_in_an_epoch_is_sampled_anew(store: Store) -> None:
    data = training_data(store, spans=[Span(0, COUNT, 2.0)], sample=BpeDropout(bpe_dropout=0.3), budget=10**6, window=10**6)
    batch = data.batch(Cursor())
    seen: dict[str, list[list[int]]] = {}
    for origin, ids in zip(batch.origins, batch.src_BS.tolist(), strict=True):
        seen.setdefault(origin, []).append(ids)
    assert sum(one != other for one, other in seen.values()) > 80


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_only_the_sides_asked_for_are_sampled(store: Store, side: Any) -> None:
    plain, found = sampled(store), sampled(store, sample=BpeDropout(bpe_dropout=0.3, sides=[side]))

    def changed(column: int) -> list[str]:
        return [origin for origin in plain if unpadded(plain[origin][column]) != unpadded(found[origin][column])]

    source, inputs, gold = map(changed, range(3))
    assert (len(source) > 90, len(gold) > 90) == (side == "src", side == "tgt")
    assert gold == inputs
    assert gold == [] if side == "src" else source == []


def test_where_sampled_pieces_would_be_too_many_the_usual_ones_stay(store: Store) -> None:
    longest = int(store.lengths_N2.max())
    free = sampled(store, sample=BpeDropout(bpe_dropout=0.9))
    held = sampled(store, sample=BpeDropout(bpe_dropout=0.9), max_pieces=longest)
    assert max(len(row[0]) for row in free.values()) > longest + 1  # an end mark is not counted
    assert max(len(unpadded(ids)) for row in held.values() for ids in row) <= longest + 1
    assert any(unpadded(held[origin][0]) == unpadded(free[origin][0]) for origin in free)  # where there is room, it is sampled


def test_noise_does_not_depend_on_the_batch(store: Store) -> None:
    noise = AugmentConfig(token_drop=0.2, token_mask=0.1)
    whole = {origin: [unpadded(ids) for ids in row] for origin, row in sampled(store, noise=noise, epoch=2).items()}
    assert whole != {origin: [unpadded(ids) for ids in row] for origin, row in sampled(store, epoch=2).items()}
    data = training_data(store, noise=noise, budget=60)
    for place, after in data.order.cursors(Cursor(2)):
        for origin, row in rows(data.batch(place)).items():
            assert [unpadded(ids) for ids in row] == whole[origin]
        if after.epoch == 3:
            break


# ── everything at once ──────────────────────────────────────────────────────────────────────────────────────────────

EVERYTHING = AugmentConfig.model_validate(
    {"token_drop": 0.1, "token_mask": 0.1, "local_shuffle": {"probability": 0.5}, "upper_case": 0.2, "strip_punctuation": 0.3}
)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of two corpora, the second the first one turned round."""
    texts = [(source, toy.translation(source)) for source in toy.sentences(COUNT)]
    corpora = [Source("there", [Pair(*text, f"there:{n}") for n, text in enumerate(texts)])]
    corpora += [Source("back", [Pair(*text[::-1], f"back:{n}") for n, text in enumerate(texts)])]
    path = tmp_path_factory.mktemp("two") / "train"
    build_store(path, corpora, toy.tokenizers(), max_pieces=None)
    return Store(path)


def every_row(two: Store, *, size: int = 1, ranks: int = 1, epoch: int = 1, **settings: Any) -> Counter[tuple[str, tuple[int, ...], ...]]:
    """Origin, source and gold of each pair that the ranks see in an epoch, and how often; the second corpus comes twice."""
    spans = [replace(span, weight=weight) for span, weight in zip(two.spans, (1, 2), strict=True)]
    given = {
        "noise": EVERYTHING,
        "sample": BpeDropout(bpe_dropout=0.3),
        "prefixes": [(7,), (9,)],
        "spans": spans,
        "max_pieces": 60,
        **settings,
    }
    found = Counter[tuple[str, tuple[int, ...], ...]]()
    for rank in range(ranks):
        for micro in epoch_of(training_data(two, rank=rank, ranks=ranks, **given), size=size, epoch=epoch):
            for batch in micro:
                sides = (batch.src_BS.tolist(), batch.gold_BT.tolist())
                found.update((origin, *(tuple(unpadded(ids)) for ids in row)) for origin, *row in zip(batch.origins, *sides, strict=False))
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {"workers": 2},
        {"ranks": 2, "size": 3},
        {"workers": 2, "ranks": 2, "size": 2, "budget": 60},
        {"budget": 10**6, "window": 10**6},
        {"budget": 60, "size": 5},
    ],
    ids=str,
)
def test_each_pair_is_seen_as_often_as_it_should_with_the_same_noise(two: Store, settings: dict[str, Any]) -> None:
    """Neither workers, ranks nor the size of batches and updates change which ids a pair has, with noise and tags."""
    found = every_row(two, **settings)
    assert Counter(origin for origin, *_ in found.elements()) == {
        f"{name}:{n}": c for name, c in (("there", 1), ("back", 2)) for n in range(COUNT)
    }
    assert {(origin.split(":")[0], source[0]) for origin, source, _ in found} == {("there", 7), ("back", 9)}
    assert found == every_row(two)


def test_a_pair_that_comes_twice_has_another_noise_each_time_and_in_each_epoch(two: Store) -> None:
    first, second = (every_row(two, epoch=epoch) for epoch in (0, 1))
    assert sum(count for row, count in first.items() if row[0].startswith("back")) == 2 * COUNT
    twice = Counter(origin for origin, *_ in first)  # different rows
    assert sum(twice[f"back:{n}"] == 2 for n in range(COUNT)) > 90
    assert len(first & second) < 10


# ── target languages ────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_corpus_has_its_tag_before_the_source(store: Store) -> None:
    plain, tagged = sampled(store), sampled(store, prefixes=[(7,)])
    assert plain.keys() == tagged.keys()
    for origin, row in plain.items():
        assert unpadded(tagged[origin][0]) == [7, *unpadded(row[0])]
        assert tagged[origin][1:] == row[1:]


@pytest.fixture(scope="module")
def half_synthetic(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two corpora of one kind of pairs."""
    pairs = [Pair(source, toy.translation(source), f"{n}") for n, source in enumerate(toy.sentences(COUNT))]
    path = tmp_path_factory.mktemp("half") / "train"
    build_store(path, [Source("real", pairs[:50]), Source("made", pairs[50:])], toy.tokenizers(), max_pieces=None)
    return Store(path)


def test_a_prefix_counts_in_the_corpus_that_has_it(half_synthetic: Store) -> None:
    data = training_data(half_synthetic, prefixes=[(7,), (5, 7)], budget=60)
    found: dict[int, list[int]] = {0: [], 1: []}
    for window in range(data.order.windows):
        for number, batch in enumerate(data.order.batches(0, window)):
            made = data.batch(Cursor(0, window, number))
            assert len(batch) == 1 or max(made.src_BS.numel(), made.gold_BT.numel()) <= 60
            for origin, row in zip(made.origins, made.src_BS.tolist(), strict=True):
                found[int(origin) >= 50].append(row[:2] == [5, 7] if int(origin) >= 50 else row[0] == 7)
    assert (len(found[0]), len(found[1])) == (50, COUNT - 50)
    assert all(found[0] + found[1])
    plain = training_data(half_synthetic, budget=60).order.measure().real
    assert data.order.measure().real == plain + 50 + 2 * (COUNT - 50)


def test_the_budget_counts_end_mark_and_tag(store: Store) -> None:
    tagged = training_data(store, prefixes=[(7,)], budget=60)
    for window in range(tagged.order.windows):
        for number, batch in enumerate(tagged.order.batches(0, window)):
            made = tagged.batch(Cursor(0, window, number))
            assert len(batch) == 1 or max(made.src_BS.numel(), made.gold_BT.numel()) <= 60
    assert tagged.order.measure().real == training_data(store, budget=60).order.measure().real + COUNT
