"""A fast tokenizer cuts every text as sentencepiece does, and writes it again the same."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config.schema import TokenizerConfig
from mt.errors import RunError
from mt.export.fast import TEXTS, fast_tokenizer, odd_lines, refuse_other_ids
from mt.tokenizer.fit import fit
from mt.tokenizer.spm import Tokenizer
from tests import toy

tokenizers = pytest.importorskip("tokenizers", reason="the extra `export` is not installed")

SYMBOLS = "<x>", "{name}", "#1", "\u2585"
KINDS = [(kind, with_bytes) for kind in ("bpe", "unigram") for with_bytes in (True, False)]
BITS = (
    *(*toy.lexicon(), *map(toy.translation, toy.lexicon()), *SYMBOLS, *TEXTS[:-2]),
    *(
        "<pad>",
        "<unk>",
        "<s>",
        "</s>",
        "<2de>",
        "<bt>",
        "<0x41>",
        "#11",
        "{nam",
        "{{name}}",
        "<<x>>",
        ".",
        ". .",
        "漢字かな",
        "ааа",
        "ΩΩΩΩ",
        "lolololo",
        "sisisi",
    ),
)


@cache
def model(kind: str = "bpe", with_bytes: bool = True, *, symbols: tuple[str, ...] = SYMBOLS, normalization: str = "identity") -> bytes:
    """Of the toy language, with a tag and a mark."""
    pairs = [(source, toy.translation(source)) for source in toy.sentences(300)]
    size = 420 if with_bytes else 130
    cfg = TokenizerConfig.model_validate(
        {"kind": kind, "vocab_size": size, "byte_fallback": with_bytes, "symbols": symbols, "normalization": normalization}
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.model")
        fit(pairs, path, cfg, tags=["de", "fr"], marked=True, seed=1)
        return path.read_bytes()


@cache
def both(kind: str, with_bytes: bool) -> tuple[Tokenizer, Any]:
    """Ours, and the other as it comes out of its file."""
    fast = tokenizers.Tokenizer.from_str(fast_tokenizer(model(kind, with_bytes)).to_str())
    fast.encode_special_tokens = True  # no part of the file: `split_special_tokens` in tokenizer_config.json
    return Tokenizer(model(kind, with_bytes)), fast


@pytest.mark.parametrize(("kind", "with_bytes"), KINDS)
@settings(max_examples=60)
@given(text=st.lists(st.sampled_from(BITS) | st.text(max_size=4), max_size=8).map("".join))
def test_every_text_has_the_same_ids(kind: str, with_bytes: bool, text: str) -> None:
    ours, fast = both(kind, with_bytes)
    ids = ours.encode(text.replace("\n", " "))
    found = fast.encode(text.replace("\n", " "), add_special_tokens=False).ids
    assert found == ids or (kind == "unigram" and sorted(found) == sorted(ids))
    if ours.unk not in ids:
        assert fast.decode(ids) == ours.decode(ids)


@pytest.mark.parametrize(("kind", "with_bytes"), KINDS)
def test_any_ids_give_the_same_text(kind: str, with_bytes: bool) -> None:
    """But for bytes that are no UTF-8, and a space spelled as a byte at the beginning."""
    ours, fast = both(kind, with_bytes)
    left_out = {"<unk>", *(f"<0x{byte:02X}>" for byte in (32, *range(128, 256)))}
    ids, rng = [i for i, piece in enumerate(ours.pieces(range(ours.size))) if piece not in left_out], random.Random(1)
    for _ in range(500):
        chosen = rng.choices(ids, k=rng.randrange(12))
        assert fast.decode(chosen) == ours.decode(chosen)


@pytest.mark.parametrize(("kind", "with_bytes"), KINDS)
def test_odd_lines_are_no_exception(kind: str, with_bytes: bool) -> None:
    lines = list(odd_lines(model(kind, with_bytes)))
    assert len({*lines}) > 50
    assert refuse_other_ids(model(kind, with_bytes), both(kind, with_bytes)[1], lines) <= (kind == "unigram")


def test_the_end_comes_after_a_text_and_a_tag_before_it() -> None:
    ours, fast = both("bpe", True)
    assert fast.encode("meri </s>").ids == [*ours.encode("meri </s>"), ours.eos]
    tagged = fast_tokenizer(model(), tag=ours.tag("fr"))
    assert tagged.encode("meri").ids == [ours.tag("fr"), *ours.encode("meri"), ours.eos]
    assert tagged.decode(tagged.encode("meri").ids) == "meri"


def test_a_difference_is_told() -> None:
    other = fast_tokenizer(model("unigram"))
    with pytest.raises(RunError, match=r"would cut '.*' otherwise \(.*, not .*\); use `mt export ct2`"):
        refuse_other_ids(model("bpe"), other, toy.sentences(50))
    deaf = fast_tokenizer(model())
    deaf.decoder = tokenizers.decoders.Fuse()
    with pytest.raises(RunError, match="would write '.*' otherwise"):
        refuse_other_ids(model(), deaf, toy.sentences(1))


def test_a_unigram_may_have_the_same_pieces_in_another_order() -> None:
    """Here because a symbol overlaps itself; nothing but the order may differ, and with bpe not even that."""
    bpe, unigram = (model(kind, symbols=("@@",)) for kind in ("bpe", "unigram"))
    assert refuse_other_ids(bpe, fast_tokenizer(bpe), ["@@@"]) == 0
    fast, ours = fast_tokenizer(unigram), Tokenizer(unigram)
    assert fast.encode("@@@", add_special_tokens=False).ids != ours.encode("@@@")
    assert refuse_other_ids(unigram, fast, ["@@@", "meri"]) == 1
    fast.normalizer = tokenizers.normalizers.Replace("me", "")
    with pytest.raises(RunError, match="would cut 'meri' otherwise"):
        refuse_other_ids(unigram, fast, ["meri"])


def test_rules_of_normalisation_are_refused() -> None:
    with pytest.raises(RunError, match=r"^tokenizer\.normalization nmt_nfkc: .*; use `mt export ct2`$"):
        fast_tokenizer(model(normalization="nmt_nfkc"))
