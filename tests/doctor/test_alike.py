"""What is too close to held-out pairs: as the leakage check has it, however the texts are cut into parts."""

from __future__ import annotations

import pickle

import pytest

from mt.doctor import alike
from mt.doctor.alike import Alike, blocks, without_alike
from mt.doctor.leakage import HeldOut, Leaks
from mt.formats.pairs import Pair
from tests.corpora import pairs

HELD_OUT = [Pair(*sides, "dev") for sides in pairs(30)]
STRANGERS = [Pair(*sides, "train") for sides in pairs(60, seed=1)]
NEAR = [Pair(pair.src.upper() + "!", "ganz anders", "near") for pair in HELD_OUT[:5]] + [Pair("quite other", HELD_OUT[7].tgt, "same")]


def rows(found: Alike) -> set[int]:
    mixed = [*NEAR, *STRANGERS]
    return found([pair.src for pair in mixed], [pair.tgt for pair in mixed])


def test_it_is_what_the_leakage_check_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    index = HeldOut({"dev": HELD_OUT})
    mixed = [*NEAR, *STRANGERS]
    met = Leaks(index).look([pair.src for pair in mixed], [pair.tgt for pair in mixed], mixed.__getitem__)
    assert set(range(len(NEAR))) <= set(met) < set(range(len(mixed)))
    found = Alike(index)
    assert rows(found) == set(met)
    monkeypatch.setattr(alike, "BLOCK", 100)
    assert rows(found) == rows(pickle.loads(pickle.dumps(found))) == set(met)


def test_without_them_nothing_is_met() -> None:
    left = without_alike([*NEAR, *STRANGERS], HELD_OUT)
    assert left
    assert not Leaks(HeldOut({"dev": HELD_OUT})).look([pair.src for pair in left], [pair.tgt for pair in left], left.__getitem__)
    assert without_alike(STRANGERS, []) == STRANGERS


def test_parts_cover_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "BLOCK", 10)
    lengths = [3, 4, 5, 20, 1, 1, 11]
    parts = list(blocks(lengths))
    assert [row for part in parts for row in range(len(lengths))[part]] == list(range(len(lengths)))
    assert all(sum(lengths[part][:-1]) <= 10 for part in parts)
    assert list(blocks([])) == []
