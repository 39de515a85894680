"""Random segmentations against their definitions: sentencepiece where no chance is left, and distributions by enumeration."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config.schema import BpeDropout, TokenizerConfig, Unigram, UnigramSample
from mt.tokenizer.fit import fit
from mt.tokenizer.segmentation import LatticeSampler, MergeDropout, Vocabulary
from mt.tokenizer.spm import Tokenizer

WORDS = ["bako", "baka", "limu", "likoba", "kobako", "seda", "<ph1>x", "語ba", "a<ph1><ph1>b", "<a", "<ab>"]
SYMBOLS = ["<ph1>", "<a", "<ab>"]
ALMOST_NEVER = 1e-15


def vocabulary(scores: Mapping[str, float], *, symbols: list[str] | None = None) -> Vocabulary:
    ids = {piece: 4 + i for i, piece in enumerate([*(symbols or []), *scores])}
    return Vocabulary(scores, symbols=symbols or [], ids=ids, bytes_=None, unk=1)


def texts() -> list[str]:
    rng = random.Random(2)
    return [" ".join(rng.choices(WORDS, k=6)) for _ in range(100)]


@pytest.fixture(scope="module", params=["bpe", "bpe-bytes", "unigram", "unigram-bytes"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    kind, _, spelled = request.param.partition("-")
    cfg = TokenizerConfig(kind=kind, byte_fallback=bool(spelled), vocab_size=400, symbols=SYMBOLS)
    return Tokenizer.load(fit(texts(), tmp_path_factory.mktemp("s") / "t.model", cfg, seed=1).model)


def score(model: Tokenizer, ids: list[int]) -> float:
    return sum(model._scores[i] for i in ids)


any_text = st.lists(st.one_of(st.sampled_from([*WORDS, *SYMBOLS, " ", "語", "語文"]), st.text(max_size=3))).map("".join)


@settings(max_examples=100, deadline=None)
@given(text=any_text)
def test_with_no_chance_left_it_is_sentencepiece_s_own_segmentation(model: Tokenizer, text: str) -> None:
    usual = model.encode(text)
    if all(s.is_integer() for s in model._scores):
        assert model.sample_batch([text], BpeDropout(bpe_dropout=ALMOST_NEVER), rngs=[random.Random(1)]) == [usual]
    else:
        likeliest = UnigramSample(unigram=Unigram(alpha=1e6, nbest=-1))
        (ids,) = model.sample_batch([text], likeliest, rngs=[random.Random(1)])
        assert model.decode(ids) == model.decode(usual)
        assert score(model, ids) == pytest.approx(score(model, usual), abs=1e-3)


# ── merges ──────────────────────────────────────────────────────────────────────────────────────────────────────────

MERGES = {"ab": -0.0, "bc": -1.0, "abc": -2.0, "cd": -3.0, "abcd": -4.0, "ca": -5.0, "a": -6.0, "b": -7.0, "c": -8.0, "d": -9.0}


def with_dropout(
    parts: tuple[str, ...], p: float, out: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every outcome with its probability: the best merge not yet left out is made, or left out for good (by its place in the text)."""
    begins = [sum(map(len, parts[:i])) for i in range(len(parts) + 1)]
    possible = [
        (-MERGES[parts[i] + parts[i + 1]], i)
        for i in range(len(parts) - 1)
        if parts[i] + parts[i + 1] in MERGES and (begins[i], begins[i + 1], begins[i + 2]) not in out
    ]
    if not possible:
        yield parts, 1.0
        return
    _, i = min(possible)
    merged = (*parts[:i], parts[i] + parts[i + 1], *parts[i + 2 :])
    for pieces, q in with_dropout(merged, p, out):
        yield pieces, q * (1 - p)
    for pieces, q in with_dropout(parts, p, out | {(begins[i], begins[i + 1], begins[i + 2])}):
        yield pieces, q * p


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("word", ["abcd", "abcabcd", "dd"])
def test_merges_are_left_out_as_often_as_they_should(p: float, word: str) -> None:
    expected: Counter[tuple[int, ...]] = Counter()
    vocab = vocabulary(MERGES)
    for pieces, q in with_dropout(tuple(word), p):
        expected[tuple(vocab.spell(pieces))] += q  # type: ignore[assignment]
    dropout, rng = MergeDropout(vocab), random.Random(4)
    drawn = Counter(tuple(dropout.sample(word, p=p, rng=rng)) for _ in range(10000))
    assert set(drawn) <= set(expected)
    for ids, q in expected.items():
        assert abs(drawn[ids] / 10000 - q) < 5 * math.sqrt(q * (1 - q) / 10000) + 1e-9


def test_a_long_unit_takes_no_quadratic_time() -> None:
    rng = random.Random(1)
    word = "".join(rng.choices("abcd", k=50000))
    ids = MergeDropout(vocabulary(MERGES)).sample(word, p=0.1, rng=rng)
    assert 12500 < len(ids) < 50000


# ── lattice ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LOGS = {"a": -2.0, "b": -2.5, "c": -3.0, "ab": -2.2, "bc": -1.0, "abc": -3.5, "ca": -4.0}


def segmentations(word: str) -> Iterator[list[str]]:
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        places = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(word)]
        pieces = [word[a:b] for a, b in itertools.pairwise(places)]
        if all(piece in LOGS or len(piece) == 1 for piece in pieces):
            yield pieces


@pytest.mark.parametrize("alpha", [0.01, 0.5, 2.0])
@pytest.mark.parametrize("word", ["abc", "abcab", "ab?ca"])
def test_lattice_draws_follow_the_scores(alpha: float, word: str) -> None:
    vocab = vocabulary(LOGS)
    weights = {
        tuple(vocab.spell(pieces)): math.exp(alpha * sum(LOGS.get(piece, 0.0) for piece in pieces)) for pieces in segmentations(word)
    }
    sampler, rng = LatticeSampler(vocab), random.Random(4)
    drawn = Counter(tuple(sampler.sample(word, alpha=alpha, rng=rng)) for _ in range(10000))
    assert set(drawn) <= set(weights)
    for ids, weight in weights.items():
        q = weight / sum(weights.values())
        assert abs(drawn[ids] / 10000 - q) < 5 * math.sqrt(q * (1 - q) / 10000) + 1e-9


def test_a_lattice_of_a_long_unit_does_not_underflow() -> None:
    vocab = vocabulary(LOGS)
    ids = LatticeSampler(vocab).sample("abc" * 5000, alpha=5.0, rng=random.Random(1))
    assert 5000 <= len(ids) <= 15000


def test_draws_from_the_best_follow_the_scores(tmp_path: Path) -> None:
    cfg = TokenizerConfig(kind="unigram", byte_fallback=False, vocab_size=400, symbols=SYMBOLS)
    model = Tokenizer.load(fit(texts(), tmp_path / "t.model", cfg, seed=1).model)
    line = "kobako <ph1>seda"
    rngs = [random.Random(n) for n in range(5000)]
    drawn = Counter(map(tuple, model.sample_batch([line] * 5000, UnigramSample(unigram=Unigram(alpha=0.5, nbest=5)), rngs=rngs)))
    symbol = next(i for i in model.encode(line) if model.decode([i]) == "<ph1>")
    best = [ids for ids in map(tuple, model._model.nbest_encode(line, nbest_size=5)) if symbol in ids]
    weights = {ids: math.exp(0.5 * score(model, list(ids))) for ids in best}
    assert len(best) > 1
    assert set(drawn) <= set(best)
    for ids, weight in weights.items():
        q = weight / sum(weights.values())
        assert abs(drawn[ids] / 5000 - q) < 5 * math.sqrt(q * (1 - q) / 5000)


# ── units ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_units_are_words_and_symbols_the_longest_first() -> None:
    vocab = vocabulary(LOGS, symbols=["<a", "<ab>", "."])
    assert list(vocab.units("▁ab<ab>c▁.▁<a<abc")) == ["▁ab", "<ab>", "c", "▁", ".", "▁", "<a", "<a", "bc"]
    assert list(vocab.units("")) == []


def test_unknown_characters_in_a_row_are_one_unknown() -> None:
    assert vocabulary(LOGS).spell(["a", "?", "!", "b", "?"]) == [4, 1, 5, 1]
