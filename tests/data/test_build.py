"""Making a store: what is dropped and counted, the same bytes from any number of processes, whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt.clean.filters import TextFilters
from mt.config.cleaning import FilterConfig
from mt.data import build as building
from mt.data.build import Source, build_store
from mt.data.store import Store
from mt.errors import DataError
from mt.formats.pairs import Pair
from tests import toy
from tests.runs import tree


def pairs(*sources: str, name: str = "train.src") -> list[Pair]:
    return [Pair(source, toy.translation(source), f"{name}:{number}") for number, source in enumerate(sources, 1)]


def build(path: Path, *corpora: list[Pair], max_pieces: int | None = 100, duplicates: bool = False, workers: int = 1) -> list[str]:
    """The lines about the corpora."""
    sources = [Source(f"corpus {n}", corpus, TextFilters(FilterConfig(copies=True), None)) for n, corpus in enumerate(corpora, 1)]
    kind = "exact" if duplicates else None
    build_store(path, sources, toy.tokenizers(), max_pieces=max_pieces, duplicates=kind, workers=workers)
    return [tally.line(name) for name, tally in Store(path).tallies.items()]


# ── what is dropped ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_empty_sides_long_pairs_and_what_the_filters_say_are_dropped_and_counted(tmp_path: Path) -> None:
    good = pairs("bage depe .", "fide .")
    long = Pair("bage " * 30 + ".", "dirkan .", "train.src:9")
    long_target = Pair("bage .", "dirkan " * 30 + ".", "train.src:10")
    blank, copy = Pair("bage .", "\u3000 ", "train.src:7"), Pair("bage .", "bage .", "train.src:8")
    lines = build(tmp_path / "train", [good[0], blank, copy, long, long_target, good[1]], max_pieces=20)
    assert lines == ["corpus 1: kept 2 of 6 pairs (2 longer than 20 pieces, 1 empty side, 1 source = target)"]
    store = Store(tmp_path / "train")
    assert list(store.pairs()) == good
    dropped = {reason: [example.origin for example in found] for reason, found in store.tallies["corpus 1"].examples.items()}
    assert dropped["longer than 20 pieces"] == ["train.src:9", "train.src:10"]


def test_the_limit_is_inclusive_and_none_is_no_limit(tmp_path: Path) -> None:
    (pair,) = pairs("bage depe fide .")
    tokenizer = toy.tokenizers().src
    longest = max(len(tokenizer.encode(pair.src)), len(tokenizer.encode(pair.tgt)))
    for limit in (longest, None):
        assert build(tmp_path / "train", [pair], max_pieces=limit) == ["corpus 1: kept 1 of 1 pair"]
    with pytest.raises(DataError, match=f"kept 0 of 1 pair .1 longer than {longest - 1} pieces"):
        build(tmp_path / "short", [pair], max_pieces=longest - 1)


def test_duplicates_are_dropped_wherever_the_first_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a chunk, in another chunk, in another corpus; a pair that was dropped itself makes no later one a duplicate."""
    monkeypatch.setattr(building, "CHUNK", 3)
    a, b, c, d, e = pairs(*toy.sentences(5))
    again = [pair._replace(origin=f"again:{n}") for n, pair in enumerate((a, c, e), 1)]
    long = Pair("bage " * 70, "dirkan", "train.src:9")
    lines = build(tmp_path / "train", [a, long, a, b, long, c, a], [again[0], d, *again[1:]], duplicates=True, max_pieces=60)
    assert lines == [
        "corpus 1: kept 3 of 7 pairs (2 longer than 60 pieces, 2 duplicate)",
        "corpus 2: kept 2 of 4 pairs (2 duplicate)",
    ]
    assert list(Store(tmp_path / "train").pairs()) == [a, b, c, d, again[2]]
    assert build(tmp_path / "all", [a, b, a]) == ["corpus 1: kept 3 of 3 pairs"]


def test_the_same_texts_with_another_tag_are_no_duplicates(tmp_path: Path) -> None:
    a, b, c = pairs(*toy.sentences(3))
    corpora = [Source(tag, chosen, tag=tag) for tag, chosen in (("de", [a, b]), ("fr", [a, c, a]), ("de", [b, c]))]
    build_store(tmp_path / "train", corpora, toy.tokenizers(), max_pieces=None, duplicates="exact", workers=1)
    assert list(Store(tmp_path / "train").pairs()) == [a, b, a, c, c]


def test_a_corpus_of_which_nothing_is_left(tmp_path: Path) -> None:
    a, b = pairs(*toy.sentences(2))
    with pytest.raises(DataError, match="^corpus 2: kept 0 of 1 pair .1 duplicate.; "):
        build(tmp_path / "train", [a], [a], [b], duplicates=True)
    with pytest.raises(DataError, match="^corpus 1: kept 0 of 1 pair .1 empty side.; "):
        build(tmp_path / "train", [Pair("", "x", "train.src:1")], [b])
    assert not list(tmp_path.iterdir())


# ── any number of processes ─────────────────────────────────────────────────────────────────────────────────────────


def mixed(count: int, name: str) -> list[Pair]:
    """Pairs of which some are empty, some long, some copies and some come twice."""
    sources = toy.sentences(count, seed=len(name), longest=30)
    found = pairs(*sources, name=name)
    for n in range(0, count, 7):
        found[n] = found[n]._replace(tgt=["", found[n].src, found[n // 2].tgt][n % 3])
        found[n // 3] = found[n]._replace(origin=found[n // 3].origin)
    return found


def test_the_bytes_do_not_depend_on_the_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "CHUNK", 16)
    corpora = mixed(150, "a.src"), mixed(31, "b.src")
    lines = build(tmp_path / "alone", *corpora, duplicates=True, max_pieces=70)
    assert all(reason in lines[0] for reason in ("empty side", "source = target", "longer than 70 pieces", "duplicate"))
    monkeypatch.setattr(building, "ALONE", 2)
    for workers in (2, 3):
        assert build(tmp_path / str(workers), *corpora, duplicates=True, max_pieces=70, workers=workers) == lines
        assert tree(tmp_path / str(workers)) == tree(tmp_path / "alone")


def test_how_pairs_are_cut_into_chunks_changes_nothing_but_record_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = mixed(100, "a.src")
    lines = build(tmp_path / "one", wanted, duplicates=True)
    for size, characters in ((7, 10**6), (100, 500)):
        monkeypatch.setattr(building, "CHUNK", size)
        monkeypatch.setattr(building, "CHUNK_CHARACTERS", characters)
        assert build(tmp_path / "other", wanted, duplicates=True) == lines
        one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
        assert one.take(range(len(one))) == other.take(range(len(one)))
        assert (tmp_path / "other" / "pairs.arrow").stat().st_size > (tmp_path / "one" / "pairs.arrow").stat().st_size


# ── whole or not at all ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_store_that_was_not_finished_does_not_exist(tmp_path: Path) -> None:
    build(tmp_path / "train", pairs("bage ."))

    def broken() -> Iterator[Pair]:
        yield from pairs(*toy.sentences(3))
        raise DataError("train.src has 4 lines, train.trg has 3")

    for name in ("train", "new"):
        with pytest.raises(DataError, match="has 4 lines"):
            build_store(tmp_path / name, [Source("train", broken())], toy.tokenizers(), max_pieces=100)
    assert [pair.src for pair in Store(tmp_path / "train").pairs()] == ["bage ."]
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_what_a_killed_process_left_half_made_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "train.partial").mkdir()
    (tmp_path / "train.partial" / "pairs.arrow").write_bytes(b"half")
    build(tmp_path / "train", pairs("bage ."))
    assert {path.name: sorted(file.name for file in path.iterdir()) for path in tmp_path.iterdir()} == {
        "train": ["lengths.bin", "pairs.arrow", "store.json"]
    }


@pytest.mark.parametrize("full", ["pa.record_batch", "write_facts"])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"mt.data.build.{full}", no_room)
    with pytest.raises(DataError, match="no space left on device; make room"):
        build(tmp_path / "train", pairs("bage ."))
    assert not list(tmp_path.iterdir())
