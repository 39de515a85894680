"""The store gives back what was put in, in order, with its ids, and says what was left out."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt.data import store as store_module
from mt.data.pairs import Pair
from mt.data.store import Span, Store, build_store
from mt.errors import DataError, RunError
from tests import toy


def pairs(*sources: str, name: str = "train.src") -> list[Pair]:
    return [Pair(source, toy.translation(source), f"{name}:{number}") for number, source in enumerate(sources, 1)]


def build(path: Path, corpora: list[tuple[str, float, list[Pair]]], *, max_pieces: int | None = 100) -> list[str]:
    return build_store(path, corpora, toy.tokenizers(), max_pieces=max_pieces)


def test_pairs_come_back_with_their_ids(tmp_path: Path) -> None:
    wanted = pairs(*toy.sentences(5))
    build(tmp_path / "train", [("train", 1.0, wanted)])
    store = Store(tmp_path / "train")
    tokenizer = toy.tokenizers().src
    assert len(store) == 5
    assert [example.pair for example in store.take(range(5))] == wanted == list(store.pairs())
    for example in store.take(range(5)):
        assert (example.src_ids, example.tgt_ids) == (tokenizer.encode(example.pair.src), tokenizer.encode(example.pair.tgt))


def test_what_is_asked_for_comes_in_that_order(tmp_path: Path) -> None:
    wanted = pairs(*toy.sentences(5))
    build(tmp_path / "train", [("train", 1.0, wanted)])
    store = Store(tmp_path / "train")
    assert [example.pair for example in store.take([4, 0, 4, 2])] == [wanted[4], wanted[0], wanted[4], wanted[2]]
    assert store.take([]) == []


def test_lengths_are_in_pieces_without_eos(tmp_path: Path) -> None:
    build(tmp_path / "train", [("train", 1.0, pairs(*toy.sentences(7)))])
    store = Store(tmp_path / "train")
    assert store.lengths_N2.tolist() == [[len(e.src_ids), len(e.tgt_ids)] for e in store.take(range(7))]


def test_corpora_follow_one_another(tmp_path: Path) -> None:
    first, second = pairs(*toy.sentences(3)), pairs(*toy.sentences(2, seed=1), name="more.src")
    lines = build(tmp_path / "train", [("first", 1.0, first), ("second", 2.5, second)])
    store = Store(tmp_path / "train")
    assert store.spans == [Span(0, 3, 1.0), Span(3, 2, 2.5)]
    assert list(store.pairs()) == first + second
    assert lines == ["first: kept 3 of 3 pairs", "second: kept 2 of 2 pairs"]


def test_empty_sides_and_long_pairs_are_dropped_and_counted(tmp_path: Path) -> None:
    good = pairs("bage depe .", "fide .")
    long = Pair("bage " * 30 + ".", "dirkan .", "train.src:9")
    long_target = Pair("bage .", "dirkan " * 30 + ".", "train.src:10")
    blank = Pair("bage .", "\u3000 ", "train.src:7")
    lines = build(tmp_path / "train", [("train", 1.0, [good[0], blank, long, long_target, good[1]])], max_pieces=20)
    assert lines == ["train: kept 2 of 5 pairs (2 longer than 20 pieces, 1 empty side)"]
    assert list(Store(tmp_path / "train").pairs()) == good


def test_the_limit_is_inclusive_and_none_is_no_limit(tmp_path: Path) -> None:
    (pair,) = pairs("bage depe fide .")
    tokenizer = toy.tokenizers().src
    longest = max(len(tokenizer.encode(pair.src)), len(tokenizer.encode(pair.tgt)))
    for limit in (longest, None):
        assert build(tmp_path / "train", [("train", 1.0, [pair])], max_pieces=limit) == ["train: kept 1 of 1 pair"]
    with pytest.raises(DataError, match=f"kept 0 of 1 pair .1 longer than {longest - 1} pieces"):
        build(tmp_path / "short", [("train", 1.0, [pair])], max_pieces=longest - 1)


def test_more_pairs_than_one_record_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "ROWS", 4)
    wanted = pairs(*toy.sentences(11))
    wanted[4:8] = [Pair("", "x", "train.src:5")] * 4  # a whole record batch of nothing
    build(tmp_path / "train", [("train", 1.0, wanted)])
    assert list(Store(tmp_path / "train").pairs()) == wanted[:4] + wanted[8:]


def test_separate_tokenizers_encode_their_own_side(tmp_path: Path) -> None:
    src, tgt = separate = toy.tokenizers(joint=False)
    wanted = pairs(*toy.sentences(3))
    build_store(tmp_path / "train", [("train", 1.0, wanted)], separate, max_pieces=100)
    for example in Store(tmp_path / "train").take(range(3)):
        assert (src.decode(example.src_ids), tgt.decode(example.tgt_ids)) == (example.pair.src, example.pair.tgt)
        assert example.tgt_ids != src.encode(example.pair.tgt)


def test_any_character_survives(tmp_path: Path) -> None:
    odd = Pair('a "b"\u2028c\U0001f600', "<script>\u0000\u00ad", "train.src:1")
    build(tmp_path / "train", [("train", 1.0, [odd])])
    assert list(Store(tmp_path / "train").pairs()) == [odd]


def test_a_store_that_was_not_finished_does_not_exist(tmp_path: Path) -> None:
    build(tmp_path / "train", [("train", 1.0, pairs("bage ."))])

    def broken() -> Iterator[Pair]:
        yield from pairs(*toy.sentences(3))
        raise DataError("train.src has 4 lines, train.trg has 3")

    with pytest.raises(DataError, match="has 4 lines"):
        build_store(tmp_path / "train", [("train", 1.0, broken())], toy.tokenizers(), max_pieces=100)
    assert [pair.src for pair in Store(tmp_path / "train").pairs()] == ["bage ."]
    with pytest.raises(DataError, match="has 4 lines"):
        build_store(tmp_path / "new", [("train", 1.0, broken())], toy.tokenizers(), max_pieces=100)
    assert {path.name for path in tmp_path.iterdir()} == {"train", "train.json"}


@pytest.mark.parametrize("name", ["train", "train.json"])
@pytest.mark.parametrize("part", [None, 0.0, 0.3, 0.9])
def test_a_damaged_store_is_one_line(tmp_path: Path, name: str, part: float | None) -> None:
    build(tmp_path / "train", [("train", 1.0, pairs(*toy.sentences(50)))])
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    if part is not None:
        (tmp_path / name).write_bytes(data[: int(part * len(data))])
    with pytest.raises(RunError, match=rf"^{tmp_path / name}: is damaged or missing; copy .* --overwrite$"):
        Store(tmp_path / "train")


def test_a_store_cut_between_record_batches_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "ROWS", 4)
    for name, count in ("short", 4), ("train", 8):
        build(tmp_path / name, [("train", 1.0, pairs(*toy.sentences(count)))])
    (tmp_path / "short").rename(tmp_path / "train")
    with pytest.raises(RunError, match="is damaged"):
        Store(tmp_path / "train")


@pytest.mark.parametrize("full", ["pairs", "spans"])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((store_module.pa, "record_batch") if full == "pairs" else (store_module.json, "dump")), no_room)
    with pytest.raises(DataError, match="no space left on device"):
        build(tmp_path / "train", [("train", 1.0, pairs("bage ."))])
    assert not list(tmp_path.iterdir())
