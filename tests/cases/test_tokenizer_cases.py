"""Trouble other toolkits have had with their tokenizers: one test for each public report, with its input."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from mt.config.schema import BpeDropout, TokenizerConfig
from mt.errors import TokenizerError
from mt.tokenizer.fit import FitReport, fit
from mt.tokenizer.spm import UNKNOWN, Tokenizer, Tokenizers

LEXICON = {
    **{"bako": "ardin", "limu": "belto", "seda": "crast", "toru": "dowin", "vani": "erfal", "kelo": "gorst", "mipo": "heldin"},
    **{"rasu": "ibrun", "dena": "jostal", "fogi": "kerpin", "hulo": "lumest", "jape": "morgat", "nuri": "nabrel", "pola": "oskun"},
    **{"quvi": "prilta", "ruso": "quorn", "sipa": "restag", "tamo": "silmor", "wela": "tumdel", "zofu": "vastin"},
}
REPLACEMENT = "\ufffd"
KINDS = pytest.mark.parametrize("kind", ["bpe", "unigram"])


def pairs(number: int) -> list[tuple[str, str]]:
    """Sentences of invented words with their translations, word by word."""
    rng = random.Random(5)
    sources = [rng.choices(list(LEXICON), k=rng.randint(2, 7)) for _ in range(number)]
    return [(" ".join(words) + " .", " ".join(LEXICON[word] for word in words) + " .") for words in sources]


def sources(number: int = 300) -> list[str]:
    return [src for src, _ in pairs(number)]


def targets(number: int = 300) -> list[str]:
    return [tgt for _, tgt in pairs(number)]


def train(
    texts: Sequence[str | Sequence[str]], folder: Path, *, tags: Sequence[str] = (), **settings: object
) -> tuple[Tokenizer, FitReport]:
    cfg = TokenizerConfig.model_construct(**{**TokenizerConfig().model_dump(), **settings})  # sizes the schema refuses are tried as well
    report = fit(texts, folder / "tokenizer.model", cfg, tags=tags, seed=1)
    return Tokenizer.load(report.model), report


def there_and_back(model: Tokenizer, lines: Sequence[str]) -> list[str]:
    return [model.decode(model.encode(line)) for line in lines]


@KINDS
def test_15_long_lines(tmp_path: Path, kind: str) -> None:
    long = ("mipo bako sipa limu " * 300)[:5999]
    with pytest.raises(TokenizerError, match=r"all 3 lines are longer than 4192 bytes.* raise tokenizer.max_line_bytes"):
        train([long] * 3, tmp_path, kind=kind)
    assert list(tmp_path.iterdir()) == []
    _, report = train([long] * 3, tmp_path, kind=kind, max_line_bytes=6000)
    assert report.left_out_lines == 0

    said = "1 of 61 lines left out of tokenizer training: longer than 4192 bytes (tokenizer.max_line_bytes)"
    _, report = train([*sources(60), long], tmp_path, kind=kind)
    assert report.warnings[0] == said
    _, report = train([*pairs(60), (long, long)], tmp_path, kind=kind)
    assert report.warnings[0] == said


@KINDS
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_19_soft_hyphen(tmp_path: Path, kind: str, byte_fallback: bool) -> None:
    lines = ["ba\u00adko li\u00admu .", "bako limu ."]
    model, _ = train([*sources(), *lines], tmp_path, kind=kind, byte_fallback=byte_fallback)
    assert there_and_back(model, lines) == lines
    without, _ = train(sources(), tmp_path, kind=kind, byte_fallback=True)
    assert there_and_back(without, lines) == lines


@KINDS
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_21_emoji_then_text(tmp_path: Path, kind: str, byte_fallback: bool) -> None:
    model, _ = train(pairs(300), tmp_path, kind=kind, byte_fallback=byte_fallback)
    lines = ["bako limu \U0001f600 seda toru .", "\U0001f680", "bako \u2764\ufe0f ."]
    after = model.encode("seda toru .")
    first, second, third = (model.encode(line) for line in lines)
    assert first[-len(after) :] == after
    assert model.decode(first).endswith(" seda toru .")
    assert second
    assert model.decode(third).startswith("bako ")
    assert model.eos not in {*first, *second, *third}
    if byte_fallback:
        assert there_and_back(model, lines) == lines


@KINDS
def test_22_virama(tmp_path: Path, kind: str) -> None:
    words = ["नमस्ते", "വസ്തു", "மக்கள்", "বন্ধু"]
    model, _ = train([*targets(), *words], tmp_path, kind=kind)
    for text in (words, [" ".join(words)]):
        assert there_and_back(model, text) == text


@KINDS
def test_23_fullwidth_punctuation(tmp_path: Path, kind: str) -> None:
    lines = ["今天下雨，你带伞了吗？", "我在图书馆看书。", "请坐；别客气！", "他说：“好（真的）。”"]
    model, report = train(lines, tmp_path, kind=kind)
    assert there_and_back(model, lines) == lines
    assert not any("normalization" in line for line in report.warnings)
    model, report = train(lines, tmp_path, kind=kind, normalization="nmt_nfkc")
    assert there_and_back(model, lines) != lines
    assert (
        "normalization nmt_nfkc changes 3 of 4 texts for good: '今天下雨，你带伞了吗？' becomes '今天下雨,你带伞了吗?'"
        in report.warnings[0]
    )


SPECIALS_IN_TEXT = [
    "bako </s> limu seda .",
    "<s> bako",
    "bako <unk> limu",
    "bako <pad> limu",
    "<0x41>",
    "bako <2xx> limu",
    "a</s>b<s></s><unk>",
]


@KINDS
@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("seen", [1, 50])
def test_25_literal_specials(tmp_path: Path, kind: str, fallback: bool, seen: int) -> None:
    model, _ = train([*sources(), *SPECIALS_IN_TEXT * seen], tmp_path, kind=kind, byte_fallback=fallback, tags=["xx"])
    special = {model.pad, model.unk, model.bos, model.eos, model.tag("xx")}
    for line in SPECIALS_IN_TEXT:
        assert special.isdisjoint(model.encode(line))
    if kind == "bpe":
        rngs = [random.Random(n) for n in range(20 * len(SPECIALS_IN_TEXT))]
        assert all(special.isdisjoint(ids) for ids in model.sample_batch(SPECIALS_IN_TEXT * 20, BpeDropout(bpe_dropout=0.5), rngs=rngs))
    assert there_and_back(model, SPECIALS_IN_TEXT) == SPECIALS_IN_TEXT


def test_25_literal_specials_that_training_never_saw(tmp_path: Path) -> None:
    model, _ = train(sources(), tmp_path, byte_fallback=True, tags=["xx"])
    assert there_and_back(model, SPECIALS_IN_TEXT) == SPECIALS_IN_TEXT


@KINDS
@pytest.mark.parametrize("byte_fallback", [False, "auto"])
def test_27_vocabulary_too_large(tmp_path: Path, kind: str, byte_fallback: object) -> None:
    model, report = train(pairs(20), tmp_path, kind=kind, byte_fallback=byte_fallback)
    assert model.size == report.vocab_size < 1000
    assert report.warnings == [f"tokenizer.vocab_size 8000 lowered to {model.size}: the training text gives no more pieces"]


@KINDS
def test_27_vocabulary_smaller_than_the_alphabet(tmp_path: Path, kind: str) -> None:
    model, report = train(pairs(20), tmp_path, kind=kind, vocab_size=5)
    assert model.size == report.vocab_size
    assert f"tokenizer.vocab_size 5 raised to {model.size}" in report.warnings[-1]
    assert there_and_back(model, sources(20)) == sources(20)


@KINDS
def test_28_user_symbols(tmp_path: Path, kind: str) -> None:
    lines = ["bako <ph1> limu .", "bako<ph1>limu .", "<ph1> bako .", "bako <ph1>.", "<ph1><ph2>"]
    model, _ = train(sources(), tmp_path, kind=kind, symbols=["<ph1>", "<ph2>"])
    assert there_and_back(model, lines) == lines
    first, second = model.encode("<ph1><ph2>")[-2:]
    assert [model.encode(line).count(first) for line in lines] == [1] * 5
    assert [model.encode(line).count(second) for line in lines] == [0, 0, 0, 0, 1]


@KINDS
def test_29_byte_fallback(tmp_path: Path, kind: str) -> None:
    lines = ["bako \U0001f680 limu .", "爿 bako ."]
    model, _ = train(sources(), tmp_path, kind=kind, byte_fallback=True)
    assert there_and_back(model, lines) == lines
    rocket = model.encode("\U0001f680")[-4:]
    assert model.decode(rocket) == "\U0001f680"
    for torn in (rocket[:1], rocket[:2], rocket[1:], [*rocket[:2], *model.encode("bako")]):
        text = model.decode(torn)
        assert REPLACEMENT in text
        assert "<0x" not in text
    assert model.decode([*rocket[:2], *model.encode("bako")]).endswith("bako")


@KINDS
def test_31_spaces(tmp_path: Path, kind: str) -> None:
    lines = ["bako 25. limu 2003 .", "bako, limu.(1)", "bako (limu) «seda»", "  bako   limu ", "3 % , 50 €"]
    model, _ = train([*sources(), *lines], tmp_path, kind=kind)
    assert there_and_back(model, lines) == [*lines[:3], "bako limu", lines[4]]


def test_34_one_source_of_ids_and_a_fingerprint(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a", tmp_path / "b"
    ours.mkdir()
    theirs.mkdir()
    one, _ = train(sources(), ours, vocab_size=200)
    other, _ = train(targets(), theirs, vocab_size=200)
    for line in sources():
        assert all(0 <= i < other.size for i in other.encode(line))
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == Tokenizer.load(ours / "tokenizer.model").fingerprint


@KINDS
def test_35_surface_of_unknown(tmp_path: Path, kind: str) -> None:
    model, _ = train(targets(), tmp_path, kind=kind, byte_fallback=False)
    assert model.decode([*model.encode("ardin"), model.unk, *model.encode("belto")]) == f"ardin{UNKNOWN} belto"
    assert there_and_back(model, ["ardin 語 belto .", "ar語din ."]) == [f"ardin {UNKNOWN} belto .", f"ar{UNKNOWN}din ."]
    assert "<unk>" not in model.decode([model.unk] * 3)


@KINDS
def test_36_character_coverage(tmp_path: Path, kind: str) -> None:
    lines = [*targets(400), "őszi ardin ."]
    model, report = train(lines, tmp_path, kind=kind, character_coverage=0.9995, byte_fallback=False)
    assert report.left_out_characters == {"z": 1, "ő": 1}
    assert (
        "2 characters have no piece and become unknown (tokenizer.character_coverage 0.9995): z U+007A (1), ő U+0151 (1)" in report.warnings
    )
    assert there_and_back(model, lines[-1:]) == [f"{UNKNOWN}s{UNKNOWN}i ardin ."]
    for cure in ({"character_coverage": 1.0, "byte_fallback": False}, {"character_coverage": 0.9995, "byte_fallback": True}):
        model, _ = train(lines, tmp_path, kind=kind, **cure)
        assert there_and_back(model, lines) == lines


def test_37_each_side_has_its_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tgt").mkdir()
    both = Tokenizers(train(sources(), tmp_path / "src", vocab_size=100)[0], train(targets(), tmp_path / "tgt", vocab_size=100)[0])
    assert not both.joint
    assert there_and_back(both.src, sources()) == sources()
    assert there_and_back(both.tgt, targets()) == targets()
    assert both.src.encode(targets()[0]) != both.tgt.encode(targets()[0])


@KINDS
def test_38_placeholders(tmp_path: Path, kind: str) -> None:
    lines = [
        "{date} : %s , %(n)d , {{x}} , ${y} , $1",
        '<b>bako</b> <a href="{url}">limu</a> &amp; &lt;',
        "https://example.org/?a=1&b=2#c bako@example.org",
        "3.14 1,000.50 2024-02-29 10:30 -5°C +1-555-0100",
    ]
    model, _ = train(sources(), tmp_path, kind=kind, byte_fallback=True)
    assert there_and_back(model, lines) == lines
    symbols = ["{date}", "%s", "%(n)d", "{{x}}", "${y}"]
    model, _ = train(sources(), tmp_path, kind=kind, byte_fallback=True, symbols=symbols)
    assert there_and_back(model, lines) == lines
    pieces = [model.decode([i]) for i in model.encode(lines[0])]
    assert [pieces.count(symbol) for symbol in symbols] == [1] * 5


@KINDS
def test_84_the_end_mark_is_one_id_and_no_piece(tmp_path: Path, kind: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tgt").mkdir()
    joint, _ = train(pairs(300), tmp_path, kind=kind, vocab_size=120)
    separate = train(sources(), tmp_path / "src", kind=kind)[0], train(targets(), tmp_path / "tgt", kind=kind)[0]
    for both in (Tokenizers(joint, joint), Tokenizers(*separate)):
        for model in both:
            special = [model.pad, model.unk, model.bos, model.eos]
            assert len(set(special)) == 4
            assert all(0 <= i < model.size for i in special)
        for line in targets():
            gold = [*both.tgt.encode(line), both.tgt.eos]
            assert gold.index(both.tgt.eos) == len(gold) - 1
            assert both.tgt.decode(gold) == line
