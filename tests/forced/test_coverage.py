"""Coverage is the formula of the paper, and decides only the order of what a beam finished."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mt.config.schema import DecodeConfig
from mt.decode.engine import Beam, Engine
from mt.errors import DecodeError
from mt.forced.attended import attended
from mt.forced.coverage import coverage, reranked
from mt.forced.given import Given
from mt.search.step import Hypothesis, concatenated
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests.model.untrained import BOS, EOS, PAD, UNK, lively_transformer, sentences

IDS = cast("Tokenizer", SimpleNamespace(pad=PAD, unk=UNK, bos=BOS, eos=EOS, prefixes=()))
CPU = torch.device("cpu")
SOURCES = sentences(3, 1, 8, 2, 5, 13, 4, seed=3)
WEIGHTS = st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5)


def search(sources: list[list[int]], settings: Beam) -> list[list[Hypothesis]]:
    engine = Engine(lively_transformer(), Tokenizers(IDS, IDS), device=CPU)
    return engine.search(sources, settings, limits=[2 * len(ids) + 4 for ids in sources])


def formula(weights: list[list[float]]) -> float:
    """Equation 14 without β."""
    return sum(math.log(min(sum(row[s] for row in weights), 1.0)) for s in range(len(weights[0])))


@given(weights=WEIGHTS)
def test_coverage_is_the_formula(weights: list[list[float]]) -> None:
    unread = any(sum(row[s] for row in weights) < 1e-300 for s in range(3))
    found = coverage(torch.tensor(weights, dtype=torch.float64))
    assert math.isfinite(found)
    assert found < -700 if unread else found == pytest.approx(formula(weights), rel=1e-9)


def test_what_reads_all_of_the_source_comes_before_what_leaves_something_out() -> None:
    """By log-probability the short one is the best."""
    source, short, long = [5, 6], Hypothesis([7], -1.0, -0.5, False), Hypothesis([7, 8], -2.4, -0.8, False)

    def attention(given: list[Given]) -> list[tuple[int, Tensor]]:
        looks = {1: torch.tensor([[0.8, 0.1], [0.3, 0.1]]), 2: torch.tensor([[0.9, 0.0], [0.1, 0.5], [0.2, 0.6]])}
        return [(place, looks[len(pair.target)]) for place, pair in reversed([*enumerate(given)])]

    first, second = reranked([source], [[short, long]], attention, penalty=0.5)[0]
    assert (first.ids, second.ids) == ([7, 8], [7])
    assert (first.score, first.coverage, first.log_prob) == (-0.8, 0.0, -2.4)
    assert second.score == pytest.approx(-0.5 + 0.5 * math.log(0.2))
    assert second.coverage == pytest.approx(0.5 * math.log(0.2))
    assert [one.ids for one in reranked([source], [[short, long]], attention, penalty=0.1)[0]] == [[7], [7, 8]]


def test_a_beam_is_ranked_by_score_and_coverage() -> None:
    """All that finished, not only what is asked for; and the attention is that of each hypothesis by itself."""
    wide = Beam(width=4, n_best=6, patience=1.5, length_penalty=0.6)
    plain = search(SOURCES, wide)
    model, moved = lively_transformer(), 0
    for n_best in (1, 3, 6):
        ranked = search(SOURCES, replace(wide, n_best=n_best, coverage_penalty=0.7))
        for source, before, after in zip(SOURCES, plain, ranked, strict=True):
            expected = {}
            for one in before:
                ((_, weights_TS),) = attended([model], [Given(source, one.ids)], Tokenizers(IDS, IDS), device=CPU, batch_tokens=1)
                expected[tuple(one.ids)] = one.score + 0.7 * formula(weights_TS.tolist())
            order = sorted(expected, key=lambda ids: -expected[ids])
            assert [tuple(one.ids) for one in after] == order[:n_best]
            assert [one.score for one in after] == pytest.approx([expected[ids] for ids in order[:n_best]], abs=1e-6)
            assert all(one.score - one.coverage == pytest.approx(one.log_prob / (len(one.ids) + 1) ** 0.6) for one in after)
            moved += tuple(before[0].ids) != order[0]
    assert moved


def test_none_is_as_without() -> None:
    settings = Beam(width=3, n_best=3)
    assert search(SOURCES, replace(settings, coverage_penalty=0.0)) == search(SOURCES, settings)


def test_neighbours_in_the_batch_do_not_matter() -> None:
    settings = Beam(width=3, n_best=2, coverage_penalty=0.4)
    alone = [search([source], settings)[0] for source in SOURCES]
    for one, other in zip(search(SOURCES, settings), alone, strict=True):
        assert [h.ids for h in one] == [h.ids for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-9)


def test_a_line_in_parts_has_the_coverage_of_its_parts() -> None:
    parts = [Hypothesis([5], -2.0, -1.5, False, coverage=-0.5), Hypothesis([6], -4.0, -2.2, False, coverage=-0.2)]
    whole = concatenated(parts, length_penalty=1.0)
    assert (whole.score, whole.coverage) == (pytest.approx(-6 / 4 - 0.7), pytest.approx(-0.7))


@pytest.mark.parametrize("values", [{"coverage_penalty": -0.1}, {"coverage_penalty": math.nan}, {"width": 1, "coverage_penalty": 0.2}])
def test_what_cannot_be_met_is_an_error(values: dict[str, float]) -> None:
    with pytest.raises(DecodeError, match="coverage-penalty"):
        Beam(**values)  # type: ignore[arg-type]


def test_the_config_decides_unless_something_else_is_asked_for() -> None:
    cfg = DecodeConfig(beam=4, coverage_penalty=0.3)
    assert Beam.build(cfg) == Beam(width=4, coverage_penalty=0.3)
    assert Beam.build(cfg, width=1) == Beam(width=1)
    assert Beam.build(cfg, width=2, coverage_penalty=0.0) == Beam(width=2)
