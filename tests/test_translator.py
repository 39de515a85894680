"""Text in, text out, with an untrained model in float64: what a line becomes depends on that line alone, and long lines are cut well."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.config.schema import DecodeConfig, Langs, TokenizerConfig
from mt.decode.engine import Beam, Sampling
from mt.decode.parts import best_cut, split
from mt.decode.translation import Translation, whole_lines
from mt.errors import ConfigError, DecodeError, MTError, RunError
from mt.model import device as hardware
from mt.rundir import RunDir
from mt.search.step import Hypothesis
from mt.tokenizer.fit import fit
from mt.tokenizer.spm import Tokenizer
from mt.translator import Translator
from tests import toy
from tests.translating import in_float64, lively_run

LINES = ["", *toy.sentences(6, seed=5, shortest=1), " ", *toy.sentences(3, seed=6), "\u00a0\u3000", "\t"]
SETTINGS = pytest.mark.parametrize(
    "settings",
    [Beam(width=1), Beam(width=3, n_best=2), Sampling(temperature=1.5, top_p=0.9)],
    ids=["greedy", "beam", "sampling"],
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    short = ("decode.max_length_factor=0.5", "decode.max_length_extra=6", "decode.beam=4")
    return lively_run(tmp_path_factory.mktemp("lively"), *short, checkpoints=(1, 2))


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return in_float64(run)


def with_most(translator: Translator, most: int) -> Translator:
    """The same model, for which lines of more than `most` pieces are too long."""
    data = translator.config.data.model_copy(update={"max_pieces": most})
    config = translator.config.model_copy(update={"data": data})
    return Translator(translator.model, translator.tokenizers, config=config, device=torch.device("cpu"))


def hypothesis(token: int, count: int, log_prob: float) -> Hypothesis:
    """So many times one id."""
    return Hypothesis.ended([token] * count, log_prob=log_prob, length_penalty=1.0, truncated=False)


def outputs(translations: list[Translation]) -> list[list[tuple[str, list[int]]]]:
    return [[(text, found.ids) for text, found in one.hypotheses] for one in translations]


# ── many lines ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_model_is_a_fair_one_for_these_tests(translator: Translator) -> None:
    texts = [one.text for one in translator.translate(LINES)]
    assert len(set(texts)) == len(LINES) - 3  # of four blank lines three are no news
    assert {"truncated" in one.flags for one in translator.translate(LINES)} == {True, False}


@SETTINGS
def test_neither_batches_nor_windows_nor_neighbours_matter(translator: Translator, settings: Beam | Sampling) -> None:
    whole = translator.translate(LINES, settings=settings)
    assert [one.source for one in whole] == LINES
    for batch_tokens in (1, 40, 10_000):
        assert outputs(translator.translate(LINES, settings=settings, batch_tokens=batch_tokens)) == outputs(whole)
    for window in (1, 4, len(LINES)):
        assert outputs(list(translator.stream(LINES, settings=settings, window=window))) == outputs(whole)
    if isinstance(settings, Beam):
        assert outputs([translator.translate([line], settings=settings)[0] for line in LINES]) == outputs(whole)


def test_a_window_is_read_when_it_is_needed(translator: Translator) -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for line in LINES:
            read += 1
            yield line

    found = translator.stream(lines(), beam=1, window=3)
    assert read == 0
    for number, _ in enumerate(found, start=1):
        assert read == min(-(-number // 3) * 3, len(LINES))


def test_no_lines_give_no_translations(translator: Translator) -> None:
    assert translator.translate([]) == translator.translate(iter(())) == []


def test_blank_lines_stay_blank(translator: Translator) -> None:
    for one in translator.translate(["", "   ", "\t", "\u00a0\u3000", "\r", "\n"]):
        assert (one.text, one.hypotheses, one.flags, one.unknown) == ("", [], [], 0)


def test_a_single_string_is_no_list_of_lines(translator: Translator) -> None:
    with pytest.raises(TypeError, match="list"):
        translator.translate("bage depe .")


def test_line_breaks_and_tabs_within_a_line_are_spaces(translator: Translator) -> None:
    plain, *others = translator.translate(["bage depe .", "bage\tdepe .", "bage\ndepe .", "bage\r\ndepe ."], beam=2)
    assert [one.text for one in others] == [plain.text] * 3
    assert others[1].source == "bage\ndepe ."


def test_no_text_holds_a_line_break_or_a_tab(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes could spell them."""
    monkeypatch.setattr(Tokenizer, "decode", lambda *_: "a\tb\rc\nd")
    assert translator.translate(["bage ."])[0].text == "a b c d"


def test_unknown_characters_are_counted(translator: Translator) -> None:
    assert [one.unknown for one in translator.translate(["bage .", "bage € .", "€ bage § .", ""], beam=1)] == [0, 1, 2, 0]


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_config_decides_and_beam_changes_the_width(translator: Translator) -> None:
    assert outputs(translator.translate(LINES)) == outputs(translator.translate(LINES, settings=Beam.build(translator.config.decode)))
    assert outputs(translator.translate(LINES, beam=3)) == outputs(translator.translate(LINES, settings=Beam(width=3)))
    assert outputs(translator.translate(LINES, beam=1)) != outputs(translator.translate(LINES))


def test_own_settings_leave_the_rest_to_the_config() -> None:
    cfg = DecodeConfig(beam=6, n_best=4, patience=2.0, length_penalty=0.5)
    assert Beam.build(cfg, n_best=8) == Beam(width=6, length_penalty=0.5, n_best=8, patience=2.0)
    assert Beam.build(cfg, length_penalty=0.0) == Beam(width=6, length_penalty=0.0, n_best=4, patience=2.0)
    assert Beam.build(cfg, width=2) == Beam(width=2, length_penalty=0.5, n_best=2, patience=2.0)
    assert Beam.build(cfg, width=1) == Beam(width=1, length_penalty=0.5)
    with pytest.raises(DecodeError, match="n-best 3 is larger than beam 1"):
        Beam.build(cfg, width=1, n_best=3)


@pytest.mark.parametrize("values", [{"width": 0}, {"width": 1, "n_best": 2}, {"patience": 0.5}, {"length_penalty": -1.0}])
def test_a_beam_that_cannot_be_is_not_made(values: dict[str, float]) -> None:
    with pytest.raises(DecodeError):
        Beam(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [{"temperature": -1.0}, {"temperature": math.nan}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5}])
def test_a_sampling_that_cannot_be_is_not_made(values: dict[str, float]) -> None:
    with pytest.raises(DecodeError):
        Sampling(**values)  # type: ignore[arg-type]


def test_outputs_have_a_limit(translator: Translator) -> None:
    for one in translator.translate(LINES, beam=1):
        for _, found in one.hypotheses:
            limit = translator.limit(translator.encoded([one.source])[0][0])
            assert len(found.ids) + 1 <= limit
            assert ("truncated" in one.flags) == found.truncated
            assert not found.truncated or len(found.ids) + 1 == limit


# ── sampling ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_seed_decides_the_samples(translator: Translator) -> None:
    settings = Sampling(temperature=2.0)
    first = outputs(translator.translate(LINES, settings=settings, seed=7))
    assert outputs(translator.translate(LINES, settings=settings, seed=7)) == first
    assert outputs(translator.translate(LINES, settings=settings, seed=8)) != first


def test_equal_lines_get_samples_of_their_own(translator: Translator) -> None:
    found = translator.translate(["bage depe ."] * 8, settings=Sampling(temperature=2.0))
    assert len({one.text for one in found}) == 8


def test_each_part_has_its_own_seed(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parts a line has."""
    asked: list[int] = []

    def search(sources: list[list[int]], _settings: object, *, seeds: list[int], **_: object) -> list[list[Hypothesis]]:
        asked.extend(seeds)
        return [[Hypothesis([9], -1.0, -0.5, False)] for _ in sources]

    short = with_most(translator, 10)
    monkeypatch.setattr(short.engine, "search", search)
    lines = ["bage depe . " * 700, "bage .", "bage depe . " * 300]
    for seed in (0, 1):
        list(short.stream(lines, seed=seed, window=2))
    assert len(asked) > 2 * 256
    assert len(set(asked)) == len(asked)


# ── long lines ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    """One with bytes, one that knows few characters."""
    folder = tmp_path_factory.mktemp("tokenizers")
    texts = toy.sentences(200)
    fit(texts, folder / "bytes", TokenizerConfig(vocab_size=400, byte_fallback=True), seed=1)
    fit(texts, folder / "plain", TokenizerConfig(vocab_size=60, byte_fallback=False), seed=1)
    return {name: Tokenizer.load(folder / name) for name in ("bytes", "plain")}


TEXT = st.text(st.sampled_from("abde. !?\u3000。漢字\u2028\t😀é"), max_size=200) | st.text(max_size=100)


@given(line=TEXT, most=st.integers(1, 30), name=st.sampled_from(["bytes", "plain"]))
def test_parts_are_the_line_and_short_enough(tokenizers: dict[str, Tokenizer], line: str, most: int, name: str) -> None:
    tokenizer = tokenizers[name]
    parts = split(line, tokenizer, most=most)
    assert "".join(parts) == line
    assert all(len(part) == 1 or len(tokenizer.encode(part)) <= most for part in parts)
    assert (parts == [line]) == (len(line) < 2 or len(tokenizer.encode(line)) <= most)
    assert all(parts) or not line


def test_a_line_is_cut_at_sentence_ends_first(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["plain"]
    sentences = [f"{line} " for line in toy.sentences(40, seed=4)]
    longest = max(len(tokenizer.encode(sentence)) for sentence in sentences)
    parts = split("".join(sentences), tokenizer, most=2 * longest)
    assert all(part.endswith(". ") for part in parts)
    assert any(part.count(".") > 1 for part in parts)


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("ab cd. ef gh", "ab cd. "),
        ("ab cd! ef? gh", "ab cd! "),
        ('ab "cd." ef', 'ab "cd." '),
        ("ab 3.5 cd ef", "ab 3.5 "),  # a point inside a number ends nothing
        ("ab cd ef gh ij.", "ab cd "),  # nor does the end of the line
        ("漢字。漢字漢", "漢字。"),
        ("漢「字。」漢字漢", "漢「字。」"),
        ("漢字漢字漢", "漢字"),
        ("a. bcdefghijklmnop", "a. "),  # far from the middle, but a sentence end
        ("ab\u3000cdef", "ab\u3000"),
        ("ab", "a"),
    ],
)
def test_where_a_line_is_cut(line: str, first: str) -> None:
    assert line[: best_cut(line)] == first


def test_text_without_spaces_is_cut_anywhere_but_no_shorter_than_need_be(tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers["bytes"]
    line = "".join(random.Random(1).choices("漢字仮名交文章", k=500))
    parts = split(line, tokenizer, most=100)
    assert "".join(parts) == line
    lengths = [len(tokenizer.encode(part)) for part in parts]
    assert max(lengths) <= 100
    assert min(lengths) >= 45


@pytest.mark.parametrize(
    "unit", ["bage depe fide . ", "bagedepefide ", "bagedepefide", "漢字"], ids=["sentences", "words", "letters", "cjk"]
)
def test_a_very_long_line_is_cut_in_a_moment(tokenizers: dict[str, Tokenizer], unit: str) -> None:
    line = unit * (200_000 // len(unit.encode()))
    began = time.process_time()
    parts = split(line, tokenizers["bytes"], most=256)
    assert time.process_time() - began < 5
    assert len(parts) > 30


def test_a_long_line_is_translated_in_parts(translator: Translator) -> None:
    line = " ".join(toy.sentences(5, seed=8))
    short, long = with_most(translator, 30).translate(["bage .", line], beam=2)
    assert "split" not in short.flags
    assert "split" in long.flags
    parts = split(line, translator.tokenizers.src, most=30)
    assert len(parts) > 1
    alone = translator.translate(parts, beam=2)
    assert long.text == " ".join(one.text for one in alone)
    (_, whole), found = long.hypotheses[0], [one.hypotheses[0][1] for one in alone]
    assert whole.ids == [i for h in found for i in h.ids]
    assert whole.log_prob == pytest.approx(sum(h.log_prob for h in found))
    assert whole.truncated == any(h.truncated for h in found)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_scores_of_a_line_in_parts_follow_the_definition(translator: Translator, length_penalty: float) -> None:
    short = with_most(translator, 30)
    settings = Beam(width=4, n_best=4, length_penalty=length_penalty)
    (one,) = short.translate([" ".join(toy.sentences(5, seed=8))], settings=settings)
    parts = len(short.encoded([one.source])[0])
    assert parts > 1
    scores = [found.score for _, found in one.hypotheses]
    assert scores == pytest.approx([found.log_prob / (len(found.ids) + parts) ** length_penalty for _, found in one.hypotheses])
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(found.ids) for _, found in one.hypotheses}) == 4


def test_blank_parts_of_a_long_line_are_not_translated(translator: Translator) -> None:
    line = "bage" + " \u3000" * 100 + " depe"
    assert sum(not part.strip() for part in split(line, translator.tokenizers.src, most=30)) > 1
    assert len(with_most(translator, 30).encoded([line])[0]) == 2


@pytest.mark.parametrize(("tgt", "glue"), [("de", " "), ("ja", ""), ("zh-Hant", ""), ("zh_TW", ""), (None, " ")])
def test_parts_are_joined_as_the_language_joins_sentences(translator: Translator, tgt: str | None, glue: str) -> None:
    langs = Langs(src="en", tgt=tgt) if tgt else None
    config = translator.config.model_copy(update={"langs": langs})
    other = Translator(translator.model, translator.tokenizers, config=config, device=torch.device("cpu"))
    first, second = (translator.tokenizers.tgt.encode(word) for word in ("dirkan", "pallen"))
    parts = [[Hypothesis(ids, -1.0, -0.5, False)] for ids in (first, second)]
    assert [text for text, _ in whole_lines(parts, other.tokenizers.tgt, lang=other.target().lang, length_penalty=1.0)] == [
        f"dirkan{glue}pallen"
    ]


def test_hypotheses_of_parts_are_put_together_rank_by_rank(translator: Translator) -> None:
    """A part with fewer lends its last."""
    parts = [[hypothesis(9, 1, -1.0), hypothesis(8, 1, -2.0)], [hypothesis(7, 1, -3.0)]]
    assert [(h.ids, h.score) for _, h in whole_lines(parts, translator.tokenizers.tgt, lang="de", length_penalty=0.0)] == [
        ([9, 7], -4.0),
        ([8, 7], -5.0),
    ]


def test_the_best_whole_need_not_be_made_of_the_best_parts(translator: Translator) -> None:
    parts = [[hypothesis(9, 1, -1.0), hypothesis(8, 9, -6.0)], [hypothesis(7, 9, -9.0), hypothesis(6, 0, -1.0)]]
    assert all(best.score > second.score for best, second in parts)
    (_, first), (_, second) = whole_lines(parts, translator.tokenizers.tgt, lang="de", length_penalty=1.0)
    assert (first.score, second.score) == pytest.approx((-7 / 11, -10 / 12))
    assert first.ids == [8] * 9


# ── loading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_checkpoints_by_name_and_number(run: RunDir) -> None:
    def weights(checkpoint: str) -> torch.Tensor:
        return next(Translator.load(run.path, checkpoint).model.parameters())

    assert torch.equal(weights("best"), weights("1"))
    assert torch.equal(weights("last"), weights("2"))
    assert not torch.equal(weights("best"), weights("last"))
    for nonsense in ("3", "newest", "", "../checkpoints"):
        with pytest.raises(RunError, match="there are: best, last, 1, 2$"):
            Translator.load(run.path, nonsense)


def test_a_path_may_be_text(run: RunDir) -> None:
    assert Translator.load(str(run.path)).config == Translator.load(run.path).config


@pytest.mark.parametrize(
    ("precision", "wanted"), [("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp32", torch.float32), (None, torch.float32)]
)
def test_precision_is_that_of_the_matrices(run: RunDir, precision: str | None, wanted: torch.dtype) -> None:
    translator = Translator.load(run.path, precision=precision)
    found = {name: parameter.dtype for name, parameter in translator.model.named_parameters()}
    assert {dtype for name, dtype in found.items() if "norm" not in name} == {wanted}
    assert {dtype for name, dtype in found.items() if "norm" in name} == {torch.float32}
    assert translator.precision == (precision or "fp32")
    assert len(translator.translate(["bage .", ""])) == 2


def test_the_run_says_which_precision_and_auto_is_the_fastest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lively_run(tmp_path, "decode.precision=auto")
    for has_bf16, expected in (True, "bf16"), (False, "fp32"):
        monkeypatch.setattr(hardware, "multiplies_bf16", lambda _, has=has_bf16: has)
        assert Translator.load(run.path).precision == Translator.load(run.path, precision="auto").precision == expected
    assert Translator.load(run.path, precision="fp16").precision == "fp16"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"precision": "fp8"}, RunError, "precision fp8: choose auto, fp32, bf16, fp16"),
        ({"device": "abacus"}, ConfigError, "device abacus"),
        ({"weights": "ema"}, RunError, "no moving average"),
    ],
)
def test_what_cannot_be_loaded_says_why(run: RunDir, options: dict[str, str], error: type[MTError], message: str) -> None:
    with pytest.raises(error, match=message):
        Translator.load(run.path, **options)  # type: ignore[arg-type]


def test_a_directory_that_is_no_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(RunError, match="not a run|no such folder"):
            Translator.load(path)


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    run = lively_run(tmp_path)
    fit(toy.sentences(50, seed=9), run.path / "tokenizer.model", TokenizerConfig(vocab_size=60), seed=2)
    with pytest.raises(RunError, match=r"step-00000001: was trained with another tokenizer"):
        Translator.load(run.path)
    (run.path / "tokenizer.model").unlink()
    with pytest.raises(MTError, match=r"tokenizer.model"):
        Translator.load(run.path)


def test_each_side_has_its_own_tokenizer(tmp_path: Path) -> None:
    run = lively_run(tmp_path, "tokenizer.joint=false", "tokenizer.vocab_size=90")
    translator = Translator.load(run.path)
    assert not translator.tokenizers.joint
    state = json.loads((run.step(1) / "state.json").read_text(encoding="utf-8"))
    assert state["tokenizers"] == [side.fingerprint for side in translator.tokenizers]
    (one,) = translator.translate(["bage depe ."])
    text, found = one.hypotheses[0]
    assert text == translator.tokenizers.tgt.decode(found.ids)


def test_a_translation_is_a_value() -> None:
    one = Translation("a", [("b", Hypothesis([4], -1.0, -0.5, False))])
    assert one.text == "b"
    assert replace(one, hypotheses=[]).text == ""
