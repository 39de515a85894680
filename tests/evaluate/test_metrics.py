"""Scores hold the relations that make them scores, and say what must be known to trust them."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import numpy as np
import pytest

from mt.errors import ConfigError, DataError
from mt.evaluate.metrics import BOOTSTRAP_SAMPLES, build_metric, score, segment_statistics, tokenizer_for

WORDS = ["fox", "hill", "tree", "bird", "cup", "red", "green", "small", "sings", "runs", "over", "under", "the", "a", "she", "two"]


def corpus(lines: int, *, seed: int = 1) -> tuple[list[str], list[str]]:
    """References of 5 to 12 words, and hypotheses that differ from them in a fifth of the words."""
    rng = random.Random(seed)
    references = [rng.choices(WORDS, k=rng.randint(5, 12)) for _ in range(lines)]
    hypotheses = [[word if rng.random() < 0.8 else rng.choice(WORDS) for word in line] for line in references]
    return [f"{' '.join(line).capitalize()}." for line in hypotheses], [f"{' '.join(line).capitalize()}." for line in references]


HYPOTHESES, REFERENCES = corpus(40)


def values(hypotheses: list[str], *references: list[str]) -> list[float]:
    return [one.score for one in score(hypotheses, references, lang="en").metrics]


def test_perfect_translations_have_the_best_scores() -> None:
    assert values(REFERENCES, REFERENCES) == pytest.approx([100.0, 100.0, 0.0])


def test_the_order_of_lines_does_not_matter() -> None:
    order = random.Random(2).sample(range(40), 40)
    assert values([HYPOTHESES[i] for i in order], [REFERENCES[i] for i in order]) == values(HYPOTHESES, REFERENCES)


def test_the_same_references_twice_change_nothing_but_the_signature() -> None:
    assert values(HYPOTHESES, REFERENCES, REFERENCES) == values(HYPOTHESES, REFERENCES)
    once, twice = (score(HYPOTHESES, [REFERENCES] * n, lang="en")["bleu"].signature for n in (1, 2))
    assert twice == once.replace("nrefs:1", "nrefs:2")


def test_more_references_never_lower_a_match() -> None:
    bleu, chrf, _ = values(HYPOTHESES, REFERENCES, HYPOTHESES)
    assert (bleu, chrf) == pytest.approx((100.0, 100.0))


def test_a_translation_made_worse_scores_worse() -> None:
    worse = ["Wolf valley." if i % 4 == 0 else line for i, line in enumerate(HYPOTHESES)]
    bleu, chrf, ter = values(HYPOTHESES, REFERENCES)
    worse_bleu, worse_chrf, worse_ter = values(worse, REFERENCES)
    assert worse_bleu < bleu
    assert worse_chrf < chrf
    assert worse_ter > ter


@pytest.mark.parametrize("key", ["bleu", "chrf", "ter"])
def test_statistics_of_parts_make_up_those_of_the_whole(key: str) -> None:
    metric, _ = build_metric(key, lang="en", tokenize=None, lowercase=False)
    parts = [segment_statistics(metric, HYPOTHESES[part], [REFERENCES[part]]) for part in (slice(13), slice(13, None))]
    assert parts[0] + parts[1] == segment_statistics(metric, HYPOTHESES, [REFERENCES])


def test_metrics_come_in_the_order_asked_for_and_once() -> None:
    scores = score(HYPOTHESES, [REFERENCES], lang="en", metrics=("ter", "bleu", "ter"))
    assert [one.name for one in scores.metrics] == ["TER", "BLEU"]
    assert scores["bleu"] is scores.metrics[1]
    with pytest.raises(KeyError):
        scores["chrf"]


def test_json_is_unrounded_and_whole() -> None:
    scores = score(HYPOTHESES, [REFERENCES], lang="en", metrics=("bleu", "chrf"), intervals=True)
    read = json.loads(json.dumps(scores.as_json()))
    assert [(one["name"], one["score"], one["signature"], tuple(one["interval"])) for one in read["metrics"]] == [
        (one.name, one.score, one.signature, one.interval) for one in scores.metrics
    ]
    assert (read["lines"], read["warnings"]) == (40, scores.warnings)


# ── intervals ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_intervals_do_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    once = score(HYPOTHESES, [REFERENCES], lang="en", intervals=True)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    np.random.seed(7)
    assert score(HYPOTHESES, [REFERENCES], lang="en", intervals=True) == once
    assert all(f"|bs:{BOOTSTRAP_SAMPLES}|seed:12345|" in one.signature for one in once.metrics)


def test_intervals_leave_the_scores_alone() -> None:
    bare, whole = (score(HYPOTHESES, [REFERENCES], lang="en", intervals=intervals) for intervals in (False, True))
    assert [one.score for one in bare.metrics] == [one.score for one in whole.metrics]
    assert [one.interval for one in bare.metrics] == [None] * 3
    assert all("seed:" not in one.signature for one in bare.metrics)
    assert all(low < one.score < high for one in whole.metrics for low, high in [one.interval or (0.0, 0.0)])


def test_four_times_the_lines_halve_the_interval() -> None:
    widths = []
    for lines in (100, 400):
        hypotheses, references = corpus(lines)
        low, high = score(hypotheses, [references], lang="en", metrics=("bleu",), intervals=True)["bleu"].interval or (0.0, 0.0)
        widths.append(high - low)
    assert 1.5 < widths[0] / widths[1] < 2.7


def test_lines_that_are_all_alike_have_a_point_for_an_interval() -> None:
    for one in score(["The red fox sings."] * 9, [["The old fox sings."] * 9], lang="en", intervals=True).metrics:
        assert one.interval == pytest.approx((one.score, one.score), rel=1e-6)


def test_empty_references_have_intervals_too() -> None:
    scores = score(["The fox sings.", "Run.", ""], [["The fox sang.", "", ""]], lang="en", intervals=True)
    assert all(low < one.score < high for one in scores.metrics[1:] for low, high in [one.interval or (0.0, 0.0)])


# ── languages and tokenizers ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tokenizer", "codes"),
    [
        ("zh", ["zh", "ZH", "zh-CN", "zh_Hans", "zh-Hant-TW", "zho_Hant", "cmn"]),
        ("ja-mecab", ["ja", "ja_JP", "jpn_Jpan"]),
        ("ko-mecab", ["ko", "ko-KR", "kor_Hang"]),
        ("char", ["th", "lo", "km", "my", "tha_Thai", "khm"]),
        ("13a", ["de", "pt_BR", "en-GB", "deu_Latn", "mya2", "", None]),
    ],
)
def test_the_tokenizer_follows_the_language(tokenizer: str, codes: list[str | None]) -> None:
    assert {tokenizer_for(code) for code in codes} == {tokenizer}


def test_a_named_tokenizer_wins_over_the_language() -> None:
    by_name = score(HYPOTHESES, [REFERENCES], lang="zh", tokenize="13a", metrics=("bleu",))["bleu"]
    assert by_name == score(HYPOTHESES, [REFERENCES], lang="en", metrics=("bleu",))["bleu"]


def test_no_tokenizer_is_taken_for_another() -> None:
    with pytest.raises(ConfigError, match="no tokenizer `moses`; choose from none, zh, 13a"):
        score(HYPOTHESES, [REFERENCES], lang="en", tokenize="moses")
    with pytest.raises(ConfigError, match="no metric is called `blue` here; choose from bleu, chrf, chrf\\+\\+, ter"):
        score(HYPOTHESES, [REFERENCES], lang="en", metrics=("blue",))


@pytest.mark.parametrize(("lang", "module"), [("ja", "tokenizer_ja_mecab"), ("ko", "tokenizer_ko_mecab")])
def test_a_tokenizer_asked_for_and_not_installed_is_an_error(lang: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"sacrebleu.tokenizers.{module}.MeCab", None)
    with pytest.raises(ConfigError, match=rf"{lang}-mecab is not installed \(pip install 'sacrebleu\[{lang}\]'\)"):
        score(HYPOTHESES, [REFERENCES], lang=None, tokenize=f"{lang}-mecab")
    assert "|tok:char|" in score(HYPOTHESES, [REFERENCES], lang=lang, metrics=("bleu",))["bleu"].signature


def test_a_tokenizer_that_cannot_be_fetched_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.download_file", offline)
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", "nowhere")
    with pytest.raises(ConfigError, match=r"`flores200` could not be fetched \(no network\)"):
        score(HYPOTHESES, [REFERENCES], lang="en", tokenize="flores200")


# ── warnings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def warnings(hypotheses: list[str], *references: list[str], lang: str | None = "en", **options: bool) -> list[str]:
    return score(hypotheses, references, lang=lang, **options).warnings  # type: ignore[arg-type]


def test_sound_text_has_no_warnings(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(HYPOTHESES, REFERENCES) == []
    assert warnings(["The fox sings over there ."] * 200, ["The bird sings over there ."] * 200) == []
    assert caplog.records == []  # sacreBLEU says it of every tokenised file, even if the references are tokenised too


def test_empty_references_are_counted_and_placed() -> None:
    gaps = ["" if i < 7 else line for i, line in enumerate(REFERENCES)]
    assert warnings(HYPOTHESES, gaps) == ["7 empty references (lines 1, 2, 3, 4, 5, …)"]
    assert warnings(HYPOTHESES, REFERENCES, [*REFERENCES[:-1], " \t"]) == ["1 empty reference in set 2 (line 40)"]


def tokenised(lines: list[str]) -> list[str]:
    return [line.replace(".", " .") for line in lines]


def test_one_tokenised_side_is_pointed_out() -> None:
    assert "the hypotheses look tokenised" in warnings(tokenised(HYPOTHESES), REFERENCES)[0]
    assert "the references look tokenised" in warnings(HYPOTHESES, tokenised(REFERENCES))[0]
    assert warnings(tokenised(HYPOTHESES), tokenised(REFERENCES)) == []


def test_a_spaced_style_of_punctuation_is_not_taken_for_a_tokenizer() -> None:
    french = ["Tu viens ?", "Oui !", "Je viens.", "Tu es là : bien."] * 10
    assert warnings(french, [line.replace("viens", "pars") for line in french], lang="fr") == []


def test_output_without_punctuation_is_not_taken_for_raw_text() -> None:
    assert warnings(["the fox sings over there"] * 20, ["The bird sings over there ."] * 20) == []


def test_text_without_spaces_needs_a_language() -> None:
    text = ["今天下雨，你带伞了吗？"]
    assert [w for w in warnings(text, text, lang=None) if "tok:13a" in w and "target language" in w]
    assert not [w for w in warnings(text, text, lang="zh") if "tok:13a" in w]
    assert [w for w in warnings(text, text, lang="zh") if "TER" in w]
    assert warnings(["駅 の 前 で 友だち を 待って い ます 。"], ["駅 の 前 で 友だち を 待って い ます 。"], lang="ja") == []
    assert warnings(["Das Wort 雨 heißt Regen."], ["Das Wort 雨 heißt Regen."], lang="de") == []


def test_blank_hypotheses_are_scored() -> None:
    scores = score(["", " "], [["The fox sings.", "The bird runs."]], lang="en", intervals=True)
    assert [(one.score, one.interval) for one in scores.metrics] == [(0.0, (0.0, 0.0)), (0.0, (0.0, 0.0)), (100.0, (100.0, 100.0))]
    assert [w for w in scores.warnings if "BLEU is undefined" in w]


def test_nothing_is_no_score() -> None:
    with pytest.raises(DataError, match="nothing to score"):
        score([], [[]], lang="en")
    with pytest.raises(DataError, match="nothing to score"):
        score(HYPOTHESES, [], lang="en")


def test_judging_needs_no_torch_and_the_command_no_sacrebleu() -> None:
    code = """
import sys
import mt.cli.eval_command
print(sorted({"torch", "sacrebleu", "numpy"} & sys.modules.keys()))
import mt.evaluate.metrics
print(sorted({"torch", "sacrebleu", "numpy"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.splitlines() == ["[]", "['numpy', 'sacrebleu']"]
