"""Who is held out: the fingerprint of the source decides, whatever the order and whatever comes in later."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.clean.partition import ENOUGH, MOST, Chosen, Shares, place_of, shares_of, usual_share
from mt.config.schema import Langs, SplitConfig
from mt.formats.pairs import Pair

AUTO = SplitConfig()


def corpus(count: int, *, seed: int = 0, sources: int = 10**6) -> list[Pair]:
    """Pairs of invented words, with as many different sources at most."""
    rng = random.Random(seed)
    words = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]
    texts = [" ".join(random.Random(f"{seed}/{number}").choices(words, k=6)) for number in range(min(count, sources))]
    return [Pair(rng.choice(texts) if sources < count else texts[i], f"t {rng.choice(words)} {i % 7}", f"x:{i}") for i in range(count)]


def held(pairs: list[Pair], cfg: SplitConfig = AUTO, *, langs: Langs | None = None) -> dict[str, list[tuple[str, str]]]:
    """Sides of the pairs of each part, in their order."""
    chosen = Chosen(cfg, with_test=True)
    chosen.add(pairs, langs=langs)
    return {part: [pair.sides for each in sets.values() for pair in each] for part, sets in chosen.sets().items()}


@given(st.integers(1, 10**8))
def test_a_set_has_as_many_pairs_as_the_rule_says(pairs: int) -> None:
    share = usual_share(pairs)
    assert pairs * share <= MOST
    assert share >= 0.05 or pairs * share > MOST / 2
    assert share == 0.2 or pairs * share >= ENOUGH
    assert usual_share(pairs + 1) <= share


@given(st.randoms(use_true_random=False))
def test_order_does_not_matter(rng: random.Random) -> None:
    pairs = corpus(300, sources=200)
    shuffled = rng.sample(pairs, len(pairs))
    assert held(shuffled) == held(pairs)


def test_all_pairs_of_a_source_are_on_one_side() -> None:
    shares = Shares(0.2, 0.2)
    for pair in corpus(200):
        others = pair.src.upper(), f"  {pair.src.title()}!", f"7. {pair.src}", pair.src.replace(" ", "")
        assert {shares.part(other) for other in others} == {shares.part(pair.src)}


def test_without_letters_it_is_the_text_that_counts() -> None:
    assert place_of("12:30") == place_of(" 12:30 ") != place_of("13:45")


@pytest.mark.parametrize("more", [300, 900, 2500])
def test_no_pair_goes_from_training_to_a_held_out_set_when_data_is_added(more: int) -> None:
    few = corpus(800)
    many = [*corpus(more, seed=1), *few]
    before, after = held(few), held(many)
    for part in before:
        assert set(after[part]) & {pair.sides for pair in few} <= set(before[part])


def test_with_a_share_that_is_given_nothing_moves_at_all() -> None:
    cfg = SplitConfig(dev=0.1, test=0.05)
    few = corpus(800)
    before, after = held(few, cfg), held([*corpus(5000, seed=1), *few], cfg)
    for part in before:
        assert set(after[part]) & {pair.sides for pair in few} == set(before[part])


def test_a_smaller_share_holds_out_a_part_of_what_a_larger_one_does() -> None:
    pairs = corpus(1000)
    small, large = (held(pairs, SplitConfig(dev=share, test=share)) for share in (0.05, 0.1))
    for part in small:
        assert large[part][: len(small[part])] == small[part] or part == "test"
        assert set(small[part]) < set(large[part])


def test_what_is_chosen_on_the_way_is_what_the_shares_of_all_pairs_choose() -> None:
    pairs = corpus(5000)
    shares = shares_of(AUTO, 5000, with_test=True)
    for part, found in held(pairs).items():
        assert sorted(found) == sorted(pair.sides for pair in pairs if shares.part(pair.src) == part)
        assert abs(len(found) - 250) < 80


def test_of_copies_one_stays_and_none_is_trained_on() -> None:
    pairs = [Pair(f"{number} Äpfel", f"{number} apples", "x") for number in range(50)]
    found = held([*pairs, *corpus(300)], SplitConfig(dev=0.5, test=0.4))
    assert sum("apples" in tgt for part in found.values() for _, tgt in part) == 1


def test_languages_are_kept_apart() -> None:
    chosen, pairs = Chosen(SplitConfig(dev=0.5), with_test=False), corpus(40)
    ways = [Langs(src="en", tgt=tgt) for tgt in ("de", "fr")]
    for langs in ways:
        chosen.add(pairs, langs=langs)
    sets = chosen.sets()["dev"]
    assert list(sets) == ways or list(sets) == ways[::-1]
    assert sets[ways[0]] == sets[ways[1]]
    assert chosen.pairs == 80
