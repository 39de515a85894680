"""A comparison holds together: its parts agree with each other and with what scores one system alone."""

from __future__ import annotations

import json
import random

import pytest

from mt.errors import DataError
from mt.evaluate.buckets import by_length
from mt.evaluate.compare import EXAMPLES, Comparison, compare
from mt.evaluate.layout import as_markdown, as_page, as_text
from mt.evaluate.metrics import closeness_by, score
from mt.evaluate.significance import Resampling
from mt.evaluate.wording import NO_DIFFERENCE, UNDECIDED, about, outline
from tests.page.reading import Tags

WORDS = ["fox", "hill", "tree", "cup", "bird", "table", "river", "stone", "sings", "runs"]
QUICK = Resampling(samples=100, trials=200)
EVIL = '<script>alert("x")</script> | *b* [l](u) & _i_ $x$ `c`'


def text(kept: float, *, lines: int = 60) -> list[str]:
    """The same lines, each word kept with this probability."""
    rng, dropping = random.Random(1), random.Random(kept)
    return [" ".join(word for word in rng.choices(WORDS, k=rng.randint(4, 14)) if dropping.random() < kept) for _ in range(lines)]


def compared(*, metrics: tuple[str, ...] = ("bleu", "chrf", "chrf++", "ter"), **outputs: list[str]) -> Comparison:
    lines = len(next(iter(outputs.values())))
    reference = text(1, lines=lines)
    return compare(
        outputs, [reference], lang="en", sources=text(1, lines=lines), metrics=metrics, resampling=QUICK,
        divisions=[by_length(reference, side="source")],
    )  # fmt: skip


def said(comparison: Comparison, *, examples: int = 3) -> str:
    return as_text(outline(comparison, examples=examples))


def test_scores_are_those_of_each_alone() -> None:
    outputs = {"a": text(0.9), "b": text(0.8)}
    found = compared(**outputs)
    for system in found.systems:
        alone = score(outputs[system.name], [text(1)], lang="en", metrics=list(found.metrics))
        assert {key: one.score for key, one in system.scores.items()} == {one.metric: one.score for one in alone.metrics}
        assert {one.metric: one.name for one in alone.metrics} == found.metrics
    (rival,) = found.rivals
    for key, difference in rival.differences.items():
        assert difference.difference == pytest.approx(found.systems[1].scores[key].score - found.systems[0].scores[key].score)


def test_lines_are_counted_and_sorted_by_their_sentence_scores() -> None:
    outputs = {"a": text(0.9), "b": text(0.8)}
    (rival,) = compared(**outputs).rivals
    closeness, reference = closeness_by("chrf", lang="en"), text(1)
    here, there = ([closeness(line, right) for line, right in zip(outputs[name], reference, strict=True)] for name in "ab")
    gains = [two - one for one, two in zip(here, there, strict=True)]
    assert (rival.wins, rival.losses) == (sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains))
    assert rival.wins + rival.ties + rival.losses == 60
    assert rival.same <= rival.ties
    assert [one.chrf[1] - one.chrf[0] for one in rival.better] == sorted((g for g in gains if g > 0), reverse=True)[:EXAMPLES]
    assert [one.chrf[1] - one.chrf[0] for one in rival.worse] == sorted(g for g in gains if g < 0)[:EXAMPLES]
    for one in rival.better + rival.worse:
        at = one.line - 1
        assert (one.baseline, one.other, one.references, one.source) == (
            outputs["a"][at],
            outputs["b"][at],
            (reference[at],),
            reference[at],
        )


def test_the_parts_of_bleu_add_up_to_its_difference() -> None:
    (rival,) = compared(a=text(0.95), b=[f"{line} fox tree cup" for line in text(0.8)]).rivals
    assert rival.by_precision is not None
    assert rival.by_brevity is not None
    assert rival.by_precision + rival.by_brevity == pytest.approx(rival.differences["bleu"].difference)
    assert rival.by_precision < 0 < rival.by_brevity


def test_buckets_are_scored_as_their_lines_are_alone() -> None:
    outputs = {"a": text(0.9), "b": text(0.8)}
    found = compared(**outputs)
    division = by_length(text(1), side="source")
    for number, bucket in enumerate(found.buckets[division.title]):
        lines = division.lines(number)
        for name, output in outputs.items():
            alone = score([output[line] for line in lines], [[text(1)[line] for line in lines]], lang="en", metrics=["chrf"])
            assert bucket.scores[name] == alone["chrf"].score
        assert bucket.lines == len(lines)
        low, high = bucket.intervals["b"] or (0, 0)
        assert low < bucket.scores["b"] - bucket.scores["a"] < high
    assert all(sum(bucket.lines for bucket in buckets) == 60 for buckets in found.buckets.values())


def test_few_lines_have_no_interval() -> None:
    found = compared(a=text(0.9, lines=12), b=text(0.8, lines=12))
    assert {bucket.intervals["b"] for buckets in found.buckets.values() for bucket in buckets} == {None}
    assert "(few lines)" in said(found)


def test_it_says_no_more_than_the_tests_do() -> None:
    clear = said(compared(a=text(0.95), b=text(0.5)))
    assert NO_DIFFERENCE not in clear
    assert clear.count("  worse\n") == 4  # TER too, though it is higher
    assert said(compared(a=text(0.5), b=text(0.95))).count("  better\n") == 4
    close = said(compared(a=text(0.9), b=[*text(0.9)[:59], "fox"]))
    assert close.count(NO_DIFFERENCE) + close.count(UNDECIDED) == 4


def test_several_systems_are_corrected_for_and_it_is_said() -> None:
    assert "Holm" not in said(compared(a=text(0.9), b=text(0.8)))
    three = said(compared(a=text(0.9), b=text(0.8), c=text(0.7)))
    assert "p is corrected for 2 comparisons (Holm); the p shown is not." in three


def test_the_same_output_twice_is_a_warning_and_no_difference() -> None:
    found = compared(a=text(0.9), b=text(0.9))
    assert "b and a are the same, line for line: was one file given for the other?" in found.warnings
    assert said(found).count(NO_DIFFERENCE) == 4


def test_doubts_about_all_are_told_once() -> None:
    pieces = [f"\u2581{line}" for line in text(0.9)]
    (common,) = (one for one in compared(a=pieces, b=pieces[:-1] + ["\u2581fox"]).warnings if "subword pieces" in one)
    assert common.startswith("the hypotheses")
    (own,) = (one for one in compared(a=text(0.9), b=pieces).warnings if "subword pieces" in one)
    assert own.startswith("b: ")


def test_without_bleu_there_are_no_ngrams_and_chrf_may_stay_unasked() -> None:
    found = compared(a=text(0.9), b=text(0.8), metrics=("ter",))
    assert (list(found.metrics), found.systems[0].ngrams, found.rivals[0].by_brevity) == (["ter"], None, None)
    assert "1-grams" not in said(found)
    assert found.rivals[0].losses > 0


def test_all_of_it_goes_into_json() -> None:
    found = compared(a=text(0.9), b=text(0.8))
    written = json.loads(json.dumps(found.as_json()))
    assert written["baseline"] == "a"
    assert written["rivals"][0]["differences"]["bleu"]["p_bootstrap"] == found.rivals[0].differences["bleu"].p_bootstrap
    assert written["rivals"][0]["differences"]["bleu"]["significant"] is True
    assert written["resampling"] == {"samples": 100, "trials": 200, "seed": 12345}


def test_lines_of_the_terminal_are_short() -> None:
    found = compared(a=text(0.9), b=text(0.8))
    assert max(map(len, said(found, examples=0).splitlines())) <= 110


def test_text_never_becomes_markup() -> None:
    lines = [f"{line} {EVIL}" for line in text(0.9)]
    found = compare(
        {"<b>a": lines, "b": text(0.8)}, [lines], lang="en", sources=lines, metrics=["bleu"], resampling=QUICK,
    )  # fmt: skip
    page = as_page(outline(found, examples=20), title=EVIL, about=about(found))
    tags = Tags(page)
    assert not {"script", "u"} & set(tags.seen)
    assert "&lt;script&gt;alert" in page
    assert EVIL in tags.text
    markdown = as_markdown(outline(found, examples=20), title=EVIL, about="")
    assert "<" not in markdown
    assert r"\[l\](u)" in markdown
    assert markdown.count("\n\n## ") == said(found, examples=20).count("── ")


def test_one_system_or_other_counts_are_refused() -> None:
    with pytest.raises(DataError, match="one system alone cannot be compared: give another"):
        compared(a=text(0.9))
    with pytest.raises(DataError, match="60 hypotheses but 59 references"):
        compare({"a": text(0.9), "b": text(0.8)}, [text(1)[:-1]], lang="en")
