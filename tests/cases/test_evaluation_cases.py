"""Troubles that people had with scores, by the number of the case: each test writes the input that caused it."""

from __future__ import annotations

import pytest

from mt.errors import DataError
from mt.evaluate.metrics import Scores, score

FOX = """\
the small red fox runs over the hill .
two birds sing in the old tree .
she puts the green cup on the table .
"""
FOX_REFERENCE = """\
the small red fox runs over the hill .
two birds sing in the tall old tree .
she set the green cup on a table .
"""
FOX_SECOND_REFERENCE = """\
a small red fox runs over the hill .
in the old tree two birds sing .
she puts the green cup on the table .
"""


def lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def judged(hypotheses: str, *references: str, lang: str | None = None, **options: bool | str) -> Scores:
    return score(lines(hypotheses), [lines(one) for one in references], lang=lang, **options)  # type: ignore[arg-type]


def digits(scores: Scores, *metrics: str) -> list[str]:
    return [f"{scores[metric].score:.4f}" for metric in metrics]


def test_85_different_counts_are_refused() -> None:
    assert digits(judged(FOX, FOX_REFERENCE), "bleu", "chrf") == ["67.9468", "81.1766"]
    short, long, blank_end = "".join(FOX.splitlines(keepends=True)[:2]), FOX + "x\n", FOX + "\n"
    for hypotheses, count in (short, 2), (long, 4), (blank_end, 4):
        with pytest.raises(DataError, match=rf"\b{count} hypotheses .*\b3 references"):
            judged(hypotheses, FOX_REFERENCE)


def test_86_references_come_as_sets() -> None:
    both = judged(FOX, FOX_REFERENCE, FOX_SECOND_REFERENCE)
    assert digits(both, "bleu", "chrf") == ["96.9194", "95.4519"]
    assert all("nrefs:2|" in one.signature for one in both.metrics)
    assert digits(judged(FOX, FOX_REFERENCE), "bleu") == ["67.9468"]
    per_sentence = list(zip(lines(FOX_REFERENCE), lines(FOX_SECOND_REFERENCE), strict=True))
    with pytest.raises(DataError, match="3 hypotheses but 2 references in set 1"):
        score(lines(FOX), per_sentence, lang="en")
    with pytest.raises(TypeError, match="a list of such lists"):
        score(lines(FOX), lines(FOX_REFERENCE), lang="en")


def test_88_an_empty_reference_is_a_warning() -> None:
    first, _, third = lines(FOX_REFERENCE)
    scores = judged(FOX, f"{first}\n\n{third}\n")
    assert digits(scores, "bleu", "chrf") == ["49.3873", "83.1188"]
    assert scores.warnings == ["1 empty reference (line 2)"]


def test_89_bleu_without_4_grams_says_so() -> None:
    scores = judged("green cup\n", "green cup\n")
    assert digits(scores, "bleu", "chrf") == ["0.0000", "100.0000"]
    assert [warning for warning in scores.warnings if "BLEU is undefined" in warning and "4-gram" in warning]


def test_90_the_tokenizer_follows_the_target_language() -> None:
    zh = "今天下雨，你带伞了吗？\n我在图书馆看书。\n", "今天下雨了，你带伞没有？\n我在图书馆里看书。\n"
    ja = "駅の前で友だちを待っています。\n", "駅の前で友達を待っています。\n"
    chinese = judged(*zh, lang="zh")
    assert "|tok:zh|" in chinese["bleu"].signature
    assert digits(chinese, "bleu", "chrf") == ["51.8056", "39.2386"]
    assert "|tok:ja-mecab" in judged(*ja, lang="ja")["bleu"].signature
    assert judged(*ja, lang="ja")["bleu"].score > 0
    assert digits(judged(*ja, lang="ja", tokenize="char"), "bleu") == ["72.4158"]
    for hypotheses, reference in zh, ja:
        assert digits(judged(hypotheses, reference, lang="en"), "bleu") == ["0.0000"]


def test_90_without_mecab_characters_are_scored_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    scores = judged("駅の前で友だちを待っています。\n", "駅の前で友達を待っています。\n", lang="ja", metrics=("bleu",))
    assert digits(scores, "bleu") == ["72.4158"]
    assert "|tok:char|" in scores["bleu"].signature
    assert [warning for warning in scores.warnings if "ja-mecab is not installed" in warning and "characters" in warning]


def test_91_text_is_scored_not_pieces() -> None:
    hypotheses = "▁the ▁s mall ▁re d ▁f ox ▁run s ▁over ▁the ▁h ill ▁.\n▁two ▁bird s ▁s ing ▁in ▁the ▁old ▁t ree ▁.\n"
    references = "▁the ▁s mall ▁re d ▁f ox ▁run s ▁over ▁a ▁h ill ▁.\n▁two ▁bird s ▁s ang ▁in ▁the ▁old ▁t ree ▁.\n"
    as_text = [pieces.replace(" ", "").replace("\n▁", "\n").replace("▁", " ").strip(" ") for pieces in (hypotheses, references)]
    assert as_text[0] == "the small red fox runs over the hill .\ntwo birds sing in the old tree .\n"
    assert digits(judged(*as_text), "bleu") == ["63.0840"]
    on_pieces = judged(hypotheses, references)
    assert digits(on_pieces, "bleu") == ["77.2370"]
    assert [warning for warning in on_pieces.warnings if "pieces" in warning]


def test_92_hypotheses_that_look_tokenised_are_pointed_out() -> None:
    scores = judged(
        "the fox 's tail is red , isn 't it ?\n\" stop ! \" he said .\n", "the fox's tail is red, isn't it?\n\"stop!\" he said.\n"
    )
    assert digits(scores, "bleu", "chrf") == ["56.4123", "100.0000"]
    assert [warning for warning in scores.warnings if "the hypotheses look tokenised" in warning]


def test_93_case_is_in_the_signature() -> None:
    text = "the Fox runs over the Hill.\nTwo birds sing.\n", "The fox runs over the hill.\ntwo birds sing.\n"
    cased, lowered = judged(*text), judged(*text, lowercase=True)
    assert digits(cased, "bleu") == ["29.9822"]
    assert digits(lowered, "bleu") == ["100.0000"]
    assert "|case:mixed|" in cased["bleu"].signature
    assert "|case:lc|" in lowered["bleu"].signature
    assert all("|version:" in one.signature for one in cased.metrics + lowered.metrics)
    assert not cased.warnings
    assert [warning for warning in lowered.warnings if "case" in warning]
