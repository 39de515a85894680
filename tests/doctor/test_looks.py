"""The sample and what is told of it: bounded whatever comes, and of one mind with the filters."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean.filters import TextFilters
from mt.config.cleaning import FilterConfig
from mt.config.schema import Langs
from mt.doctor.looks import Sample, looks
from mt.doctor.reading import Places
from mt.formats.pairs import Pair


def sample_of(pairs: list[tuple[str, str]], **bounds: int) -> Sample:
    """A sample of records, given in blocks."""
    sample = Sample(**bounds)
    for start in range(0, len(pairs), 100):
        src, tgt = (list(side) for side in zip(*pairs[start : start + 100], strict=True))
        sample.add(src, tgt, list(range(len(src))), Places(("", ""), [f"x.jsonl:{start + row}" for row in range(len(src))]))
    return sample


def test_a_sample_keeps_nothing_of_the_blocks_it_was_drawn_from() -> None:
    sample = sample_of([(f"a{n}", f"b{n}") for n in range(5000)], most=50)
    kept = [(pair.src, place(0)) for pair, place in sample.pairs()]
    assert len(kept) == 50
    assert all(src == f"a{place.removeprefix('x.jsonl:')}" for src, place in kept)
    assert not any(isinstance(item, Places) for entry in sample._kept for item in entry)


@pytest.mark.parametrize("length", [10, 1000, 100_000])
def test_a_sample_of_long_texts_has_fewer_pairs(length: int) -> None:
    sample = sample_of([("x" * length, "y")] * 1000, most=500, most_characters=200_000)
    assert 1 <= len(sample) <= 500
    assert len(sample) == 1 or len(sample) * (length + 1) <= 200_000
    assert sample.seen == 1000


def test_a_thinned_sample_is_still_drawn_from_all() -> None:
    rng = random.Random(1)
    pairs = [(f"{n:05d}" + "x" * rng.randint(0, 50), "y") for n in range(4000)]
    numbers = [int(pair.src[:5]) for pair, _ in sample_of(pairs, most=2000, most_characters=20_000).pairs()]
    assert 200 < len(numbers) < 1000
    assert 0.4 < sum(number < 2000 for number in numbers) / len(numbers) < 0.6


WORDS = "OK", "USB", "Microsoft", "the", "house", "домой", "пришёл", "東京", "タワー", "서울", "ελληνικά", "www.example.com/x", "12", "!"
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
LANGUAGES = st.sampled_from(["en", "ru", "ja", "ko", "el", "sr", "xx"])


@given(pair=st.tuples(TEXTS, TEXTS), src=LANGUAGES, tgt=LANGUAGES)
def test_the_doctor_and_the_filter_find_the_same_lines_in_another_script(pair: tuple[str, str], src: str, tgt: str) -> None:
    told = {look.side: look.spots.count for look in looks(sample_of([pair]), Langs(src=src, tgt=tgt)) if look.kind == "script"}
    for side, (sides, langs) in enumerate([(pair, (src, tgt)), (pair[::-1], (tgt, src))]):
        reason = TextFilters(FilterConfig(scripts=True), Langs(src=langs[0], tgt=langs[1]))(Pair(*sides, ""))
        assert told.get(side, 0) == (reason is not None and reason.startswith("source "))
