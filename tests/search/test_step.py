from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DecodeError
from mt.search.step import BLOCK, Hypothesis, Suppress, best_tokens, refuse_nan
from tests.oracle.table_model import BOS, EOS, PAD, UNK, TableStep


def even(_ids: tuple[int, ...]) -> list[float]:
    """Each of 8 ids as probable as any other, specials too."""
    return torch.zeros(8).log_softmax(0).tolist()


def test_suppressed_ids_are_impossible_and_the_others_keep_their_log_probability() -> None:
    bare, last_R = TableStep(even, even), torch.tensor([BOS, BOS])
    expected_RV, _ = bare(last_R, bare.start())
    step = Suppress(TableStep(even, even), [PAD, BOS, UNK])
    logp_RV, state = step(last_R, bare.start())
    assert torch.equal(logp_RV[:, EOS:], expected_RV[:, EOS:])
    assert (logp_RV[:, [PAD, BOS, UNK]] == -torch.inf).all()
    assert step.reorder(state, torch.tensor([1])) == [(1, ())]


def test_score_is_log_probability_over_length_with_eos_to_the_power_of_the_penalty() -> None:
    hypothesis = Hypothesis.ended([7, 8, 9], log_prob=-6.0, length_penalty=0.5, truncated=False)
    assert hypothesis.score == -6.0 / 4**0.5
    assert Hypothesis.ended([7, 8, 9], log_prob=-6.0, length_penalty=0.0, truncated=False).score == -6.0


def test_nan_is_refused_with_the_step_and_the_sentences_that_have_it() -> None:
    best_R = torch.tensor([0.0, 0.0, 0.0, torch.nan, torch.nan, 0.0])  # two rows a sentence
    with pytest.raises(DecodeError, match=r"step 5: log-probabilities are NaN for 2 of 3 sentences of the batch \(first: number 12\)"):
        refuse_nan(best_R, position=5, sentences=[4, 11, 30])
    refuse_nan(best_R[:2], position=5, sentences=[4])


@given(
    row=st.lists(st.sampled_from([-0.5, -1.0, -2.0, -torch.inf]), min_size=2, max_size=40),
    k=st.integers(1, 12),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_best_tokens_are_those_of_a_sort_by_value_then_id(row: list[float], k: int, dtype: torch.dtype) -> None:
    """Values from three levels tie at every edge; impossible tokens may come in any order."""
    value_RK, id_RK = best_tokens(torch.tensor([row, row[::-1]], dtype=dtype), k)
    for values, ids, given_row in zip(value_RK.tolist(), id_RK.tolist(), [row, row[::-1]], strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-given_row[i], i))[:k]
        assert values == [given_row[i] for i in expected]
        assert [i for i in ids if given_row[i] > -torch.inf] == [i for i in expected if given_row[i] > -torch.inf]
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("vocabulary", [BLOCK * 40, BLOCK * 40 + 1, BLOCK * 41 - 1, 8000])
def test_best_tokens_of_wide_rows_are_those_of_a_sort(vocabulary: int, dtype: torch.dtype) -> None:
    """With rows of few values, which tie within a block and between blocks, and rows whose best stand together."""
    rng = torch.Generator().manual_seed(vocabulary)
    rows = torch.randn(20, vocabulary, generator=rng)
    rows[5:10] = torch.randint(0, 40, (5, vocabulary), generator=rng).float()
    rows[10:15] = rows[10:15].sort(dim=1).values
    rows[15:].masked_fill_(torch.rand(5, vocabulary, generator=rng) < 0.998, -torch.inf)
    rows = rows.to(dtype)
    for k in (1, 3, 8):
        value_RK, id_RK = best_tokens(rows, k)
        for row, values, ids in zip(rows.tolist(), value_RK.tolist(), id_RK.tolist(), strict=True):
            expected = sorted(range(vocabulary), key=lambda i, row=row: (-row[i], i))[:k]
            assert values == [row[i] for i in expected]
            assert [i for i, value in zip(ids, values, strict=True) if value > -torch.inf] == [i for i in expected if row[i] > -torch.inf]


def test_best_tokens_of_a_wide_row_of_equals_are_the_lowest_ids() -> None:
    logp_RV = torch.full((3, 5000), -1.0)
    logp_RV[1, 4000] = -0.5
    assert best_tokens(logp_RV, 3)[1].tolist() == [[0, 1, 2], [4000, 0, 1], [0, 1, 2]]
