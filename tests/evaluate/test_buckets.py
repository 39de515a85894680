"""Each line is in one bucket, and in the right one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.evaluate.buckets import Division, by_difficulty, by_length, by_names, by_numbers, by_rarity, divisions, seen, useful, words


def labelled(division: Division) -> list[str]:
    return [division.labels[bucket] for bucket in division.bucket_of]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60))
def test_buckets_by_a_number_are_in_its_order_and_part_no_equals(scores: list[float]) -> None:
    division = by_difficulty(scores)
    order = sorted(range(len(scores)), key=scores.__getitem__)
    assert [division.bucket_of[line] for line in order] == sorted(division.bucket_of)
    for one, bucket in zip(scores, division.bucket_of, strict=True):
        assert {other for score, other in zip(scores, division.bucket_of, strict=True) if score == one} == {bucket}


def test_four_buckets_of_as_many_lines_each() -> None:
    division = by_length([" ".join(["word"] * count) for count in range(1, 101)], side="source")
    assert division.labels == ("1–25", "26–50", "51–75", "76–100")
    assert [len(division.lines(bucket)) for bucket in range(4)] == [25, 25, 25, 25]


def test_words_are_characters_where_there_are_no_spaces() -> None:
    assert words("Don't: 3,5 große_Bäume!") == ["Don", "t", "3", "5", "große_Bäume"]
    assert words("今天 OK下雨") == ["今", "天", "OK", "下", "雨"]


def test_numbers() -> None:
    assert by_numbers(["Two birds.", "2 birds.", "٣ birds"], side="source").bucket_of == (0, 1, 1)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("The fox runs.", False),
        ("The fox meets Anna.", True),
        ("The fox runs. It sings.", False),
        ("The fox said: «Come!»", False),
        ("The fox and I sing.", False),
        ("the fox (in Rome)", True),
        ("", False),
        ("今天下雨了", False),
    ],
)
def test_names_are_capitals_that_no_beginning_explains(line: str, named: bool) -> None:
    assert by_names([line], side="source").bucket_of == (int(named),)


def test_the_rarest_word_of_a_line_decides_whatever_its_case() -> None:
    training = ["The fox runs.", "the FOX sings", "A fox."]
    lines = ["The fox!", "A fox", "a new fox", "…"]
    counts = seen(training, lines)
    assert (counts["the"], counts["fox"], counts["new"], counts["runs"]) == (2, 3, 0, 0)
    assert labelled(by_rarity(lines, counts, rare=2, side="source")) == ["2 times or more", "less than 2 times", "never", "2 times or more"]


def test_what_divides_nothing_is_left_out_and_so_are_empty_buckets() -> None:
    (only,) = useful([by_numbers(["a", "b"], side="source"), Division("x", ("p", "q", "r"), (2, 0))])
    assert (only.labels, only.bucket_of) == (("p", "r"), (1, 0))


def test_names_are_looked_for_where_nouns_have_no_capitals() -> None:
    def titles(sources: list[str] | None, langs: tuple[str | None, str | None]) -> list[str]:
        return [one.title for one in divisions(sources, ["x"], langs=langs)]

    assert any("names in the source" in title for title in titles(["x"], ("en", "de")))
    assert any("names in the reference" in title for title in titles(["x"], ("de-AT", "en")))
    assert any("names in the reference" in title for title in titles(None, ("en", "fr")))
    assert not any("names" in title for title in titles(None, ("en", "de")))
