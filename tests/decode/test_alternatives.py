"""Alternatives begin with the most probable ids after a prefix, and go on as a search does that has these forced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from mt.constraints.orders import Orders
from mt.decode.engine import Beam, Engine, Sampling
from mt.errors import DecodeError
from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.search.step import Hypothesis
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests.model.untrained import BOS, EOS, PAD, UNK, VOCAB, lively_transformer, sentences

IDS = cast("Tokenizer", SimpleNamespace(pad=PAD, unk=UNK, bos=BOS, eos=EOS, prefixes=()))
BOTH, CPU = Tokenizers(IDS, IDS), torch.device("cpu")
SOURCES = sentences(3, 1, 8, 2, 5, 5, seed=3)
PREFIXES = [[], [7], [5, 6, 5], [], [9, 9], [12]]
SETTINGS = pytest.mark.parametrize(
    "settings",
    [Beam(width=1), Beam(width=3, n_best=3), Beam(width=3, coverage_penalty=0.3), Sampling(temperature=1.5)],
    ids=["greedy", "beam", "coverage", "sampling"],
)


def engine() -> Engine:
    return Engine(lively_transformer(), BOTH, device=CPU)


def limits(prefixes: list[list[int]]) -> list[int]:
    return [9 + len(ids) for ids in prefixes]


def alternatives(settings: Beam | Sampling, k: int, *, places: list[int] | None = None) -> list[list[Hypothesis]]:
    places = [*range(len(SOURCES))] if places is None else places
    prefixes = [PREFIXES[place] for place in places]
    sources, orders = [SOURCES[place] for place in places], Orders(prefixes=prefixes)
    return engine().alternatives(sources, settings, [k] * len(sources), limits=limits(prefixes), seeds=places, orders=orders)


def first(one: Hypothesis, prefix: list[int]) -> int:
    """The id after the prefix."""
    assert one.ids[: len(prefix)] == prefix
    return [*one.ids, EOS][len(prefix)]


@SETTINGS
@pytest.mark.parametrize("k", [1, 4, VOCAB])
def test_they_begin_with_the_most_probable_ids(settings: Beam | Sampling, k: int) -> None:
    """As a full pass over prefix and id finds them; the end is one of them, padding and the like are not."""
    possible = [i for i in range(VOCAB) if i not in (PAD, UNK, BOS)]
    for source, prefix, found in zip(SOURCES, PREFIXES, alternatives(settings, k), strict=True):
        given = [Given(source, [*prefix, i]) for i in possible]
        values = token_log_probs([lively_transformer()], given, BOTH, device=CPU, batch_tokens=1000)
        log_prob = {i: own[len(prefix)] for i, own in zip(possible, values, strict=True)}
        begun = [first(one, prefix) for one in found]
        assert begun == sorted(possible, key=lambda i: -log_prob[i])[:k]
        assert [one.tokens[len(prefix)] for one in found] == pytest.approx([log_prob[i] for i in begun], abs=1e-6)


@SETTINGS
def test_each_is_what_a_search_finds_that_has_its_beginning_forced(settings: Beam | Sampling) -> None:
    found = alternatives(settings, 4)
    for place, (source, prefix, own) in enumerate(zip(SOURCES, PREFIXES, found, strict=True)):
        for one in own:
            forced = [*prefix, first(one, prefix)]
            orders = Orders(prefixes=[forced])
            limit = [max(limits([prefix])[0], orders.least(0))]
            (alone,) = engine().search([source], settings, limits=limit, seeds=[place], orders=orders)
            assert one.ids == alone[0].ids
            assert (one.log_prob, one.score) == pytest.approx((alone[0].log_prob, alone[0].score), abs=1e-9)


def test_the_one_of_greedy_search_is_its_own() -> None:
    plain = engine().search(SOURCES, Beam(width=1), limits=limits(PREFIXES), orders=Orders(prefixes=PREFIXES))
    assert [[one.ids for one in own] for own in alternatives(Beam(width=1), 1)] == [[one.ids for one in own] for own in plain]


def test_where_none_are_asked_for_there_is_the_best() -> None:
    settings = Beam(width=3)
    plain = engine().search(SOURCES, settings, limits=[9] * 6)
    most = [2, 0, 3, 0, 0, 1]
    found = engine().alternatives(SOURCES, settings, most, limits=[9] * 6)
    assert [len(own) for own in found] == [2, 1, 3, 1, 1, 1]
    for place in (1, 3, 4):
        assert [one.ids for one in found[place]] == [one.ids for one in plain[place]]


def test_neighbours_in_the_batch_do_not_matter() -> None:
    whole = alternatives(Sampling(temperature=1.5), 3)
    for place in range(len(SOURCES)):
        (alone,) = alternatives(Sampling(temperature=1.5), 3, places=[place])
        assert [one.ids for one in alone] == [one.ids for one in whole[place]]


def test_what_is_banned_is_no_alternative() -> None:
    orders = Orders(banned=[[7], [5, 8]], prefixes=[[], [5]])
    found = engine().alternatives(SOURCES[:2], Beam(width=2), [VOCAB] * 2, limits=[9] * 2, orders=orders)
    begun = [{first(one, prefix) for one in own} for own, prefix in zip(found, orders.prefixes, strict=True)]
    assert begun == [{*range(EOS, VOCAB)} - {7}, {*range(EOS, VOCAB)} - {7, 8}]


def test_several_samples_obey_the_prefix_of_their_sentence() -> None:
    orders = Orders(prefixes=PREFIXES)
    found = engine().search(SOURCES, Sampling(n_best=3), limits=limits(PREFIXES), seeds=[*range(6)], orders=orders)
    assert all(one.ids[: len(prefix)] == prefix for own, prefix in zip(found, PREFIXES, strict=True) for one in own)


def test_broken_weights_are_an_error() -> None:
    model = lively_transformer()
    with torch.no_grad():
        next(model.decoder.parameters()).fill_(torch.nan)
    with pytest.raises(DecodeError, match="NaN"):
        Engine(model, BOTH, device=CPU).alternatives(SOURCES, Beam(width=2), [2] * 6, limits=[9] * 6)
