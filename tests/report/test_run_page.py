"""A run's page: whatever state the run is in there is one, and text of the corpus stays text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mt.report.run_page import run_page, write_report
from mt.rundir import RunDir
from tests.page.reading import Tags
from tests.report.made import EVIL, ended, run_of, update, validated

NUMBERS = [update(number) for number in range(1, 301)]


def page_of(run: RunDir) -> Tags:
    """The page, taken apart; it asks for nothing and lets no text become markup."""
    html = run_page(run, device="cpu")
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/1999/xlink", "")
    tags = Tags(html)
    assert not {"script", "img"} & set(tags.seen)
    assert len(tags.ids) == len(set(tags.ids))
    return tags


def test_text_of_the_corpus_stays_text(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run <b>", [*NUMBERS, validated(300, sets={EVIL: {"bleu": 3.0}})])
    run.reports.mkdir()
    metric = {"name": "BLEU", "score": 12.34, "signature": EVIL, "interval": [11.0, 13.5]}
    groups = [{"from": 1, "to": 9, "lines": 8, "metrics": [metric]}, {"from": 10, "to": 10, "lines": 8, "metrics": [metric]}]
    run.test_scores.write_text(json.dumps({EVIL: {"beam": 5, "metrics": [metric], "by_length": groups}}))
    run.data.mkdir()
    dropped = [{"reason": "empty side", "count": 2, "share": 0.2, "examples": []}]
    run.filtered.write_text(json.dumps({"corpora": {EVIL: {"total": 10, "kept": 8, "dropped": dropped}}}))
    run.starts.write_text(json.dumps({"mt": "0.1", "commit": EVIL, "device": "cpu", "parameters": 12345678}) + "\n")
    text = page_of(run).text
    assert text.count(EVIL) >= 7
    for told in (
        "12.34",
        "[11.00, 13.50]",
        "مرحبا 漢字",
        "<b>300</b>",
        "empty side",
        "20.00%",
        "1–9",
        "12.3 M",
        "run <b>",
    ):
        assert told in text


def test_samples_are_shown_again_where_they_changed(tmp_path: Path) -> None:
    def at(number: int, text: str) -> dict[str, object]:
        return validated(number, samples=[{"source": "ein Haus", "reference": "a house", "translation": text}])

    text = page_of(run_of(tmp_path / "run", [at(1, "house"), at(2, "a house"), at(3, "a house"), ended(3)])).text
    assert [f"update {number}" in text.split("Samples over time")[1].split("Attention")[0] for number in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([], "prepared, not trained"),
        ([update(1)], "Nothing was validated yet."),
        ([update(1, loss="nan", norm="nan"), update(2, loss="inf"), validated(2, scores={"loss": "nan"})], "2 updates"),
        ([validated(5, samples=None, sets=None, shares=None, signatures=None)], "5 updates"),
    ],
)
def test_in_whatever_state_a_run_is(tmp_path: Path, events: list[dict[str, object] | str], told: str) -> None:
    text = page_of(run_of(tmp_path / "run", events)).text
    assert told in text
    assert "there is no checkpoint yet" in text


def test_a_run_that_has_nothing_to_be_judged_by(tmp_path: Path) -> None:
    assert "This run has neither dev nor test sets." in page_of(run_of(tmp_path / "run", [update(1), ended(1)], "data.dev=none")).text


@pytest.mark.parametrize("damaged", ['{"x": 3}', '{"corpora": [1], "final": {"metrics": [{"score": "x"}, 3]}}'])
def test_other_files_of_it_may_be_damaged(tmp_path: Path, damaged: str) -> None:
    run = run_of(tmp_path / "run", [validated(300), ended(300)])
    for file in (run.test_scores, run.filtered, run.starts, run.names_file):
        file.parent.mkdir(exist_ok=True)
        file.write_text(damaged)
    assert "300 updates" in page_of(run).text


def test_it_is_the_same_each_time_and_goes_where_it_is_asked_to(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [validated(300), ended(300)])
    assert write_report(run, device="cpu") == run.page
    assert write_report(run, tmp_path / "x.html", device="cpu").read_text("utf-8") == run.page.read_text("utf-8")
