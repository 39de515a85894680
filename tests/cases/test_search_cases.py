"""Trouble cases of the searches, over table models: one test for each row, named after it."""

from __future__ import annotations

import math

import pytest

from mt.errors import DecodeError
from mt.search.beam import beam_search
from mt.search.greedy import greedy_search
from mt.search.sample import sample_search
from mt.search.step import Hypothesis, Suppress
from tests.oracle.table_model import BOS, EOS, PAD, UNK, Table, TableStep, random_table, spell, written_table

T1_WORDS = "a b x y"
T1 = written_table(
    T1_WORDS,
    {
        "": {"a": 0.55, "b": 0.45},
        "a": {"x": 0.40, "y": 0.35, "</s>": 0.25},
        "b": {"x": 0.95, "</s>": 0.05},
        "a x": {"</s>": 1.0},
        "a y": {"</s>": 1.0},
        "b x": {"</s>": 1.0},
    },
)


def beam(table: Table, *, width: int, length_penalty: float = 1.0, n_best: int = 1, limit: int = 12) -> list[Hypothesis]:
    step = TableStep(table)
    (hypotheses,) = beam_search(
        step, step.start(), bos=BOS, eos=EOS, limits=[limit], width=width, length_penalty=length_penalty, n_best=n_best
    )
    return hypotheses


def greedy(table: Table, *, limit: int = 12) -> Hypothesis:
    step = TableStep(table)
    return greedy_search(step, step.start(), bos=BOS, eos=EOS, limits=[limit])[0]


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_67_first_of_n_best(length_penalty: float) -> None:
    for seed in range(40):
        table = random_table(seed, words=6)
        one, two, five = (beam(table, width=5, length_penalty=length_penalty, n_best=n) for n in (1, 2, 5))
        assert one == five[:1]
        assert two == five[:2]
        assert [h.score for h in five] == sorted((h.score for h in five), reverse=True)
        assert len({tuple(h.ids) for h in five}) == 5


def test_68_n_best_larger_than_beam() -> None:
    """Refused before the first step, so nothing has been translated by then."""
    step = TableStep(T1)
    with pytest.raises(DecodeError, match="n-best 10 is larger than beam 4"):
        beam_search(step, step.start(), bos=BOS, eos=EOS, limits=[12], width=4, n_best=10)
    assert step.rows == []


def test_69_stub_search() -> None:
    first = greedy(T1)
    assert spell(first.ids, T1_WORDS) == "a x"
    assert first.log_prob == pytest.approx(-1.51413, abs=5e-6)
    assert beam(T1, width=1) == [first]
    for width in range(2, 9):
        (best,) = beam(T1, width=width, length_penalty=0.0)
        assert spell(best.ids, T1_WORDS) == "b x"
        assert best.score == best.log_prob == pytest.approx(-0.84980, abs=5e-6)
    for n_best in (5, 8):
        found = beam(T1, width=8, length_penalty=0.0, n_best=n_best)
        assert [spell(h.ids, T1_WORDS) for h in found] == ["b x", "a x", "a y", "a", "b"]
        assert [h.log_prob for h in found] == pytest.approx([-0.84980, -1.51413, -1.64766, -1.98413, -3.79424], abs=5e-6)


def test_70_length_penalty_direction() -> None:
    """`p q r s` at -4.0, `p q r s t u` at -5.4: the larger α, the longer. What is left of the probability lies on <unk>."""
    stop = 1 / (1 + math.exp(-1.4))
    start = math.exp(-4.0) / stop
    words = long = "p q r s t u"
    short = "p q r s"
    rows = {"": {"p": start, "<unk>": 1 - start}, "p": {"q": 1.0}, "p q": {"r": 1.0}, "p q r": {"s": 1.0}}
    rows |= {short: {"</s>": stop, "t": 1 - stop}, "p q r s t": {"u": 1.0}, long: {"</s>": 1.0}}
    for length_penalty, order in ((0.0, [short, long]), (0.5, [short, long]), (1.0, [long, short]), (2.0, [long, short])):
        table = TableStep(written_table(words, rows))
        step = Suppress(table, [PAD, UNK, BOS])
        (found,) = beam_search(step, table.start(), bos=BOS, eos=EOS, limits=[12], width=4, length_penalty=length_penalty, n_best=4)
        assert [spell(h.ids, words) for h in found] == order
        log_prob = {short: -4.0, long: -5.4}
        assert [h.log_prob for h in found] == pytest.approx([log_prob[text] for text in order])
        scores = {short: -4.0 / 5**length_penalty, long: -5.4 / 7**length_penalty}  # at 1: -0.800 and -0.771
        assert [h.score for h in found] == pytest.approx([scores[text] for text in order])


def test_79_temperature_zero() -> None:
    def sample(table: Table, temperature: float) -> Hypothesis:
        step = TableStep(table)
        return sample_search(step, step.start(), bos=BOS, eos=EOS, limits=[12], seeds=[5], temperature=temperature)[0]

    for seed in range(20):
        table = random_table(seed, words=6)
        for temperature in (0, 1e-8, 1e-5):
            assert sample(table, temperature) == greedy(table)
            assert math.isfinite(sample(table, temperature).log_prob)
    with pytest.raises(DecodeError, match="temperature -1"):
        sample(T1, -1)


def test_82_seed_decides_the_sample() -> None:
    tables = [random_table(seed, words=6) for seed in range(8)]

    def sample(*chosen: Table, seeds: list[int]) -> list[Hypothesis]:
        step = TableStep(*chosen)
        return sample_search(step, step.start(), bos=BOS, eos=EOS, limits=[12] * len(chosen), seeds=seeds)

    seeds = [7000 + line for line in range(8)]
    first = sample(*tables, seeds=seeds)
    assert sample(*tables, seeds=seeds) == first
    assert [sample(table, seeds=[seed])[0] for table, seed in zip(tables, seeds, strict=True)] == first
    assert sample(*tables, seeds=[8000 + line for line in range(8)]) != first


def test_83_specials_are_never_generated() -> None:
    """The model would say <pad>, <s> or <unk> first, then the end, then more."""

    def table(ids: tuple[int, ...]) -> list[float]:
        weights = [50.0, 20.0, 30.0, 4.0 if ids else 0.5, 2.0, 1.0]
        return [math.log(weight / sum(weights)) for weight in weights]

    def step() -> Suppress[list[tuple[int, tuple[int, ...]]]]:
        return Suppress(TableStep(*[table] * 41), [PAD, UNK, BOS])

    start, limits = TableStep(*[table] * 41).start(), [10] * 41
    found = beam_search(step(), start, bos=BOS, eos=EOS, limits=limits, width=4, n_best=4)
    hypotheses = [h for line in found for h in line]
    hypotheses += greedy_search(step(), start, bos=BOS, eos=EOS, limits=limits)
    hypotheses += sample_search(step(), start, bos=BOS, eos=EOS, limits=limits, seeds=range(41))
    assert all(set(h.ids) <= {4, 5} for h in hypotheses)
    assert all(math.isfinite(h.log_prob) for h in hypotheses)
