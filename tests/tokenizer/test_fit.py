"""Training the tokenizer: sizes that fit, what is left out and said, the same model every time."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mt.tokenizer.fit as fitting
from mt.config.schema import TokenizerConfig
from mt.errors import DataError, TokenizerError
from mt.tokenizer import excerpt
from mt.tokenizer.fit import FitReport, fit, layout
from mt.tokenizer.spm import Tokenizer

WORDS = ["bako", "limu", "seda", "toru", "vani", "kelo", "mipo", "rasu", "dena", "fogi", "hulo", "jape", "nuri", "quvi", "ruso", "zofu"]


def toy(lines: int = 200, *, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 7))) + " ." for _ in range(lines)]


def trained(texts: list[str], path: Path, *, seed: int = 1, tags: tuple[str, ...] = (), **settings: object) -> tuple[Tokenizer, FitReport]:
    report = fit(texts, path / "t.model", TokenizerConfig(**settings), tags=tags, seed=seed)
    return Tokenizer.load(report.model), report


KINDS = pytest.mark.parametrize("kind", ["bpe", "unigram"])


# ── layout of a vocabulary ──────────────────────────────────────────────────────────────────────────────────────────


@given(
    asked=st.integers(1, 40000),
    fixed=st.integers(5, 50),
    letters=st.integers(1, 20000),
    byte_fallback=st.sampled_from(["auto", True, False]),
)
def test_everything_has_room_in_a_layout(asked: int, fixed: int, letters: int, byte_fallback: bool) -> None:
    plan = layout(asked, fixed=fixed, letters=letters, byte_fallback=byte_fallback)
    needed = fixed + plan.letters + 256 * plan.byte_fallback
    assert plan.size == max(asked, needed)
    assert plan.byte_fallback or plan.letters == letters
    assert byte_fallback == "auto" or plan.byte_fallback == byte_fallback


@pytest.mark.parametrize(
    ("asked", "letters", "on"),
    [
        (8000, 80, True),
        (1000, 80, True),
        (600, 80, True),
        (500, 80, False),
        (120, 26, False),
        (8, 26, False),
        (8000, 9000, True),
        (600, 3000, True),
    ],
)
def test_auto_is_bytes_where_they_leave_room(asked: int, letters: int, on: bool) -> None:
    assert layout(asked, fixed=5, letters=letters, byte_fallback="auto").byte_fallback == on


def test_merges_keep_a_quarter_beside_a_large_alphabet() -> None:
    plan = layout(8000, fixed=5, letters=20000, byte_fallback="auto")
    assert plan.size == 8000
    assert 8000 - 5 - 256 - plan.letters >= 2000


# ── sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@KINDS
def test_a_vocabulary_that_fits_is_met_without_a_word(tmp_path: Path, kind: str) -> None:
    most, _ = trained(toy(), tmp_path, kind=kind, byte_fallback=False)
    model, report = trained(toy(), tmp_path, kind=kind, vocab_size=most.size - 1, byte_fallback=False)
    assert model.size == report.vocab_size == most.size - 1
    assert report.warnings == []


@KINDS
def test_a_vocabulary_too_large_is_lowered_to_what_the_text_gives(tmp_path: Path, kind: str) -> None:
    model, report = trained(toy(), tmp_path, kind=kind)
    assert model.size == report.vocab_size < 8000
    assert report.warnings == [f"tokenizer.vocab_size 8000 lowered to {model.size}: the training text gives no more pieces"]
    again, _ = trained(toy(), tmp_path, kind=kind, vocab_size=model.size, byte_fallback=report.byte_fallback)
    assert again.size == model.size


@KINDS
@pytest.mark.parametrize("byte_fallback", ["auto", True])
def test_a_vocabulary_too_small_is_raised_and_said(tmp_path: Path, kind: str, byte_fallback: object) -> None:
    model, report = trained(toy(), tmp_path, kind=kind, vocab_size=8, byte_fallback=byte_fallback)
    assert model.size == report.vocab_size > 8
    assert f"vocab_size 8 raised to {model.size}" in report.warnings[-1]
    assert model.decode(model.encode("zofu bako .")) == "zofu bako ."


@KINDS
def test_rare_characters_of_a_large_alphabet_are_spelled_as_bytes(tmp_path: Path, kind: str) -> None:
    han = [chr(0x4E00 + i) for i in range(2000)]
    texts = toy() + ["".join(han[i : i + 10]) for i in [*range(0, 200, 10)] * 3 + [*range(0, 2000, 10)]]
    model, report = trained(texts, tmp_path, kind=kind, vocab_size=1200)
    assert report.byte_fallback
    assert model.size <= 1200
    assert set(report.left_out_characters) < set(han[200:])
    assert len(model.encode(han[0])) < len(model.encode(next(iter(report.left_out_characters))))
    assert model.decode(model.encode("".join(han))) == "".join(han)
    assert "spelled as bytes" in report.warnings[0]
    assert "tokenizer.vocab_size 1200" in report.warnings[0]


@KINDS
@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.text(st.sampled_from("ab .\tﬁé▅\x1f語@\0<"), max_size=12), max_size=4),
    size=st.sampled_from([8, 40, 600]),
    plain=st.booleans(),
)
def test_any_little_text_trains_or_says_there_is_none(
    tmp_path_factory: pytest.TempPathFactory, kind: str, texts: list[str], size: int, plain: bool
) -> None:
    cfg = TokenizerConfig(
        kind=kind, vocab_size=size, symbols=[] if plain else ["@", "<a>"], normalization="identity" if plain else "nmt_nfkc_cf"
    )
    path = tmp_path_factory.mktemp("fit") / "t.model"
    if any(set(text) - set(" \t\0" if plain else " \t\0\x1f") for text in texts):  # the rule removes control characters
        report = fit(texts, path, cfg, tags=["de"], seed=1)
        assert Tokenizer.load(path).size == report.vocab_size
    else:
        with pytest.raises(TokenizerError, match="no text to train the tokenizer on"):
            fit(texts, path, cfg, seed=1)
        assert not path.exists()


@KINDS
def test_text_that_normalisation_removes_is_none(tmp_path: Path, kind: str) -> None:
    with pytest.raises(TokenizerError, match="normalization nmt_nfkc leaves nothing of it"):
        fit(["\x1f"], tmp_path / "m", TokenizerConfig(kind=kind, normalization="nmt_nfkc"), seed=1)


# ── lines and characters left out ───────────────────────────────────────────────────────────────────────────────────


@KINDS
def test_lines_at_the_limit_stay_and_longer_ones_are_counted(tmp_path: Path, kind: str) -> None:
    texts = [*toy(20), "é" * 50, "é" * 50 + "w", "é" * 60]
    _, report = trained(texts, tmp_path, kind=kind, max_line_bytes=100)
    assert (report.lines, report.left_out_lines) == (23, 2)
    assert report.warnings[0] == "2 of 23 lines left out of tokenizer training: longer than 100 bytes (tokenizer.max_line_bytes)"


def test_the_sides_of_a_pair_are_left_out_together(tmp_path: Path) -> None:
    pairs = [*zip(toy(20), toy(20, seed=1), strict=True), ("bako ö", "ö" * 99), ("ö" * 99, "limu ö")]
    report = fit(pairs, tmp_path / "t.model", TokenizerConfig(vocab_size=60, max_line_bytes=100), seed=1)
    assert (report.lines, report.left_out_lines) == (22, 2)
    assert Tokenizer.load(report.model).unk in Tokenizer.load(report.model).encode("ö")


@pytest.mark.parametrize("texts", [[], ["", " ", "\t"], [("", " ")], ["\0"]])
def test_no_text_is_an_error(tmp_path: Path, texts: list[str]) -> None:
    with pytest.raises(TokenizerError, match="no text to train the tokenizer on"):
        fit(texts, tmp_path / "t.model", TokenizerConfig(), seed=1)
    assert list(tmp_path.iterdir()) == []


@KINDS
def test_characters_beyond_the_coverage_are_reported_with_counts(tmp_path: Path, kind: str) -> None:
    texts = [*toy(300), "őő", "ű bako"]
    model, report = trained(texts, tmp_path, kind=kind, vocab_size=60, character_coverage=0.9995)
    assert report.left_out_characters == {"ő": 2, "ű": 1}
    assert report.warnings[0].endswith("no piece and become unknown (tokenizer.character_coverage 0.9995): ő U+0151 (2), ű U+0171 (1)")
    assert model.unk in model.encode("ő")
    assert model.unk not in model.encode("".join(set("".join(toy()))))


def test_coverage_is_the_smallest_alphabet_that_reaches_it() -> None:
    counts = Counter({"a": 90, "b": 6, "c": 3, "d": 1})
    assert fitting._cover(counts, 1.0) == (["a", "b", "c", "d"], [])
    assert fitting._cover(counts, 0.99) == (["a", "b", "c"], ["d"])
    assert fitting._cover(counts, 0.96) == (["a", "b"], ["c", "d"])
    assert fitting._cover(counts, 0.961) == (["a", "b", "c"], ["d"])


def test_only_the_first_twenty_characters_are_named(tmp_path: Path) -> None:
    texts = [*toy(600), "".join(chr(0x4E00 + i) for i in range(25))]
    _, report = trained(texts, tmp_path, vocab_size=60, character_coverage=0.99)
    assert report.warnings[0].count("U+") == 20
    assert report.warnings[0].endswith(f" and {len(report.left_out_characters) - 20} more")


def test_bytes_off_by_default_is_said_and_off_by_wish_is_not(tmp_path: Path) -> None:
    _, report = trained(toy(), tmp_path, vocab_size=60)
    assert "byte_fallback is off" in report.warnings[0]
    _, report = trained(toy(), tmp_path, vocab_size=60, byte_fallback=False)
    assert report.warnings == []


# ── symbols and normalisation ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("symbol", ["", "a b", "a\tb", "a\u2581b", "a\0b", "<unk>", "</s>", "<s>", "<pad>", "<0x41>", "<2de>"])
def test_a_symbol_that_cannot_be_one_is_refused(tmp_path: Path, symbol: str) -> None:
    with pytest.raises(TokenizerError, match="tokenizer.symbols"):
        trained(toy(), tmp_path, symbols=[symbol], tags=("de",))
    assert list(tmp_path.iterdir()) == []


@KINDS
@pytest.mark.parametrize("symbol", ["@", ".", "▅", 'a,"b', "ruso", "<2de", "{{x}}", "語"])
def test_any_other_symbol_is_one_piece(tmp_path: Path, kind: str, symbol: str) -> None:
    model, _ = trained([*toy(), "a @ b ▅"], tmp_path, kind=kind, vocab_size=60, symbols=[symbol, symbol])
    ids = model.encode(f"bako{symbol}limu")
    assert [model.decode([i]) for i in ids].count(symbol) == 1
    assert model.decode(ids) == f"bako{symbol}limu"


def test_what_normalisation_changes_is_shown(tmp_path: Path) -> None:
    model, report = trained(["a  b", "ok", "x" * 30 + " ｆｉｎｅ！"] * 2, tmp_path, normalization="nmt_nfkc")
    assert report.warnings[0].startswith(
        "normalization nmt_nfkc changes 2 of 6 texts for good: 'xxxxxxxxx ｆｉｎｅ！' becomes 'xxxxxxxxx fine!'"
    )
    assert model.encode("ｆｉｎｅ！") == model.encode("fine!")
    _, report = trained(["a  b", "ok"], tmp_path, normalization="nmt_nfkc")
    assert not any("normalization" in line for line in report.warnings)


@KINDS
def test_text_that_changes_again_when_normalised_again_keeps_its_alphabet(tmp_path: Path, kind: str) -> None:
    text = "\u01c8\u0302"  # becomes L, j, U+0302, of which the last two would become U+0135
    model, report = trained([text], tmp_path, kind=kind, vocab_size=8, byte_fallback=False, normalization="nmt_nfkc")
    assert model.decode(model.encode(text)) == "Lj\u0302"
    assert report.left_out_characters == {}


# ── determinism ─────────────────────────────────────────────────────────────────────────────────────────────────────


@KINDS
def test_the_same_text_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    fit(toy(), tmp_path / "a", TokenizerConfig(kind=kind, symbols=["<ph1>"]), tags=["de"], seed=1)
    fit(iter(toy()), tmp_path / "b", TokenizerConfig(kind=kind, symbols=["<ph1>"]), tags=["de"], seed=1)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert Tokenizer.load(tmp_path / "a").fingerprint == Tokenizer.load(tmp_path / "b").fingerprint


def test_a_large_corpus_is_sampled_by_the_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(excerpt, "SAMPLE_LINES", 50)
    models = [trained(toy(500), tmp_path, seed=seed)[0].fingerprint for seed in (1, 1, 2)]
    assert models[0] == models[1] != models[2]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_written_when_the_text_fails(tmp_path: Path) -> None:
    def broken() -> object:
        yield "bako limu ."
        raise DataError("train.en:2: byte 0xE9 is not UTF-8")

    with pytest.raises(DataError):
        fit(broken(), tmp_path / "t.model", TokenizerConfig(), seed=1)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@KINDS
def test_sentencepiece_says_nothing_itself(tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    trained([*toy(), "\0 ▅", "語"], tmp_path, kind=kind, character_coverage=0.99)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["x" * 20], "the only line is longer than 10 bytes, "),
        (["x" * 20] * 2, "all 2 lines are longer than 10 bytes, "),
        (["x" * 20, " "], "all lines with text (1 of 2) are longer than 10 bytes, "),
        ([" "], "no text to train the tokenizer on: the only line is blank"),
        ([" "] * 2, "no text to train the tokenizer on: all 2 lines are blank"),
        ([], "no text to train the tokenizer on: no line"),
    ],
)
def test_nothing_to_train_on_is_told_in_good_grammar(tmp_path: Path, texts: list[str], message: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        fit(texts, tmp_path / "m", TokenizerConfig(max_line_bytes=10), seed=1)
    assert str(caught.value).startswith(message)
