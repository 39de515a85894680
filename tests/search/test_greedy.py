from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DecodeError
from mt.search.greedy import greedy_search
from mt.search.step import Hypothesis
from tests.oracle.brute_force import brute_force, plain_greedy_search
from tests.oracle.table_model import BOS, EOS, Table, TableStep, random_table, written_table

SEEDS = st.integers(0, 10**6)


def greedy(*tables: Table, limits: list[int], length_penalty: float = 1.0) -> list[Hypothesis]:
    step = TableStep(*tables)
    return greedy_search(step, step.start(), bos=BOS, eos=EOS, limits=limits, length_penalty=length_penalty)


@given(seed=SEEDS, words=st.integers(1, 3), limit=st.integers(1, 4), alpha=st.sampled_from([0.0, 0.6, 1.0]))
def test_greedy_takes_the_most_probable_token_and_reports_what_brute_force_says_of_it(
    seed: int, words: int, limit: int, alpha: float
) -> None:
    table = random_table(seed, words=words)
    (hypothesis,) = greedy(table, limits=[limit], length_penalty=alpha)
    assert hypothesis.ids == plain_greedy_search(table, limit=limit)
    (same,) = [o for o in brute_force(table, limit=limit, length_penalty=alpha) if o.ids == hypothesis.ids]
    assert (hypothesis.log_prob, hypothesis.score, hypothesis.truncated) == (same.log_prob, same.score, same.truncated)


@given(seeds=st.lists(SEEDS, min_size=2, max_size=5), data=st.data())
def test_batch_mates_do_not_matter(seeds: list[int], data: st.DataObject) -> None:
    tables = [random_table(seed, words=3) for seed in seeds]
    limits = [data.draw(st.integers(1, 6)) for _ in seeds]
    assert greedy(*tables, limits=limits) == [greedy(table, limits=[limit])[0] for table, limit in zip(tables, limits, strict=True)]


def test_finished_sentences_leave_the_batch() -> None:
    endless = written_table("a", {" ".join("a" * n): {"a": 0.9, "</s>": 0.1} for n in range(9)})
    step = TableStep(endless, endless, endless)
    hypotheses = greedy_search(step, step.start(), bos=BOS, eos=EOS, limits=[4, 1, 2])
    assert step.rows == [3, 2, 1, 1]
    assert [len(h.ids) for h in hypotheses] == [3, 0, 1]
    assert all(h.truncated for h in hypotheses)


def test_an_end_at_the_limit_that_is_the_models_own_is_not_truncated() -> None:
    table = written_table("a", {"": {"a": 0.6, "</s>": 0.4}, "a": {"a": 0.4, "</s>": 0.6}})
    (hypothesis,) = greedy(table, limits=[2])
    assert not hypothesis.truncated
    assert hypothesis.log_prob == pytest.approx(math.log(0.6 * 0.6))


def test_a_row_that_may_not_go_on_ends_with_probability_zero() -> None:
    dead_end = written_table("a b", {"": {"a": 1.0}, "a": {}})
    no_end = written_table("a b", {"": {"a": 1.0}, "a": {"b": 1.0}, "a b": {"b": 1.0}})
    for hypothesis, ids in zip(greedy(dead_end, no_end, limits=[9, 3]), ([4], [4, 5]), strict=True):
        assert hypothesis.ids == ids
        assert hypothesis.log_prob == hypothesis.score == -math.inf


def test_nan_is_refused() -> None:
    with pytest.raises(DecodeError, match="step 1: log-probabilities are NaN"):
        greedy(lambda _: [math.nan] * 6, limits=[3])


def test_low_precision_log_probabilities_are_summed_in_float32() -> None:
    long = written_table("a", {" ".join("a" * n): {"a": 0.999, "</s>": 0.001} for n in range(99)})
    step = TableStep(long, dtype=torch.bfloat16)
    (hypothesis,) = greedy_search(step, step.start(), bos=BOS, eos=EOS, limits=[99])
    in_bf16 = torch.tensor([math.log(0.999), math.log(0.001)]).bfloat16().double()
    assert hypothesis.log_prob == pytest.approx(float(98 * in_bf16[0] + in_bf16[1]), rel=1e-6)


def test_an_empty_batch_gives_nothing() -> None:
    assert greedy(limits=[]) == []
