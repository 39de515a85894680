from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean import duplicates
from mt.clean.duplicates import Seen, fingerprint, fingerprints, normalised, text_fingerprint
from mt.errors import DataError
from mt.formats.pairs import Pair

LETTERS = st.text("abzßéüжщωאبकी한漢か", min_size=1, max_size=20)
NOISE = st.text("0123456789٣.,;!?'\"()-–…。、「」 \t\u00a0\u3000\u200b👍\ufe0f", max_size=5)


# ── fingerprints ────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(LETTERS, NOISE)))
def test_case_digits_punctuation_and_spacing_do_not_count(parts: list[tuple[str, str]]) -> None:
    bare = "".join(letters for letters, _ in parts) or "x"
    noisy = "".join(letters + noise for letters, noise in parts) or "x"
    assert normalised(noisy) == normalised(bare) == normalised(noisy.upper())
    assert fingerprint(Pair(noisy, bare, "a:1"), "normalised") == fingerprint(Pair(bare.upper(), noisy, "b:2"), "normalised")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello, world!", "hello world"),
        ("Kapitel 3: Straße", "KAPITEL 12 STRASSE"),
        ("Caf\u00e9", "cafe\u0301"),
        ("ＡＢＣ、ｶﾞ", "abcガ"),
        ("Привет!", "ПРИВЕТ"),
        ("我听不懂，请你慢一点说。", "我 听 不 懂 请 你 慢 一点 说"),
        ("Great ❤️ 👍🏽", "great"),
        ("मुझे 5 दो।", "मुझे दो"),
    ],
)
def test_normalised_texts_that_are_the_same(one: str, other: str) -> None:
    assert text_fingerprint(one, "normalised") == text_fingerprint(other, "normalised")
    assert text_fingerprint(one, "exact") != text_fingerprint(other, "exact")


@pytest.mark.parametrize(
    ("one", "other"), [("कि", "का"), ("ที่", "ที"), ("résumé", "resume"), ("12:30", "13:45"), ("?", "!"), ("一", "二"), ("", " ")]
)
def test_normalised_texts_that_are_not_the_same(one: str, other: str) -> None:
    assert text_fingerprint(one, "normalised") != text_fingerprint(other, "normalised")


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_exact_fingerprints_are_equal_just_for_equal_pairs(a: str, b: str, c: str, d: str) -> None:
    assert (fingerprint(Pair(a, b, "x"), "exact") == fingerprint(Pair(c, d, "y"), "exact")) == ((a, b) == (c, d))
    assert fingerprint(Pair(a, b, "x"), "exact") in range(2**64)


@pytest.mark.parametrize("kind", ["exact", "normalised"])
def test_what_moves_to_the_other_side_makes_another_pair(kind: Any) -> None:
    pairs = [Pair("ab", "c", ""), Pair("a", "bc", ""), Pair("c", "ab", ""), Pair("abc", "", "")]
    hashes = fingerprints(pairs, kind)
    assert hashes.tolist() == [fingerprint(pair, kind) for pair in pairs]
    assert len(set(hashes.tolist())) == len(pairs)


@pytest.mark.parametrize("kind", ["exact", "normalised"])
def test_another_tag_makes_another_pair(kind: Any) -> None:
    pair = Pair("Berlin", "Berlin", "a:1")
    hashes = [fingerprint(pair, kind, tag=tag) for tag in ("de", "fr", None)]
    assert len(set(hashes)) == 3
    assert fingerprint(pair._replace(origin="b:2"), kind, tag="fr") == hashes[1]


# ── the set ─────────────────────────────────────────────────────────────────────────────────────────────────────────

HASHES = st.integers(0, 40) | st.integers(2**64 - 40, 2**64 - 1) | st.integers(0, 2**64 - 1)


def expected(calls: list[list[int]]) -> list[list[bool]]:
    known: set[int] = set()
    return [[hash_ in known or known.add(hash_) is not None for hash_ in call] for call in calls]


@given(calls=st.lists(st.lists(HASHES, max_size=30), max_size=30), buffer=st.integers(1, 8), block=st.integers(1, 5))
def test_seen_agrees_with_a_set(calls: list[list[int]], buffer: int, block: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Seen(folder, buffer=buffer, block=block) as seen:
        assert [seen.add(np.array(call, dtype=np.uint64)).tolist() for call in calls] == expected(calls)
        assert len(seen) == len({hash_ for call in calls for hash_ in call})


def test_seen_agrees_with_a_set_through_runs_merges_and_larger_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    grown: list[int] = []
    write, grow = Seen._written, duplicates._Filter.grown
    monkeypatch.setattr(Seen, "_written", lambda self, blocks: (run := write(self, blocks), written.append(len(run)))[0])
    monkeypatch.setattr(duplicates._Filter, "grown", lambda self: (new := grow(self), grown.append(new._power))[0])
    rng = np.random.default_rng(1)
    known: set[int] = set()
    with Seen(tmp_path, buffer=200, block=50) as seen:
        for _ in range(300):
            call = rng.integers(0, 40_000, size=rng.integers(0, 200)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            assert seen.add(call).tolist() == [hash_ in known or known.add(hash_) is not None for hash_ in call.tolist()]
        assert len(seen) == len(known)
        assert max(written) > duplicates.FAN**2 * 200  # runs, runs of runs, and runs of these
        assert grown
        assert list(tmp_path.iterdir()) == []  # the files have no names, nothing can be left behind


def test_closed_it_has_forgotten_everything(tmp_path: Path) -> None:
    hashes = np.arange(100, dtype=np.uint64)
    with Seen(tmp_path / "new folder", buffer=10) as seen:
        assert not seen.add(hashes).any()
        assert seen.add(hashes).all()
    assert len(seen) == 0
    assert not seen.add(hashes).any()


def test_two_at_once_in_one_folder_are_two(tmp_path: Path) -> None:
    hashes = np.arange(100, dtype=np.uint64)
    with Seen(tmp_path, buffer=10) as one, Seen(tmp_path, buffer=10) as other:
        assert not one.add(hashes).any()
        assert not other.add(hashes).any()


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    seen = Seen(tmp_path, buffer=10)
    with pytest.raises(DataError) as caught:
        seen.add(np.arange(100, dtype=np.uint64))
    assert str(caught.value).startswith(f"{tmp_path}: the list of pairs seen cannot be kept there: no space left")
