"""Searches with an untrained model in float64. Legend: B sentences, T target positions, R rows, V vocabulary."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import Tensor

from mt.config.schema import DecodeConfig
from mt.constraints.orders import NO_ORDERS, Orders
from mt.decode.engine import Beam, Engine, ModelStep, Sampling
from mt.errors import DecodeError
from mt.forced.given import enough_memory
from mt.model.transformer import Transformer
from mt.search.beam import beam_search
from mt.search.step import Hypothesis, Suppress
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests.model.untrained import BOS, EOS, PAD, UNK, batch, lively_transformer, sentences
from tests.oracle.constrained import occurs

CPU = torch.device("cpu")
IDS = cast("Tokenizer", SimpleNamespace(pad=PAD, unk=UNK, bos=BOS, eos=EOS, prefixes=()))  # an engine needs no more of it
SOURCES = sentences(3, 1, 8, 2, 5, 5, 13, 4, 7, 1, 6, seed=3)
SETTINGS = pytest.mark.parametrize(
    "settings",
    [Beam(width=1), Beam(width=4, n_best=4), Beam(width=3, n_best=4, patience=1.5, length_penalty=0.6), Sampling(temperature=1.5)],
    ids=["greedy", "beam", "patience", "sampling"],
)


def limit(ids: list[int]) -> int:
    return 2 * len(ids) + 4


def search(
    sources: list[list[int]],
    settings: Beam | Sampling,
    *,
    seeds: list[int] | None = None,
    model: Transformer | None = None,
    orders: Orders = NO_ORDERS,
) -> list[list[Hypothesis]]:
    engine = Engine(model or lively_transformer(), Tokenizers(IDS, IDS), device=CPU)
    limits = [limit(ids) for ids in sources]
    return engine.search(sources, settings, limits=limits, seeds=seeds if seeds is not None else [*range(len(sources))], orders=orders)


def outputs(found: list[list[Hypothesis]]) -> list[list[tuple[list[int], bool]]]:
    return [[(h.ids, h.truncated) for h in hypotheses] for hypotheses in found]


def log_probs(found: list[list[Hypothesis]]) -> list[float]:
    return [h.log_prob for hypotheses in found for h in hypotheses]


def rescored(model: Transformer, sources: list[list[int]], targets: list[list[int]]) -> list[float]:
    """Log-probability of each target, EOS included, by a full pass over all of them."""
    ids = batch(sources, targets)
    allowed_BS = ids.src_BS != PAD
    with torch.no_grad():
        logits_BTV = model.output(model.decode(model.encode(ids.src_BS, allowed_BS), allowed_BS, ids.inputs_BT))
    gold_BT = logits_BTV.log_softmax(dim=-1).gather(2, ids.gold_BT[:, :, None])[:, :, 0]
    return gold_BT.masked_fill(ids.gold_BT == PAD, 0).sum(dim=1).tolist()


def test_the_model_is_a_fair_one_for_these_tests() -> None:
    """It reads its source, ends by itself and at the limit, and its best output is not always the greedy one."""
    greedy, beam = search(SOURCES, Beam(width=1)), search(SOURCES, Beam(width=4))
    assert len({tuple(h.ids) for (h,) in beam}) > len(SOURCES) // 2
    assert {h.truncated for (h,) in beam} == {True, False}
    assert outputs(greedy) != outputs(beam)
    assert outputs(search(SOURCES, Sampling())) != outputs(greedy)


@SETTINGS
def test_batch_mates_and_their_order_do_not_matter(settings: Beam | Sampling) -> None:
    whole = search(SOURCES, settings)
    order = random.Random(1).sample(range(len(SOURCES)), len(SOURCES))
    for size in (1, 3):
        found: dict[int, list[Hypothesis]] = {}
        for start in range(0, len(order), size):
            part = order[start : start + size]
            found |= zip(part, search([SOURCES[i] for i in part], settings, seeds=part), strict=True)
        in_order = [found[i] for i in range(len(SOURCES))]
        assert outputs(in_order) == outputs(whole)
        assert log_probs(in_order) == pytest.approx(log_probs(whole), abs=1e-10)


@SETTINGS
def test_log_probability_and_score_are_those_of_a_full_pass(settings: Beam | Sampling) -> None:
    found = search(SOURCES, settings)
    pairs = [(source, h) for source, hypotheses in zip(SOURCES, found, strict=True) for h in hypotheses]
    expected = rescored(lively_transformer(), [source for source, _ in pairs], [h.ids for _, h in pairs])
    assert [h.log_prob for _, h in pairs] == pytest.approx(expected, abs=1e-9)
    scores = [log_prob / (len(h.ids) + 1) ** settings.length_penalty for log_prob, (_, h) in zip(expected, pairs, strict=True)]
    assert [h.score for _, h in pairs] == pytest.approx(scores, abs=1e-9)


@SETTINGS
def test_limits_hold_and_are_the_only_reason_to_be_truncated(settings: Beam | Sampling) -> None:
    for source, hypotheses in zip(SOURCES, search(SOURCES, settings), strict=True):
        for h in hypotheses:
            assert len(h.ids) + 1 <= limit(source)
            assert not h.truncated or len(h.ids) + 1 == limit(source)


@SETTINGS
def test_phrases_are_said_with_the_probabilities_of_a_full_pass_and_are_nothing_to_batch_mates(settings: Beam | Sampling) -> None:
    phrases = [[((7, 9),), ((6,),)] if place % 2 else [] for place in range(len(SOURCES))]
    found = search(SOURCES, settings, orders=Orders(required=phrases))
    assert outputs(found)[::2] == outputs(search(SOURCES, settings))[::2]
    pairs = [(source, h) for source, hypotheses in zip(SOURCES, found, strict=True) for h in hypotheses]
    assert all(occurs((7, 9), h.ids) and 6 in h.ids for hypotheses in found[1::2] for h in hypotheses)
    expected = rescored(lively_transformer(), [source for source, _ in pairs], [h.ids for _, h in pairs])
    assert [h.log_prob for _, h in pairs] == pytest.approx(expected, abs=1e-9)
    assert all(hypotheses == sorted(hypotheses, key=lambda h: -h.score) for hypotheses in found)
    assert all(len({tuple(h.ids) for h in hypotheses}) == len(hypotheses) for hypotheses in found)


def test_beam_of_width_one_is_greedy() -> None:
    greedy = search(SOURCES, Beam(width=1))
    model_step = ModelStep(lively_transformer(), CPU)
    state = model_step.start([[*ids, EOS] for ids in SOURCES], pad=PAD)
    step = Suppress(model_step, (PAD, BOS, UNK))
    limits = [limit(ids) for ids in SOURCES]
    assert beam_search(step, state, bos=BOS, eos=EOS, limits=limits, width=1) == greedy
    assert search(SOURCES, Sampling(temperature=0)) == greedy
    assert outputs(search(SOURCES, Sampling(top_k=1))) == outputs(greedy)


@SETTINGS
def test_padding_start_and_unknown_are_never_generated(settings: Beam | Sampling) -> None:
    """By a model that would say nothing else."""
    model = lively_transformer()
    with torch.no_grad():
        model.decoder_norm.bias.fill_(1)
        for special in (PAD, UNK, BOS):
            model.output.weight[special] += 3
    step = ModelStep(model, CPU)
    logp_RV, _ = step(torch.full((len(SOURCES),), BOS), step.start([[*ids, EOS] for ids in SOURCES], pad=PAD))
    assert set(logp_RV.argmax(dim=1).tolist()) <= {PAD, UNK, BOS}
    pairs = [(source, h) for source, found in zip(SOURCES, search(SOURCES, settings, model=model), strict=True) for h in found]
    assert any(h.ids for _, h in pairs)
    assert all(i > EOS for _, h in pairs for i in h.ids)
    expected = rescored(model, [source for source, _ in pairs], [h.ids for _, h in pairs])
    assert [h.log_prob for _, h in pairs] == pytest.approx(expected, abs=1e-9)  # suppressed, not renormalised


def test_a_seed_belongs_to_its_sentence() -> None:
    settings = Sampling(temperature=2.0)
    first = search(SOURCES[:3], settings, seeds=[7, 8, 9])
    assert search(SOURCES[:3], settings, seeds=[7, 8, 9]) == first
    assert outputs(search(SOURCES[2::-1], settings, seeds=[9, 8, 7])) == outputs(first)[::-1]
    assert outputs(search(SOURCES[:3], settings, seeds=[70, 80, 90])) != outputs(first)


@pytest.mark.parametrize("size", [1, 2, 11])
def test_several_samples_are_those_of_their_seeds_whatever_the_batch(size: int) -> None:
    one, four = (Sampling(temperature=1.5, n_best=n) for n in (1, 4))
    whole = search(SOURCES, four)
    found = [
        hypotheses
        for start in range(0, len(SOURCES), size)
        for hypotheses in search(SOURCES[start : start + size], four, seeds=[*range(start, min(start + size, len(SOURCES)))])
    ]
    assert outputs(found) == outputs(whole)
    assert [hypotheses[:1] for hypotheses in outputs(whole)] == outputs(search(SOURCES, one))
    assert all(len(hypotheses) == 4 for hypotheses in whole)
    assert any(len({tuple(h.ids) for h in hypotheses}) == 4 for hypotheses in whole)
    pairs = [(source, h) for source, hypotheses in zip(SOURCES, whole, strict=True) for h in hypotheses]
    expected = rescored(lively_transformer(), [source for source, _ in pairs], [h.ids for _, h in pairs])
    assert [h.log_prob for _, h in pairs] == pytest.approx(expected, abs=1e-9)


def test_model_step_gives_the_log_softmax_of_the_model_in_fp32_or_better() -> None:
    for dtype, expected in ((torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32)):
        step = ModelStep(lively_transformer().to(dtype), CPU)
        with torch.no_grad():
            logp_RV, _ = step(torch.tensor([BOS, BOS]), step.start([[5, EOS], [6, 7, 8, EOS]], pad=PAD))
        assert logp_RV.dtype == expected
        torch.testing.assert_close(logp_RV.logsumexp(dim=1), torch.zeros(2, dtype=expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize("broken", ["encoder", "decoder"])
def test_broken_weights_are_an_error_and_no_translation(broken: str) -> None:
    model = lively_transformer()
    with torch.no_grad():
        next(model.get_submodule(broken).parameters()).fill_(torch.nan)
    with pytest.raises(DecodeError, match="NaN"):
        search(SOURCES[:2], Beam(width=2), model=model)


def test_a_model_in_training_is_refused() -> None:
    with pytest.raises(AssertionError):
        search(SOURCES[:1], Beam(), model=lively_transformer().train())


def test_no_sources_give_no_hypotheses() -> None:
    assert search([], Beam()) == search([], Beam(width=1)) == search([], Sampling()) == []


def test_searching_leaves_nothing_that_autograd_would_refuse() -> None:
    """Validation translates between updates, past the end of the table of positions too."""
    model = lively_transformer()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    engine = Engine(model, Tokenizers(IDS, IDS), device=CPU)
    engine.search([[5] * 530], Beam(width=1), limits=[3])
    ids_B1: Tensor = torch.tensor([[EOS]])
    model.encode(ids_B1, ids_B1 != PAD).sum().backward()
    assert not model.positions.rows.is_inference()
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def test_a_config_decides_the_beam() -> None:
    cfg = DecodeConfig(beam=6, n_best=4, patience=2.0, length_penalty=0.5)
    assert Beam.build(cfg) == Beam(width=6, length_penalty=0.5, n_best=4, patience=2.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"width": 1, "n_best": 2}, "n-best 2 is larger than beam 1"), ({"width": 0}, "beam 0"), ({"patience": 0.5}, "patience")],
)
def test_settings_that_cannot_be_met_are_refused_for_greedy_search_too(settings: dict[str, float], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        search(SOURCES[:1], Beam(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("said", ["CUDA out of memory. Tried to allocate", "DefaultCPUAllocator: can't allocate memory: you tried"])
def test_too_little_memory_is_told_with_its_cure(said: str) -> None:
    with pytest.raises(DecodeError, match="too little memory for a batch of 7 sentences: give a smaller --batch-tokens"), enough_memory(7):
        raise RuntimeError(said)
    with pytest.raises(RuntimeError, match="shapes"), enough_memory(7):
        raise RuntimeError("shapes do not fit")


def test_a_beam_that_nobody_can_mean() -> None:
    with pytest.raises(DecodeError, match="^beam 1000000000: give a width from 1"):
        Beam(width=10**9)
