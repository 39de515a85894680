"""Expected utilities are those of sacreBLEU's sentence scores, computed pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.decode.mbr import Counted, Mbr, Utility, expected, lots, posterior
from mt.errors import DecodeError
from tests.oracle.expected_utility import expected_utility, sentence_score

TEXTS = [
    "Der Hund läuft.",
    "Ein Hund läuft schnell.",
    "Der  Hund läuft",
    "",
    "a",
    "Der Hund läuft.",
    "Der Hund läuft läuft läuft läuft .",
    "漢字 und Kana!",
]
METRICS = pytest.mark.parametrize("metric", ["chrf", "bleu"])
WORDS = st.lists(st.sampled_from(["a", "b", "the", "cat,", "sat.", "10%", "é"]), max_size=9).map(" ".join)


def utilities(utility: Utility, texts: list[str], probabilities: list[float]) -> list[float]:
    """Of each text; equal ones may come again."""
    differ = [*dict.fromkeys(texts)]
    places = [differ.index(text) for text in texts]
    [scores_NN] = utility.of_lines([differ], [""])
    found = expected(scores_NN, places, probabilities)
    return [found[place] for place in places]


@METRICS
def test_each_pair_has_the_sentence_score_of_sacrebleu(metric: str) -> None:
    found = Counted(metric, lang="de").between(TEXTS)  # type: ignore[arg-type]
    expected = [[sentence_score(metric, text, other) for other in TEXTS] for text in TEXTS]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@METRICS
@given(texts=st.lists(WORDS, min_size=1, max_size=6), data=st.data())
def test_the_expected_utility_is_that_of_all_pairs(metric: str, texts: list[str], data: st.DataObject) -> None:
    probabilities = data.draw(st.lists(st.floats(0.01, 1), min_size=len(texts), max_size=len(texts)))
    found = utilities(Counted(metric, lang="en"), texts, probabilities)  # type: ignore[arg-type]
    assert found == pytest.approx(expected_utility(metric, texts, probabilities), abs=1e-8)


@METRICS
def test_a_candidate_that_came_twice_counts_twice(metric: str) -> None:
    utility = Counted(metric, lang="de")  # type: ignore[arg-type]
    assert utilities(utility, ["a b", "a b", "c d"], [1, 1, 1])[1:] == pytest.approx(utilities(utility, ["a b", "c d"], [2, 1]))


def test_bleu_takes_the_tokenizer_of_the_language() -> None:
    texts = ["漢字假名混合", "漢字假名混在"]
    assert Counted("bleu", lang="zh").between(texts)[0, 1] > 0 == Counted("bleu", lang="de").between(texts)[0, 1]


def test_probabilities_among_themselves() -> None:
    found = posterior([-1000.0, -1001.0, -math.inf])
    assert [one / sum(found) for one in found] == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0])
    assert posterior([-math.inf, -math.inf]) == [1, 1]


@given(sizes=st.lists(st.integers(0, 9), max_size=12), most=st.integers(1, 12))
def test_lots_are_all_places_in_order_as_large_as_may_be(sizes: list[int], most: int) -> None:
    found = lots(sizes, most=most)
    assert [place for lot in found for place in lot] == [*range(len(sizes))]
    totals = [sum(sizes[place] for place in lot) for lot in found]
    assert all(total <= most or len(lot) == 1 for lot, total in zip(found, totals, strict=True))
    assert all(total + sizes[after.start] > most for total, after in zip(totals, found[1:], strict=False))


def test_settings_that_cannot_be_met() -> None:
    with pytest.raises(DecodeError, match="n-best 0"):
        Mbr(n_best=0)
