"""The reports: text of the corpus never becomes markup, one line is one finding, JSON holds what the terminal says."""

from __future__ import annotations

import json
from pathlib import Path

from mt.doctor.page import page
from mt.doctor.summary import lines
from tests.corpora import config, diagnosis, examine, pairs, write
from tests.page.reading import Tags

EVIL = '<script>alert("x")</script><img src=x onerror=y> & $title ${about}'


def test_corpus_text_never_becomes_markup(tmp_path: Path) -> None:
    ill = [(EVIL, EVIL), (EVIL, EVIL), ("a\u2028b \x1b[31m", "c\u00add")]
    test = write(tmp_path, "news", [(EVIL, "x y z"), *pairs(5, seed=3)])
    found = diagnosis(config(tmp_path, train=write(tmp_path, "train", [*pairs(50), *ill]), test=f'{{"<b>news": {test}}}'))
    html = page(found, title=f"Check of {EVIL}")
    tags = Tags(html)
    assert not {"script", "img"} & set(tags.seen)
    assert tags.links == ["data:,"]
    assert "&lt;script&gt;alert" in html
    assert "$title ${about}" in html
    assert "<mark>U+2028</mark>" in html
    assert "<mark>U+001B</mark>" in html
    assert "\x1b" not in html
    assert "&lt;b&gt;news" in html


def test_a_page_of_nothing(tmp_path: Path) -> None:
    assert "Nothing was found" in page(examine(tmp_path, pairs(50)), title="x")


def test_one_line_is_one_finding_with_place_and_cure(tmp_path: Path) -> None:
    found = examine(tmp_path, [*pairs(50), ("Same.", "Same."), ("Same.", "Same.")], "data.filters.copies=true")
    text = list(lines(found))
    assert all("\n" not in line for line in text)
    (copies,) = (line for line in text if "equal sides" in line)
    assert copies == (
        "  train.en: 2 of 52 pairs (3.85%) have two equal sides [train.en:51, train.en:52]; training drops them (data.filters.copies)"
    )
    assert text[-1].startswith("0 errors, ")
    assert text.index("notes") < text.index(copies)
    (row,) = (line for line in text if line.startswith("train.en  train"))
    assert row.split()[:3] == ["train.en", "train", "52"]


def test_json_holds_counts_per_corpus_and_kind(tmp_path: Path) -> None:
    found = examine(tmp_path, [*pairs(50), ("Same.", "Same."), ("Same.", "Same.")])
    report = json.loads(json.dumps(found.as_json()))
    facts = report["corpora"]["train.en"]
    assert (facts["pairs"], facts["copies"], facts["duplicates"], facts["leakage"], facts["empty"]) == (52, 2, 1, 0, 0)
    (copies,) = (finding for finding in report["findings"] if finding["kind"] == "copies")
    assert copies["share"] == 2 / 52
    assert copies["examples"][0] == {"origin": "train.en:51", "src": "Same.", "tgt": "Same."}
    assert (copies["severity"], copies["corpus"], copies["side"]) == ("warning", "train.en", None)
    assert report["leakage"] == {}
