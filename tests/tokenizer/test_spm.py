"""Encoding, sampling and decoding: what comes back, which ids there are, what chance may change."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mt.config.schema import BpeDropout, Sample, TokenizerConfig, Unigram, UnigramSample
from mt.errors import TokenizerError
from mt.tokenizer.fit import fit
from mt.tokenizer.spm import UNKNOWN, Tokenizer, Tokenizers

WORDS = ["bako", "limu", "seda", "toru", "vani", "kelo", "mipo", "rasu", "dena", "fogi", "hulo", "jape", "nuri", "quvi", "ruso", "zofu"]
ODD = "éßıﬁÅe\u0301 \u00ad\u200b\u00a0\u3000\u2009\ufeff\ufffd▅⁇你，नमस्ते\u2028\u0085\x0b\x1f\r\U0001f680❤\ufe0f<>/0x41\"'\\,&={"
LITERALS = ["</s>", "<s>", "<unk>", "<pad>", "<0x41>", "<2de>", "<bt>"]
SYMBOLS = ["<ph1>", "{date}", "@"]


def corpus() -> list[str]:
    rng = random.Random(3)
    toy = [" ".join(rng.choices(WORDS, k=rng.randint(2, 7))) + " ." for _ in range(200)]
    return toy + [ODD, *LITERALS, "bako <ph1> limu@seda {date}"]


def trained(path: Path, **settings: object) -> Tokenizer:
    cfg = TokenizerConfig(**{"vocab_size": 300, "symbols": SYMBOLS, **settings})
    fit(corpus(), path, cfg, tags=["de", "fr"], seed=1)
    return Tokenizer.load(path)


@pytest.fixture(scope="module", params=["bpe", "bpe-bytes", "unigram", "unigram-bytes"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    kind, _, fallback = request.param.partition("-")
    size = 450 if fallback else 200
    return trained(tmp_path_factory.mktemp("spm") / "m.model", kind=kind, byte_fallback=bool(fallback), vocab_size=size)


@pytest.fixture(scope="module")
def bpe(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return trained(tmp_path_factory.mktemp("spm") / "m.model", kind="bpe", byte_fallback=False)


@pytest.fixture(scope="module")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return trained(tmp_path_factory.mktemp("spm") / "m.model", kind="unigram", byte_fallback=False)


@pytest.fixture(scope="module")
def spelling(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return trained(tmp_path_factory.mktemp("spm") / "m.model", byte_fallback=True, vocab_size=500)


def collapsed(text: str) -> str:
    """What a round trip may change, by the module's own words."""
    return re.sub("[ \t\n\u2581]+", " ", text).strip(" ")


ALPHABET = sorted({c for line in corpus() for c in line})
known_text = st.lists(
    st.one_of(st.sampled_from([*WORDS, *LITERALS, *SYMBOLS, " ", "  ", "\t", "\n", "\u2581", "\u2581\u2581"]), st.sampled_from(ALPHABET))
).map("".join)
any_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
examples = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


# ── round trip ──────────────────────────────────────────────────────────────────────────────────────────────────────


@examples
@given(text=known_text)
def test_text_over_the_training_alphabet_comes_back_but_for_white_space(model: Tokenizer, text: str) -> None:
    assert model.decode(model.encode(text)) == collapsed(text)


@examples
@given(text=any_text)
def test_with_bytes_any_text_comes_back_but_for_white_space(spelling: Tokenizer, text: str) -> None:
    assert spelling.decode(spelling.encode(text)) == collapsed(text)


@examples
@given(text=st.one_of(known_text, any_text))
def test_encode_gives_no_special_id_but_unknown(model: Tokenizer, text: str) -> None:
    ids = model.encode(text)
    special = {model.pad, model.bos, model.eos, model.tag("de"), model.tag("fr")}
    assert all(0 <= i < model.size for i in ids)
    assert special.isdisjoint(ids)


@pytest.mark.parametrize("space", ["\t", "\n", "\u2581", "  ", " \t "])
def test_what_acts_as_a_space(model: Tokenizer, space: str) -> None:
    assert model.encode(f"{space}bako{space}limu{space}") == model.encode("bako limu")


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2009", "\r", "\x0b", "\u2028", "\u0085", "\u200b"])
def test_other_white_space_is_text(model: Tokenizer, space: str) -> None:
    assert model.decode(model.encode(f"{space}bako{space}")) == f"{space}bako{space}"


def test_a_lone_surrogate_becomes_the_replacement_character(model: Tokenizer) -> None:
    assert model.decode(model.encode("bako \ud800 \U0001f680")) == model.decode(model.encode("bako \ufffd \ud83d\ude80"))


def test_a_batch_is_its_lines(model: Tokenizer) -> None:
    lines = corpus()
    assert model.encode_batch(lines) == [model.encode(line) for line in lines]
    assert model.encode_batch([]) == []


def test_blank_text_has_no_ids(model: Tokenizer) -> None:
    assert model.encode("") == model.encode(" \t ") == []


# ── decode ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@examples
@given(ids=st.lists(st.integers(-3, 520)))
def test_decode_takes_any_ids_and_gives_one_line(model: Tokenizer, ids: list[int]) -> None:
    text = model.decode(ids)
    assert not {"\n", "\t"} & set(text)


def test_special_ids_and_tags_say_nothing(model: Tokenizer) -> None:
    ids = model.encode("bako limu .")
    dressed = [model.tag("de"), model.bos, *ids[:1], model.pad, *ids[1:], model.eos, model.pad]
    assert model.decode(dressed) == "bako limu ."
    assert model.decode([]) == model.decode([model.bos, model.eos]) == ""


def test_special_ids_do_not_cut_a_character(spelling: Tokenizer) -> None:
    ids = spelling.encode("\U0001f981")
    assert spelling.decode([i for pair in ((j, spelling.pad) for j in ids) for i in pair]) == "\U0001f981"


def test_unknown_has_one_surface_without_spaces(bpe: Tokenizer) -> None:
    assert bpe.unk in bpe.encode("ba語ko")
    assert bpe.decode(bpe.encode("ba語ko")) == f"ba{UNKNOWN}ko"
    assert bpe.decode([bpe.size]) == bpe.decode([-1]) == UNKNOWN


def test_an_id_past_the_last_is_unknown_and_the_last_is_not(bpe: Tokenizer) -> None:
    assert bpe.decode([bpe.size - 1]) != UNKNOWN


# ── ids ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_special_ids_are_the_design_s(model: Tokenizer) -> None:
    assert (model.pad, model.unk, model.bos, model.eos) == (0, 1, 2, 3)


def test_each_tag_has_an_id_of_its_own(model: Tokenizer) -> None:
    assert len({model.tag("de"), model.tag("fr"), model.pad, model.unk, model.bos, model.eos}) == 6
    with pytest.raises(TokenizerError, match=r"no tag <2es>; it has <2de>, <2fr>"):
        model.tag("es")
    with pytest.raises(TokenizerError, match="no tag <2>"):
        model.tag("")


def test_tags_are_listed_in_the_order_they_were_declared(model: Tokenizer, tmp_path: Path) -> None:
    assert list(model.tags) == ["de", "fr"]
    assert model.pieces([model.tags["de"], model.tags["fr"]]) == ["<2de>", "<2fr>"]
    fit(corpus(), tmp_path / "t.model", TokenizerConfig(vocab_size=200, symbols=["<2nl>"]), tags=["zh-Hant", "pt_BR"], seed=1)
    assert list(Tokenizer.load(tmp_path / "t.model").tags) == ["zh-Hant", "pt_BR"]


def test_the_mark_of_synthetic_text_is_an_id_that_no_text_has(tmp_path: Path, model: Tokenizer) -> None:
    assert model.mark is None
    assert model.prefixes == (model.tag("de"), model.tag("fr"))
    fit(corpus(), tmp_path / "t.model", TokenizerConfig(vocab_size=200), tags=["de"], marked=True, seed=1)
    marked = Tokenizer.load(tmp_path / "t.model")
    assert marked.mark is not None
    assert (list(marked.tags), marked.prefixes) == (["de"], (marked.tag("de"), marked.mark))
    assert marked.pieces([marked.mark]) == ["<bt>"]
    ids = marked.encode("bako <bt> limu<bt>")
    assert marked.mark not in ids
    assert marked.decode([marked.mark, *ids]) == "bako <bt> limu<bt>"
    with pytest.raises(TokenizerError, match="'<bt>' is the name of a special piece"):
        fit(corpus(), tmp_path / "t.model", TokenizerConfig(vocab_size=200, symbols=["<bt>"]), marked=True, seed=1)


@examples
@given(text=st.lists(st.one_of(st.sampled_from(["<2de>", "<2fr>", "<2", "de>", " "]), known_text)).map("".join))
def test_a_tag_in_text_is_text(model: Tokenizer, text: str) -> None:
    ids = model.encode(text)
    assert {model.tag("de"), model.tag("fr")}.isdisjoint(ids)
    assert model.decode(ids) == collapsed(text)


def test_pieces_spell_the_text(model: Tokenizer) -> None:
    assert "".join(model.pieces(model.encode("bako limu ."))) == "\u2581bako\u2581limu\u2581."


def test_a_declared_symbol_is_one_id_wherever_it_stands(model: Tokenizer) -> None:
    (symbol,) = {i for i in model.encode("<ph1>") if model.decode([i]) == "<ph1>"}
    for text in ("bako <ph1> limu .", "bako<ph1>limu .", "<ph1> bako .", "bako <ph1>."):
        assert model.encode(text).count(symbol) == 1


def test_joint_is_the_same_object_twice(bpe: Tokenizer, unigram: Tokenizer) -> None:
    assert Tokenizers(bpe, bpe).joint
    assert not Tokenizers(bpe, unigram).joint


# ── sampling ────────────────────────────────────────────────────────────────────────────────────────────────────────

DROPOUT = BpeDropout(bpe_dropout=0.3)
LATTICE = UnigramSample(unigram=Unigram(alpha=0.1, nbest=-1))
NBEST = UnigramSample(unigram=Unigram(alpha=0.1, nbest=64))


@pytest.fixture(scope="module", params=[DROPOUT, LATTICE, NBEST], ids=["dropout", "lattice", "nbest"])
def sampled(request: pytest.FixtureRequest, bpe: Tokenizer, unigram: Tokenizer) -> tuple[Tokenizer, Sample]:
    return (bpe if request.param is DROPOUT else unigram), request.param


def drawn(model: Tokenizer, how: Sample, lines: list[str], seed: int) -> list[list[int]]:
    """A sample of each line, the n-th from the generator of seed + n."""
    return model.sample_batch(lines, how, rngs=[random.Random(seed + n) for n in range(len(lines))])


def test_a_sample_is_a_function_of_the_generator(sampled: tuple[Tokenizer, Sample]) -> None:
    model, how = sampled
    first = drawn(model, how, corpus(), 7)
    drawn(model, how, corpus()[:9], 8)
    assert drawn(model, how, corpus(), 7) == first
    assert drawn(model, how, corpus(), 1008) != first
    assert first != model.encode_batch(corpus())


def test_a_sample_does_not_depend_on_other_texts(sampled: tuple[Tokenizer, Sample]) -> None:
    model, how = sampled
    alone = [drawn(model, how, [line], 7 + n)[0] for n, line in enumerate(corpus())]
    assert alone == drawn(model, how, corpus(), 7)


def test_samples_drawn_at_the_same_time_do_not_touch_each_other(sampled: tuple[Tokenizer, Sample]) -> None:
    model, how = sampled
    alone = [drawn(model, how, corpus(), seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda seed: drawn(model, how, corpus(), seed), range(8)))
    assert together == alone


def test_a_sample_is_the_same_in_another_process(sampled: tuple[Tokenizer, Sample], tmp_path: Path) -> None:
    model, how = sampled
    (tmp_path / "t.model").write_bytes(model._model.serialized_model_proto())
    program = f"""
import random
from mt.config.schema import BpeDropout, Unigram, UnigramSample
from mt.tokenizer.spm import Tokenizer
lines = {corpus()!r}
print(Tokenizer.load("t.model").sample_batch(lines, {how!r}, rngs=[random.Random(7 + n) for n in range(len(lines))]))
"""
    root = str(Path(__file__).parents[2])
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, capture_output=True, check=True
    )
    assert answer.stdout.decode().strip() == str(drawn(model, how, corpus(), 7))


def test_a_sample_says_the_same(sampled: tuple[Tokenizer, Sample]) -> None:
    model, how = sampled
    lines = [*corpus(), "a\tb", "", "語 ba"]
    for seed in range(5):
        assert [model.decode(ids) for ids in drawn(model, how, lines, seed)] == [model.decode(model.encode(x)) for x in lines]


@pytest.mark.parametrize("alpha", [0.01, 0.5])
def test_sampling_leaves_declared_symbols_whole(bpe: Tokenizer, unigram: Tokenizer, alpha: float) -> None:
    lines = ["bako <ph1>limu @ .", "{date}"] * 100
    everything = UnigramSample(unigram=Unigram(alpha=alpha, nbest=-1))
    for model, how in ((bpe, BpeDropout(bpe_dropout=1 - alpha)), (unigram, everything)):
        symbols = [model.encode(symbol)[-1] for symbol in ("<ph1>", "@", "{date}")]
        for first, second in zip(*[iter(drawn(model, how, lines, 1))] * 2, strict=True):
            assert [first.count(symbols[0]), first.count(symbols[1]), second.count(symbols[2])] == [1, 1, 1]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("content", [None, b"", b"not a model", "cut"])
def test_a_bad_file_is_named(tmp_path: Path, content: bytes | str | None, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tokenizer.model"
    whole = tmp_path / "whole.model"
    fit(corpus(), whole, TokenizerConfig(vocab_size=200), seed=1)
    if content is not None:
        path.write_bytes(whole.read_bytes()[:-1] if content == "cut" else content)  # type: ignore[arg-type]
    with pytest.raises(TokenizerError, match=re.escape(str(path))):
        Tokenizer.load(path)
    assert capfd.readouterr() == ("", "")


def test_a_foreign_model_without_padding_is_refused() -> None:
    model = io.BytesIO()
    defaults = {"model_type": "bpe", "vocab_size": 150, "minloglevel": 3}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=model, **defaults)
    with pytest.raises(TokenizerError, match="no id for pad"):
        Tokenizer(model.getvalue())


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_a_damaged_model_is_told(tmp_path: Path, part: float) -> None:
    trained(tmp_path / "m.model", vocab_size=200)
    model = (tmp_path / "m.model").read_bytes()
    (tmp_path / "m.model").write_bytes(model[: int(part * len(model))])
    with pytest.raises(TokenizerError, match=rf"^{tmp_path}/m.model: is empty or damaged"):
        Tokenizer.load(tmp_path / "m.model")
