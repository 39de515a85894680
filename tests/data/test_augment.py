"""Noise: how often, how far, of what, and that nothing but (seed, epoch, draw) decides it."""

from __future__ import annotations

import math
import random
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import regex
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config.schema import AugmentConfig, BpeDropout, Sample, TokenizerConfig, Unigram, UnigramSample
from mt.data.augment import FINAL, TOO_LONG, Augmenter, TextNoise, dropped, masked, pair_rng, shuffled
from mt.data.store import Example
from mt.formats.pairs import Pair
from mt.tokenizer.fit import fit
from mt.tokenizer.spm import Tokenizer, Tokenizers
from tests import toy

NOISE = TextNoise(["{date}", "<b>", "."])
PLAIN = TextNoise()
COUNT = 2000
EVERYTHING = AugmentConfig.model_validate(
    {
        "token_drop": 0.1,
        "token_mask": 0.1,
        "local_shuffle": {"probability": 0.5, "distance": 2},
        "upper_case": 0.2,
        "title_case": 0.2,
        "strip_punctuation": 0.3,
    }
)


@cache
def tokenizers(kind: Any = "bpe", *, cases: bool = True) -> Tokenizers:
    """Of the toy language, with pieces for its letters in both cases or in its own only."""
    texts = [text for source in toy.sentences(200) for text in (source, toy.translation(source))]
    texts += [f"{text.upper()} {text.title()}" for text in texts] if cases else []
    with TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.model")
        fit(texts, path, TokenizerConfig(kind=kind, vocab_size=300, byte_fallback=False), seed=1)
        return Tokenizers(*[Tokenizer.load(path)] * 2)


def examples(count: int = COUNT, *, shortest: int = 3, of: Tokenizers | None = None) -> list[Example]:
    src, tgt = of or tokenizers()
    pairs = [Pair(s, toy.translation(s), f"train.src:{n}") for n, s in enumerate(toy.sentences(count, shortest=shortest), 1)]
    return [Example(pair, src.encode(pair.src), tgt.encode(pair.tgt), draw) for draw, pair in enumerate(pairs)]


def augmenter(
    cfg: AugmentConfig | None = None, *, sample: Sample | None = None, of: Tokenizers | None = None, **settings: Any
) -> Augmenter:
    given = {"max_pieces": None, "seed": 1, **settings}
    return Augmenter(cfg or AugmentConfig(), sample=sample, tokenizers=of or tokenizers(), **given)


def seen(found: Augmenter, *, epoch: int = 0, count: int = COUNT) -> list[Example]:
    return found(examples(count), epoch=epoch)


def assert_rate(count: int, of: int, p: float) -> None:
    """As often as so many trials of probability p come out, five standard deviations allowed."""
    assert abs(count - of * p) <= 5 * math.sqrt(of * p * (1 - p)), f"{count} of {of}, not about {of * p:.0f}"


# ── text ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "upper", "title"),
    [
        ("the straße is here.", "THE STRASSE IS HERE.", "The Straße Is Here."),
        ("«так» сказал он", "«ТАК» СКАЗАЛ ОН", "«Так» Сказал Он"),
        ("they're in hyphen-ated O'Neill", "THEY'RE IN HYPHEN-ATED O'NEILL", "They're In Hyphen-ated O'Neill"),
        ("the 4th of july", "THE 4TH OF JULY", "The 4th Of July"),
        ("on {date}s we <b>eat</b>", "ON {date}S WE <b>EAT</B>", "On {date}s We <b>eat</b>"),
        ('"{date}" is (now)', '"{date}" IS (NOW)', '"{date}" Is (Now)'),
        ("e\u0301te\u0301 ǆin", "E\u0301TE\u0301 Ǆ" + "IN", "E\u0301te\u0301 ǅin"),
        ("日本語 です", "日本語 です", "日本語 です"),
        ("_this\u00a0way  _", "_THIS\u00a0WAY  _", "_This\u00a0Way  _"),
    ],
)
def test_letter_case(text: str, upper: str, title: str) -> None:
    assert (NOISE.upper(text), NOISE.title(text)) == (upper, title)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A man walks.", "A man walks"),
        ("Wirklich ?!", "Wirklich"),
        ("Attends…  ", "Attends"),
        ("走っている。", "走っている"),
        ("真的吗？！", "真的吗"),
        ("هل هذا صحيح؟", "هل هذا صحيح"),
        ("یہ سچ ہے۔", "یہ سچ ہے"),
        ("यह सच है।", "यह सच है"),
        ("मन्त्र॥", "मन्त्र"),
        ("ይህ ነው።", "ይህ ነው"),
        ("Τι;", "Τι"),
        ("այո։", "այո"),
        ("ဟုတ်တယ်။", "ဟုတ်တယ်"),
        ("បាទ។", "បាទ"),
        ("no mark at the end ", "no mark at the end "),
        ('He said "go."', 'He said "go."'),
        ("3.14 is 3.14.", "3.14 is 3.14"),
        ("a . b", "a . b"),
    ],
)
def test_final_punctuation(text: str, left: str) -> None:
    assert PLAIN.without_ending(text) == left


def test_a_declared_symbol_is_no_punctuation() -> None:
    assert NOISE.without_ending("the end.") == "the end."
    assert NOISE.without_ending("on {date}?") == "on {date}"


def test_what_ends_a_sentence_is_what_unicode_says() -> None:
    leaders = {"\u2025", "\u2026", "\u22ef"}
    assert all(regex.fullmatch(r"\p{Terminal_Punctuation}", mark) for mark in set(FINAL) - leaders)
    missing = [
        mark
        for mark in map(chr, range(0x3100))
        if regex.fullmatch(r"\p{Sentence_Terminal}", mark) and mark not in FINAL and unicodedata.category(mark) == "Po"
    ]
    historic = ("SAMARITAN", "MANDAIC", "COPTIC", "STENOGRAPHIC", "BALINESE", "MEDIEVAL", "SYRIAC")
    assert [mark for mark in missing if not unicodedata.name(mark).startswith(historic)] == []


any_text = st.lists(st.one_of(st.text(max_size=4), st.sampled_from(["{date}", "<b>", " ", ". ", "。", "word", "ß", "।", "?!"]))).map(
    "".join
)


@given(text=any_text)
def test_what_text_noise_may_change(text: str) -> None:
    upper, title, left = NOISE.upper(text), NOISE.title(text), NOISE.without_ending(text)
    assert upper.count("{date}") == title.count("{date}") == text.count("{date}")
    assert title.casefold() == text.casefold()
    assert PLAIN.upper(text) == text.upper()
    assert text.startswith(left)
    assert all(mark in FINAL or mark.isspace() for mark in text[len(left) :])
    assert NOISE.title(title) == title
    assert NOISE.without_ending(left) == left


@given(src=any_text.filter(str.strip), tgt=any_text.filter(str.strip), number=st.integers(0, 50))
def test_no_text_is_emptied_and_both_sides_change_together(src: str, tgt: str, number: int) -> None:
    cfg = AugmentConfig(upper_case=0.4, title_case=0.4, strip_punctuation=0.7)
    texts, names = NOISE(Pair(src, tgt, "x:1"), cfg, random.Random(number))
    assert all(text.strip() for text in texts)
    expected = [(src, tgt)]
    for name, step in ("upper_case", NOISE.upper), ("title_case", NOISE.title), ("strip_punctuation", NOISE.without_ending):
        if name in names:
            expected.append((step(expected[-1][0]), step(expected[-1][1])))
    assert texts == expected[-1]
    assert all(one != other for one, other in pairwise(expected))


def test_both_sides_are_left_where_one_would_be_emptied() -> None:
    texts, names = PLAIN(Pair("What?", "???", "x:1"), AugmentConfig(strip_punctuation=1), random.Random(0))
    assert (texts, names) == (("What?", "???"), [])


def test_letter_case_and_punctuation_come_as_often_as_they_should() -> None:
    found = seen(augmenter(AugmentConfig(upper_case=0.2, title_case=0.3, strip_punctuation=0.4)))
    for name, p in ("upper_case", 0.2), ("title_case", 0.3), ("strip_punctuation", 0.4):
        assert_rate(sum(name in one.noise for one in found), COUNT, p)
    assert not any({"upper_case", "title_case"} <= set(one.noise) for one in found)
    assert_rate(sum({"upper_case", "strip_punctuation"} <= set(one.noise) for one in found), COUNT, 0.08)  # drawn independently
    src, tgt = tokenizers()
    for one in found:
        texts, cases = one.pair[:2], [name for name in one.noise if name in ("upper_case", "title_case")]
        for step in [getattr(PLAIN, name.removesuffix("_case")) for name in cases]:
            texts = tuple(map(step, texts))
        if "strip_punctuation" in one.noise:
            texts = tuple(map(PLAIN.without_ending, texts))
        assert (src.decode(one.src_ids), tgt.decode(one.tgt_ids)) == texts
        assert (one.src_ids, one.tgt_ids) == (src.encode(texts[0]), tgt.encode(texts[1]))


def test_letters_without_pieces_are_left_in_their_case() -> None:
    own = tokenizers(cases=False)
    plain = examples(of=own)[:100]
    found = augmenter(AugmentConfig(upper_case=0.5, strip_punctuation=0.5), of=own)(plain, epoch=0)
    assert not any(own.src.unk in ids for one in found for ids in (one.src_ids, one.tgt_ids))
    assert {one.noise for one in found} == {(), ("strip_punctuation",)}


# ── pieces ──────────────────────────────────────────────────────────────────────────────────────────────────────────

some_ids = st.lists(st.integers(4, 40), min_size=1, max_size=12)
shares = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])


@given(ids=some_ids, p=shares, seed=st.integers(0, 1000))
def test_dropping_keeps_the_order_and_at_least_one(ids: list[int], p: float, seed: int) -> None:
    left = dropped(ids, p, random.Random(seed))
    rest = iter(ids)
    assert all(i in rest for i in left)  # a subsequence
    assert left
    assert left == ids if p == 0 else p < 1 or len(left) == 1


@given(ids=some_ids, p=shares, seed=st.integers(0, 1000))
def test_masking_keeps_the_length_and_the_others(ids: list[int], p: float, seed: int) -> None:
    found = masked(ids, p, random.Random(seed), mask=1)
    assert len(found) == len(ids)
    assert all(new in (1, old) for new, old in zip(found, ids, strict=True))
    assert found == ids if p == 0 else p < 1 or set(found) == {1}


@given(count=st.integers(0, 30), distance=st.integers(1, 6), seed=st.integers(0, 1000))
def test_shuffling_moves_nothing_further_than_the_distance(count: int, distance: int, seed: int) -> None:
    found = shuffled(range(count), distance, random.Random(seed))
    assert sorted(found) == list(range(count))
    assert all(abs(place - before) <= distance for place, before in enumerate(found))


@pytest.mark.parametrize("distance", [1, 2, 5])
def test_two_pieces_change_places_as_often_as_the_definition_says(distance: int) -> None:
    rng = random.Random(5)
    swaps = sum(shuffled([0, 1], distance, rng) == [1, 0] for _ in range(4000))
    # 0 + u > 1 + v for u, v uniform in (0, k + 1): a triangle with legs of k in a square with sides of k + 1.
    assert_rate(swaps, 4000, distance**2 / 2 / (distance + 1) ** 2)


def test_the_furthest_allowed_move_happens() -> None:
    rng = random.Random(5)
    moves = {abs(place - before) for _ in range(2000) for place, before in enumerate(shuffled(range(6), 3, rng))}
    assert moves == {0, 1, 2, 3}


def test_pieces_are_dropped_masked_and_shuffled_as_often_as_they_should() -> None:
    plain = examples()
    pieces = sum(len(one.src_ids) for one in plain)
    fewer = seen(augmenter(AugmentConfig(token_drop=0.1)))
    assert_rate(pieces - sum(len(one.src_ids) for one in fewer), pieces, 0.1)
    unknown = seen(augmenter(AugmentConfig(token_mask=0.15)))
    assert_rate(sum(one.src_ids.count(tokenizers().src.unk) for one in unknown), pieces, 0.15)
    always, half = (seen(augmenter(AugmentConfig.model_validate({"local_shuffle": {"probability": p}}))) for p in (1.0, 0.5))
    moved = [sum(one.noise == ("local_shuffle",) for one in found) for found in (always, half)]
    assert moved[0] > 0.8 * COUNT
    assert abs(moved[1] - moved[0] / 2) < 5 * math.sqrt(COUNT / 4)
    for found in (fewer, unknown, always, half):
        assert [one.tgt_ids for one in found] == [one.tgt_ids for one in plain]
        assert all((one.noise == ()) == (one.src_ids == before.src_ids) for one, before in zip(found, plain, strict=True))


# ── sub-words ───────────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLES = {
    "bpe": BpeDropout(bpe_dropout=0.3),
    "unigram": UnigramSample(unigram=Unigram(alpha=0.3, nbest=-1)),
    "nbest": UnigramSample(unigram=Unigram(alpha=0.3, nbest=8)),
}


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("sides", [["src"], ["tgt"], ["src", "tgt"]])
def test_sampled_pieces_spell_the_noisy_text(kind: str, sides: Any) -> None:
    of = tokenizers("bpe" if kind == "bpe" else "unigram")
    sample = SAMPLES[kind].model_copy(update={"sides": sides})
    cfg = AugmentConfig(upper_case=0.3)
    plain = examples(of=of)[:200]
    found = augmenter(cfg, sample=sample, of=of)(plain, epoch=0)
    usual = augmenter(cfg, of=of)(plain, epoch=0)
    for side, ids, tokenizer in ("src", 1, of.src), ("tgt", 2, of.tgt):
        assert [tokenizer.decode(one[ids]) for one in found] == [tokenizer.decode(one[ids]) for one in usual]
        changed = sum(one[ids] != other[ids] for one, other in zip(found, usual, strict=True))
        assert changed > 100 if side in sides else changed == 0
    name = "bpe_dropout" if kind == "bpe" else "unigram"
    for one, other in zip(found, usual, strict=True):
        assert (name in one.noise) == (one[1:3] != other[1:3])


# ── determinism ─────────────────────────────────────────────────────────────────────────────────────────────────────

BPE = BpeDropout(bpe_dropout=0.2)


@settings(max_examples=20)
@given(order=st.permutations(range(12)), cut=st.integers(0, 12))
def test_a_pair_is_the_same_in_any_company(order: list[int], cut: int) -> None:
    augment, plain = augmenter(EVERYTHING, sample=BPE), examples()[:12]
    together = augment(plain, epoch=3)
    apart: dict[int, Example] = {}
    for places in (order[:cut], order[cut:]):
        apart |= dict(zip(places, augment([plain[i] for i in places], epoch=3), strict=True))
    assert [apart[i] for i in range(12)] == together


def test_seed_epoch_and_draw_each_matter() -> None:
    one = examples()[0]
    plain, later = ([one._replace(draw=draw) for draw in range(start, start + 100)] for start in (0, 100))
    first = augmenter(EVERYTHING, sample=BPE)(plain, epoch=0)
    assert first == augmenter(EVERYTHING, sample=BPE)(plain, epoch=0)
    others = [
        augmenter(EVERYTHING, sample=BPE, seed=2)(plain, epoch=0),
        augmenter(EVERYTHING, sample=BPE)(plain, epoch=1),
        augmenter(EVERYTHING, sample=BPE)(later, epoch=0),
    ]
    for other in others:
        assert sum(one[1:3] != another[1:3] for one, another in zip(first, other, strict=True)) > 80
    assert len({tuple(one.src_ids) for one in first}) > 80


def test_all_chance_is_that_of_the_one_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it gives the same numbers to all, equal pairs become equal; and the generators that others share are not touched."""
    alike = [examples()[0]._replace(draw=draw) for draw in range(50)]
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
    assert len({tuple(one.src_ids) for one in augmenter(EVERYTHING, sample=BPE)(alike, epoch=0)}) > 40
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before  # type: ignore[index]
    monkeypatch.setattr("mt.data.augment.pair_rng", lambda seed, epoch, draw: random.Random(5))  # noqa: ARG005
    assert len({tuple(one.src_ids) for one in augmenter(EVERYTHING, sample=BPE)(alike, epoch=0)}) == 1


def independent(*numbers: int) -> Sequence[float]:
    """What a pair's generator gives, by numpy's Mersenne Twister (Matsumoto and Nishimura's init_by_array and 53-bit numbers)."""
    seed, words = sum(number << 64 * place for place, number in enumerate(reversed(numbers))), []
    while seed:
        seed, word = divmod(seed, 1 << 32)
        words.append(word)
    return np.random.RandomState(words).random_sample(5).tolist()


@pytest.mark.parametrize("numbers", [(1, 0, 0), (7, 3, 12345678901)])
def test_the_generator_is_the_documented_one(numbers: tuple[int, int, int]) -> None:
    rng = pair_rng(*numbers)
    assert [rng.random() for _ in range(5)] == independent(*numbers)


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pair_that_would_be_too_long_stays_as_it_was() -> None:
    plain = examples()
    longest = max(len(ids) for one in plain for ids in one[1:3])
    free, held = (seen(augmenter(sample=BpeDropout(bpe_dropout=0.6), max_pieces=most)) for most in (None, longest))
    kept = 0
    for before, one, other in zip(plain, free, held, strict=True):
        if max(map(len, one[1:3])) > longest:
            assert other == before._replace(noise=(TOO_LONG,))
            kept += 1
        else:
            assert other == one
    assert 0 < kept < COUNT


def test_a_pair_never_loses_its_last_piece() -> None:
    word = Example(Pair("bage", "depe", "x:1"), tokenizers().src.encode("b"), tokenizers().tgt.encode("d"))
    found = augmenter(AugmentConfig(token_drop=1))([word._replace(draw=draw) for draw in range(5)], epoch=0)
    assert all(len(one.src_ids) == 1 for one in found)


def test_without_settings_there_is_no_noise() -> None:
    augment = augmenter()
    assert not augment.active
    assert augment(examples(3), epoch=1) == examples(3)
