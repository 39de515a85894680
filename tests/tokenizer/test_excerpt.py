"""What a tokenizer is trained on: everything, or of a large corpus a uniform sample that is the same every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from mt.tokenizer import excerpt as excerpts
from mt.tokenizer.excerpt import Excerpt, Texts, excerpt


def taken(items: Sequence[str | Sequence[str]], *, most: int = 400, most_bytes: int = 10_000, seed: int = 1, block: int = 7) -> Excerpt:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(excerpts, "SAMPLE_LINES", most)
        patch.setattr(excerpts, "SAMPLE_BYTES", most_bytes)
        patch.setattr(excerpts, "BLOCK", block)
        return excerpt(items, lambda item: item, max_bytes=100, seed=seed)


LINES = [f"line {n}" for n in range(400)]


def test_every_line_is_as_likely_to_be_taken() -> None:
    drawn = Counter(line for seed in range(400) for line in taken(LINES[:40], most=10, seed=seed).texts)
    assert drawn.total() == 4000
    assert set(drawn) == set(LINES[:40])
    assert max(abs(n - 100) for n in drawn.values()) < 50  # more than five standard deviations of 8.7


def test_the_sample_is_that_of_the_seed_however_it_is_read() -> None:
    one = taken(LINES, most=30)
    assert one.sampled
    assert len(one.texts) == 30
    assert [*taken(LINES, most=30, block=1000).texts] == [*one.texts]
    assert [*taken(LINES, most=30, seed=2).texts] != [*one.texts]
    assert [LINES.index(text) for text in one.texts] == sorted(LINES.index(text) for text in one.texts)


def test_a_smaller_sample_is_part_of_a_larger_one() -> None:
    """Those of the least hashes: what was thrown away on the way does not matter."""
    assert set(taken(LINES, most=20).texts) < set(taken(LINES, most=100).texts)


def test_long_lines_make_a_smaller_sample() -> None:
    """Of the least hashes as many as the bytes allow, however it is read; but one line is better than none."""
    one = taken(LINES, most_bytes=200)
    assert 180 < sum(map(len, one.texts)) <= 200
    assert [*taken(LINES, most_bytes=200, block=1000).texts] == [*one.texts]
    assert set(one.texts) < set(taken(LINES, most=50).texts)
    assert len(taken(LINES, most_bytes=3).texts) == len(taken(LINES[:1], most_bytes=3).texts) == 1


def test_up_to_the_sample_size_nothing_is_lost() -> None:
    found = taken([*LINES[:40], "", "x" * 101], most=40)
    assert [*found.texts] == LINES[:40]
    assert (found.lines, found.too_long, found.sampled) == (42, 1, False)


def test_lines_without_text_take_nobodys_place() -> None:
    """The least hashes are those of the lines that can be used."""
    mixed = [line for n, text in enumerate(LINES) for line in ([text, " "] if n % 2 else [text])]
    assert len(taken(mixed, most=200).texts) == 200
    assert not any(text.isspace() for text in taken(mixed, most=200).texts)


def test_of_a_large_corpus_few_items_are_looked_at() -> None:
    looked: list[int] = []

    def line_of(item: int) -> str | None:
        looked.append(item)
        return None if item % 3 == 0 else str(item)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(excerpts, "SAMPLE_LINES", 50)
        patch.setattr(excerpts, "BLOCK", 10)
        found = excerpt(range(10_000), line_of, max_bytes=100, seed=1)
    assert len(found.texts) == 50
    assert not any(int(text) % 3 == 0 for text in found.texts)
    assert len(looked) < 1000


def test_both_sides_of_a_pair_are_taken_together() -> None:
    found = taken([(line, line.upper()) for line in LINES], most=20)
    texts = [*found.texts]
    assert len(found.texts) == 20
    assert [text.upper() for text in texts[::2]] == texts[1::2]


def test_texts_are_given_back_as_they_are() -> None:
    lines = [("a", ""), ("\r\u2028\x85 \U0001f600",), ("",)]
    assert [*Texts(lines)] == ["a", "", "\r\u2028\x85 \U0001f600", ""]
