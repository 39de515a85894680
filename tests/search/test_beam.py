from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.errors import DecodeError
from mt.search.beam import beam_search
from mt.search.greedy import greedy_search
from mt.search.step import Hypothesis
from tests.oracle.brute_force import Output, brute_force, plain_beam_search
from tests.oracle.table_model import BOS, EOS, Table, TableStep, random_table, written_table

SEEDS = st.integers(0, 10**6)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0, 2.0])


def beam(
    *tables: Table,
    limits: list[int],
    width: int,
    length_penalty: float = 1.0,
    patience: float = 1.0,
    n_best: int = 1,
    dtype: torch.dtype = torch.float64,
) -> list[list[Hypothesis]]:
    step = TableStep(*tables, dtype=dtype)
    return beam_search(
        step,
        step.start(),
        bos=BOS,
        eos=EOS,
        limits=limits,
        width=width,
        length_penalty=length_penalty,
        patience=patience,
        n_best=n_best,
    )


def plain(hypotheses: list[Hypothesis]) -> list[Output]:
    return [Output(h.ids, h.log_prob, h.score, h.truncated) for h in hypotheses]


@given(
    seeds=st.lists(SEEDS, min_size=1, max_size=3),
    words=st.integers(1, 12),
    limit=st.integers(1, 7),
    levels=st.sampled_from([None, 1, 2]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_width_one_is_greedy(seeds: list[int], words: int, limit: int, levels: int | None, dtype: torch.dtype) -> None:
    """To the last bit, and among equals too (levels)."""
    tables = [random_table(seed, words=words, levels=levels) for seed in seeds]
    limits = [limit + i for i in range(len(seeds))]
    step = TableStep(*tables, dtype=dtype)
    assert beam(*tables, limits=limits, width=1, dtype=dtype) == [
        [hypothesis] for hypothesis in greedy_search(step, step.start(), bos=BOS, eos=EOS, limits=limits)
    ]


@given(seed=SEEDS, size=st.sampled_from([(1, 5), (2, 3), (2, 4), (3, 3), (4, 2)]), extra=st.integers(0, 3), alpha=ALPHAS)
def test_full_width_is_brute_force(seed: int, size: tuple[int, int], extra: int, alpha: float) -> None:
    words, limit = size
    table = random_table(seed, words=words)
    outputs = brute_force(table, limit=limit, length_penalty=alpha)
    assert len(outputs) == sum(words**n for n in range(limit))
    width = len(outputs) + extra
    assert plain(beam(table, limits=[limit], width=width, length_penalty=alpha, n_best=width)[0]) == outputs


@given(
    seed=SEEDS,
    words=st.integers(1, 6),
    sparsity=st.sampled_from([0.0, 0.3, 0.6]),
    limit=st.integers(1, 7),
    width=st.integers(1, 6),
    patience=st.sampled_from([1.0, 1.5, 2.0]),
    alpha=ALPHAS,
)
def test_any_width_is_the_definition_read_aloud(
    seed: int, words: int, sparsity: float, limit: int, width: int, patience: float, alpha: float
) -> None:
    table = random_table(seed, words=words, sparsity=sparsity)
    patience = patience if width > 1 else 1.0
    n_best = round(width * patience)
    got = beam(table, limits=[limit], width=width, length_penalty=alpha, patience=patience, n_best=n_best)[0]
    expected = plain_beam_search(table, limit=limit, width=width, length_penalty=alpha, patience=patience, n_best=n_best)
    assert plain(got) == expected


@given(seed=SEEDS, words=st.integers(1, 6), limit=st.integers(1, 5), width=st.integers(1, 5))
def test_equals_go_by_row_then_probability_then_id(seed: int, words: int, limit: int, width: int) -> None:
    table = random_table(seed, words=words, levels=2)
    expected = plain_beam_search(table, limit=limit, width=width, length_penalty=1.0, patience=1.0, n_best=width)
    assert plain(beam(table, limits=[limit], width=width, n_best=width)[0]) == expected


@settings(max_examples=40)
@given(seeds=st.lists(SEEDS, min_size=2, max_size=5), width=st.integers(1, 5), data=st.data())
def test_batch_mates_do_not_matter(seeds: list[int], width: int, data: st.DataObject) -> None:
    tables = [random_table(seed, words=4, sparsity=0.2) for seed in seeds]
    limits = [data.draw(st.integers(1, 7)) for _ in seeds]
    alone = [beam(table, limits=[limit], width=width, n_best=width)[0] for table, limit in zip(tables, limits, strict=True)]
    assert beam(*tables, limits=limits, width=width, n_best=width) == alone


@settings(max_examples=40)
@given(seed=SEEDS, width=st.integers(1, 6), alpha=ALPHAS)
def test_a_shorter_list_is_the_head_of_a_longer_one_sorted_and_distinct(seed: int, width: int, alpha: float) -> None:
    table = random_table(seed, words=4)
    (longest,) = beam(table, limits=[6], width=width, length_penalty=alpha, n_best=width)
    assert len(longest) == width
    assert len({tuple(h.ids) for h in longest}) == width
    assert [h.score for h in longest] == sorted((h.score for h in longest), reverse=True)
    for n in range(1, width):
        assert beam(table, limits=[6], width=width, length_penalty=alpha, n_best=n)[0] == longest[:n]


@settings(max_examples=40)
@given(seed=SEEDS, width=st.integers(1, 6))
def test_a_larger_length_penalty_never_gives_a_shorter_output(seed: int, width: int) -> None:
    table = random_table(seed, words=3)
    lengths = [len(beam(table, limits=[7], width=width, length_penalty=alpha)[0][0].ids) for alpha in (0.0, 0.5, 1.0, 1.5, 3.0)]
    assert lengths == sorted(lengths)


def test_an_end_ranked_below_the_width_does_not_count() -> None:
    """</s> is third of the candidates: one of the 2W, not of the first W."""
    table = written_table("a b", {"": {"a": 0.5, "b": 0.3, "</s>": 0.2}, "a": {"</s>": 1.0}, "b": {"</s>": 1.0}})
    (hypotheses,) = beam(table, limits=[9], width=2, n_best=2)
    assert [h.ids for h in hypotheses] == [[4], [5]]


def test_patience_waits_for_more_hypotheses() -> None:
    """Width 2 stops at `</s>` and `a </s>`; with patience 2 it goes on and finds the output with the best score."""
    rows = {"": {"</s>": 0.5, "a": 0.5}, "a": {"</s>": 0.5, "a": 0.5}, "a a": {"a": 1.0}, "a a a": {"</s>": 1.0}}
    table = written_table("a", rows)
    assert [h.ids for h in beam(table, limits=[9], width=2, n_best=2)[0]] == [[], [4]]
    assert beam(table, limits=[9], width=2, patience=2.0)[0][0].ids == [4, 4, 4]


def test_at_the_limit_every_live_row_ends_with_the_real_probability_of_its_end() -> None:
    endless = {" ".join(w): {"a": 0.6, "b": 0.3, "</s>": 0.1} for w in ("", "a", "b", "aa", "ab", "ba", "bb")}
    (one,), three = beam(written_table("a b", endless), written_table("a b", endless), limits=[1, 3], width=4, n_best=4)
    assert (one.ids, one.truncated) == ([], True)
    assert one.log_prob == pytest.approx(math.log(0.1))
    assert [h.ids for h in three] == [[4, 4], [4, 5], [5, 4], [5, 5]]
    assert all(h.truncated for h in three)
    assert [h.log_prob for h in three] == pytest.approx([math.log(p * 0.1) for p in (0.36, 0.18, 0.18, 0.09)])


def test_finished_sentences_leave_the_batch_and_the_first_position_has_one_row_each() -> None:
    endless = written_table("a b", {"": {"a": 1.0}, **{" ".join("a" * n): {"a": 0.9, "b": 0.06, "</s>": 0.04} for n in range(1, 9)}})
    step = TableStep(endless, endless)
    beam_search(step, step.start(), bos=BOS, eos=EOS, limits=[2, 1], width=2)
    assert step.rows == [2, 2]


def test_fewer_are_given_where_fewer_exist_and_none_where_none_does() -> None:
    two = written_table("a", {"": {"a": 0.5, "</s>": 0.5}, "a": {"</s>": 1.0}})
    none = written_table("a", {"": {"a": 1.0}, "a": {}})
    endless = written_table("a", {"": {"a": 1.0}, "a": {"a": 1.0}})
    assert [len(hypotheses) for hypotheses in beam(two, none, endless, limits=[5, 5, 2], width=4, n_best=4)] == [2, 0, 0]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"width": 0}, "beam 0"),
        ({"width": 4, "n_best": 5}, "n-best 5 is larger than beam 4"),
        ({"width": 4, "n_best": 7, "patience": 1.5}, "n-best 7 is larger than beam 4 × patience 1.5 = 6"),
        ({"width": 4, "n_best": 0}, "n-best 0"),
        ({"width": 4, "patience": 0.5}, "patience 0.5"),
        ({"width": 4, "patience": math.nan}, "patience nan"),
        ({"width": 1, "patience": 2.0}, "patience 2 needs a beam of 2 or more"),
        ({"width": 4, "length_penalty": -1.0}, "length penalty -1"),
        ({"width": 4, "length_penalty": math.nan}, "length penalty nan"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(asked: dict[str, float], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        beam(random_table(0, words=2), limits=[3], **asked)  # type: ignore[arg-type]


def test_nan_is_refused_with_its_step_and_sentence() -> None:
    fine = random_table(0, words=2)
    broken = written_table("a b", {"": {"a": 1.0}, "a": {"a": math.nan, "b": 0.5}})
    with pytest.raises(DecodeError, match=r"step 2: log-probabilities are NaN for 1 of 2 sentences of the batch \(first: number 2\)"):
        beam(fine, broken, limits=[5, 5], width=3)


def test_an_empty_batch_gives_nothing() -> None:
    assert beam(limits=[], width=3) == []
