"""Which programs can hold a model: each option that one does not know is named, with the reason."""

from __future__ import annotations

import pytest

from mt.config.exports import holders
from mt.config.schema import Config


def test_what_only_mt_searches_by_is_told() -> None:
    values = {"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}, "decode": {"retry_loops": True, "protect": ["numbers"]}}
    for holder in holders(Config.model_validate(values)):
        assert holder.line().endswith(", but without decode.protect, decode.retry_loops: only mt's own searches know that")


def lines(*, joint: bool = True, **model: object) -> list[str]:
    values = {"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}, "model": model, "tokenizer": {"joint": joint}}
    return [holder.line() for holder in holders(Config.model_validate(values))]


def test_the_default_model_goes_everywhere() -> None:
    assert lines() == ["CTranslate2: can hold it, as its Transformer", "Hugging Face: can hold it, as PegasusForConditionalGeneration"]


@pytest.mark.parametrize(("norm", "architecture"), [("pre", "PegasusForConditionalGeneration"), ("post", "MarianMTModel")])
def test_where_the_norm_is_decides_the_architecture(norm: str, architecture: str) -> None:
    assert lines(norm=norm, activation="gelu", encoder_layers=6)[1] == f"Hugging Face: can hold it, as {architecture}"


@pytest.mark.parametrize(
    ("option", "value"), [("norm_kind", "rms"), ("activation", "swiglu"), ("positions", "rope"), ("tied_embeddings", False)]
)
def test_what_is_strange_to_one_is_named_and_the_other_holds_it(option: str, value: object) -> None:
    ours, theirs = lines(**{option: value})
    assert ours.startswith("CTranslate2: can hold it")
    assert theirs.startswith(f"Hugging Face: cannot hold it: model.{option} {str(value).lower()}, ")


def test_all_that_is_strange_is_named() -> None:
    line = lines(norm_kind="rms", activation="swiglu", positions="rope", joint=False)[1]
    assert [name for name in ("norm_kind", "activation", "positions", "tokenizer.joint") if name in line] == [
        *("norm_kind", "activation", "positions", "tokenizer.joint")
    ]


def test_what_one_search_does_not_know_is_named() -> None:
    values = {"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}, "decode": {"patience": 2.0}}
    ours, theirs = (holder.line() for holder in holders(Config.model_validate(values)))
    assert ("patience" in ours, "patience" in theirs) == (False, True)


def test_rules_of_normalisation_are_for_ctranslate2_alone() -> None:
    values = {"data": {"train": [{"src": "a", "tgt": "b"}], "dev": "none"}, "tokenizer": {"normalization": "nmt_nfkc"}}
    ours, theirs = (holder.line() for holder in holders(Config.model_validate(values)))
    assert ours.startswith("CTranslate2: can hold it")
    assert theirs.startswith("Hugging Face: cannot hold it: tokenizer.normalization nmt_nfkc, ")


def test_two_vocabularies_are_for_post_norm_alone() -> None:
    assert "tokenizer.joint false" in lines(joint=False)[1]
    assert lines(joint=False, norm="post")[1] == "Hugging Face: can hold it, as MarianMTModel"
