"""The store gives back what was put in, in order, with its ids, and notices when it is not whole."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from mt.data import build as building
from mt.data.build import Source, build_store
from mt.data.plan import Span
from mt.data.store import Store, is_whole
from mt.errors import RunError
from mt.formats.pairs import Pair
from tests import toy


def pairs(*sources: str, name: str = "train.src") -> list[Pair]:
    return [Pair(source, toy.translation(source), f"{name}:{number}") for number, source in enumerate(sources, 1)]


def stored(path: Path, *corpora: list[Pair]) -> Store:
    build_store(path, [Source(f"corpus {n}", corpus) for n, corpus in enumerate(corpora, 1)], toy.tokenizers(), max_pieces=100)
    return Store(path)


def test_pairs_come_back_with_their_ids(tmp_path: Path) -> None:
    wanted = pairs(*toy.sentences(5))
    store = stored(tmp_path / "train", wanted)
    tokenizer = toy.tokenizers().src
    assert len(store) == 5
    assert [example.pair for example in store.take(range(5))] == wanted == list(store.pairs())
    for example in store.take(range(5)):
        assert (example.src_ids, example.tgt_ids) == (tokenizer.encode(example.pair.src), tokenizer.encode(example.pair.tgt))


def test_what_is_asked_for_comes_in_that_order(tmp_path: Path) -> None:
    wanted = pairs(*toy.sentences(5))
    store = stored(tmp_path / "train", wanted)
    assert [example.pair for example in store.take([4, 0, 4, 2])] == [wanted[4], wanted[0], wanted[4], wanted[2]]
    assert store.take([]) == []


def test_a_draw_is_a_pair_and_a_pass(tmp_path: Path) -> None:
    first, second = pairs(*toy.sentences(3)), pairs(*toy.sentences(2, seed=1), name="more.src")
    found = stored(tmp_path / "train", first, second).take([0, 5, 13])
    assert [example.pair for example in found] == [first[0], first[0], second[0]]
    assert [(example.draw, example.corpus) for example in found] == [(0, 0), (5, 0), (13, 1)]


def test_lengths_are_in_pieces_without_eos(tmp_path: Path) -> None:
    store = stored(tmp_path / "train", pairs(*toy.sentences(7)))
    assert store.lengths_N2.tolist() == [[len(e.src_ids), len(e.tgt_ids)] for e in store.take(range(7))]


def test_corpora_follow_one_another(tmp_path: Path) -> None:
    first, second = pairs(*toy.sentences(3)), pairs(*toy.sentences(2, seed=1), name="more.src")
    store = stored(tmp_path / "train", first, second)
    assert store.spans == [Span(0, 3, 1.0), Span(3, 2, 1.0)]
    assert list(store.pairs()) == first + second
    assert {name: tally.line("x") for name, tally in store.tallies.items()} == {
        "corpus 1": "x: kept 3 of 3 pairs",
        "corpus 2": "x: kept 2 of 2 pairs",
    }


def test_corpora_of_one_name_are_told_apart(tmp_path: Path) -> None:
    build_store(tmp_path / "train", [Source("train.src", pairs(s)) for s in toy.sentences(3)], toy.tokenizers(), max_pieces=None)
    assert list(Store(tmp_path / "train").tallies) == ["train.src", "train.src (2)", "train.src (3)"]


def test_separate_tokenizers_encode_their_own_side(tmp_path: Path) -> None:
    src, tgt = separate = toy.tokenizers(joint=False)
    build_store(tmp_path / "train", [Source("train", pairs(*toy.sentences(3)))], separate, max_pieces=100)
    for example in Store(tmp_path / "train").take(range(3)):
        assert (src.decode(example.src_ids), tgt.decode(example.tgt_ids)) == (example.pair.src, example.pair.tgt)
        assert example.tgt_ids != src.encode(example.pair.tgt)


def test_any_character_survives(tmp_path: Path) -> None:
    odd = Pair('a "b"\u2028c\U0001f600', "<script>\u0000\u00ad", "train.src:1")
    assert list(stored(tmp_path / "train", [odd]).pairs()) == [odd]


def test_unknown_pieces_are_counted(tmp_path: Path) -> None:
    known, *_ = wanted = [*pairs("bage ."), Pair("bage \u4e2d\u6587 .", "\u4e2d .", "train.src:2")]
    tokenizer = toy.tokenizers().src
    assert stored(tmp_path / "known", [known]).unknown == 0
    assert stored(tmp_path / "train", wanted).unknown == sum(tokenizer.encode(text).count(tokenizer.unk) for text in wanted[1][:2]) > 0


def test_another_process_opens_it_for_itself(tmp_path: Path) -> None:
    """What is sent there is its path."""
    store = stored(tmp_path / "train", pairs(*toy.sentences(50)))
    sent = pickle.dumps(store)
    assert len(sent) < 300
    assert list(pickle.loads(sent).pairs()) == list(store.pairs())


@pytest.mark.parametrize("name", ["pairs.arrow", "lengths.bin", "store.json"])
@pytest.mark.parametrize("part", [None, 0.0, 0.3, 0.9])
def test_a_damaged_store_is_one_line(tmp_path: Path, name: str, part: float | None) -> None:
    path = stored(tmp_path / "train", pairs(*toy.sentences(50))).path
    assert is_whole(path)
    data = (path / name).read_bytes()
    (path / name).unlink()
    if part is not None:
        (path / name).write_bytes(data[: int(part * len(data))])
    assert not is_whole(path)
    with pytest.raises(RunError, match=rf"^{path}: is damaged or missing; remove this folder and .* --resume"):
        Store(path)


def test_a_store_cut_between_record_batches_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if somebody mended the lengths in its facts."""
    monkeypatch.setattr(building, "CHUNK", 4)
    short, whole = (stored(tmp_path / name, pairs(*toy.sentences(count))).path for name, count in (("short", 4), ("train", 8)))
    (short / "pairs.arrow").rename(whole / "pairs.arrow")
    facts = json.loads((whole / "store.json").read_text(encoding="utf-8"))
    facts["files"]["pairs.arrow"] = (whole / "pairs.arrow").stat().st_size
    (whole / "store.json").write_text(json.dumps(facts), encoding="utf-8")
    assert is_whole(whole)
    with pytest.raises(RunError, match="is damaged"):
        Store(whole)


@pytest.mark.parametrize("facts", ["[]", "{}", "1", '{"format": 99, "files": {}, "corpora": []}', "\xff"])
def test_a_store_of_another_version_is_not_whole(tmp_path: Path, facts: str) -> None:
    path = stored(tmp_path / "train", pairs(*toy.sentences(5))).path
    (path / "store.json").write_bytes(facts.encode("latin-1"))
    assert not is_whole(path)
