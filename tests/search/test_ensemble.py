"""Several steps as one: of equal ones it is that one; the mean is the mean, by hand; every search can search it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.decode.engine import Beam, Engine, Sampling
from mt.errors import DecodeError
from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.model.transformer import Transformer
from mt.search.beam import beam_search
from mt.search.ensemble import Ensemble, Mix
from mt.search.step import Hypothesis
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests.model.untrained import BOS, EOS, PAD, UNK, lively_transformer, sentences, small_transformer
from tests.oracle.table_model import Table, TableStep, random_table

IDS = cast("Tokenizer", SimpleNamespace(pad=PAD, unk=UNK, bos=BOS, eos=EOS, prefixes=()))
CPU = torch.device("cpu")
SOURCES = sentences(3, 1, 8, 5, 13, seed=3)
SEARCHES = pytest.mark.parametrize("settings", [Beam(width=1), Beam(width=4, n_best=3), Sampling(temperature=1.5)], ids=str)
MIXES = pytest.mark.parametrize("mix", [Mix(), Mix("log"), Mix(weights=(3, 1)), Mix("log", (0.2, 0.7))], ids=str)


def search(models: list[Transformer], settings: Beam | Sampling, mix: Mix | None = None) -> list[list[Hypothesis]]:
    engine = Engine(models[0], Tokenizers(IDS, IDS), device=CPU, others=models[1:], mix=mix)
    return engine.search(SOURCES, settings, limits=[9] * len(SOURCES), seeds=range(len(SOURCES)))


def outputs(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[h.ids for h in hypotheses] for hypotheses in found]


@SEARCHES
@MIXES
def test_a_model_with_itself_is_the_model(settings: Beam | Sampling, mix: Mix) -> None:
    alone, twice = search([lively_transformer()], settings), search([lively_transformer()] * 2, settings, mix)
    assert outputs(alone) == outputs(twice)
    pairs = [(a, b) for left, right in zip(alone, twice, strict=True) for a, b in zip(left, right, strict=True)]
    assert [a.log_prob for a, _ in pairs] == pytest.approx([b.log_prob for _, b in pairs], abs=1e-9)


def test_models_of_another_architecture_have_a_say() -> None:
    other = small_transformer(joint=False, tied=False, decoder_layers=1, heads=4, pre_norm=False)
    one, both = search([lively_transformer()], Beam(width=3)), search([lively_transformer(), other], Beam(width=3))
    assert outputs(one) != outputs(both)
    nearly = search([lively_transformer(), other], Beam(width=3), Mix(weights=(1, 1e-12)))
    assert outputs(nearly) == outputs(one)


@MIXES
def test_outputs_are_scored_as_they_were_searched(mix: Mix) -> None:
    models = [lively_transformer(), small_transformer(joint=False, tied=False)]
    found = search(models, Beam(width=3, n_best=3), mix)
    pairs = [(Given(source, h.ids), h) for source, hypotheses in zip(SOURCES, found, strict=True) for h in hypotheses]
    values = token_log_probs(models, [pair for pair, _ in pairs], Tokenizers(IDS, IDS), device=CPU, batch_tokens=40, mix=mix)
    for (_, h), tokens in zip(pairs, values, strict=True):
        assert h.tokens == pytest.approx(tokens, abs=1e-9)


class Lenient(TableStep):
    """Continues what it does not allow, as the mean allows what any of them does."""

    def __call__(self, last_R, state):  # type: ignore[no-untyped-def]
        if self.rows:
            state = [(sentence, (*ids, token)) for (sentence, ids), token in zip(state, last_R.tolist(), strict=True)]
        self.rows.append(len(state))
        return torch.tensor([self.tables[sentence](ids) for sentence, ids in state], dtype=self.dtype), state


def mean_table(*tables: Table) -> Table:
    return lambda ids: [
        math.log(p) if (p := sum(map(math.exp, row)) / len(row)) else -math.inf for row in zip(*(t(ids) for t in tables), strict=True)
    ]


@given(seed=st.integers(0, 10**6), width=st.sampled_from([1, 2, 15]))
def test_a_search_of_the_ensemble_is_that_of_the_mean(seed: int, width: int) -> None:
    tables = [random_table(seed + n, words=2, sparsity=0.2) for n in range(3)]
    steps = [Lenient(table) for table in tables]
    mean = TableStep(mean_table(*tables))
    named = {"bos": BOS, "eos": EOS, "limits": [4], "width": width}
    (found,), (expected,) = (
        beam_search(Ensemble(steps, Mix()), tuple(step.start() for step in steps), **named),
        beam_search(mean, mean.start(), **named),
    )
    assert [h.ids for h in found] == [h.ids for h in expected]
    assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in expected], abs=1e-9)


@pytest.mark.parametrize("how", ["mean", "log"])
def test_the_mix_is_a_distribution_and_the_mean_by_hand(how: str) -> None:
    p, q = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64), torch.tensor([0.1, 0.1, 0.8], dtype=torch.float64)
    found = Mix(how, (3, 1))([p.log(), q.log()]).exp()  # type: ignore[arg-type]
    expected = 0.75 * p + 0.25 * q if how == "mean" else p**0.75 * q**0.25 / (p**0.75 * q**0.25).sum()
    torch.testing.assert_close(found, expected)


def test_one_model_has_a_veto_over_the_logarithms_only() -> None:
    p, q = torch.tensor([0.5, 0.5, 0.0]).log(), torch.tensor([0.0, 0.5, 0.5]).log()
    assert Mix()([p, q]).exp().tolist() == pytest.approx([0.25, 0.5, 0.25])
    assert Mix("log")([p, q]).exp().tolist() == [0, 1, 0]


def test_weights_are_a_positive_number_for_each() -> None:
    for weights in ((0.0, 1.0), (math.nan, 1.0), (-1.0, 2.0), (math.inf, 1.0)):
        with pytest.raises(DecodeError, match="give a number above 0 for each model"):
            Mix(weights=weights)
    with pytest.raises(DecodeError, match="3 weights for 2 models"):
        search([lively_transformer()] * 2, Beam(), Mix(weights=(1, 1, 1)))
