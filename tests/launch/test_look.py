"""What is seen of a corpus, and which file is what."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt.config.schema import TextFiles, TmxFile, TsvFile, XliffFile
from mt.errors import DataError
from mt.launch.look import RARE, corpus_of, look
from tests.toy import write_lines


def test_it_counts_what_can_be_used(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.ja", ["猫が いる", "", "犬が いる", "猫が いる"])
    write_lines(tmp_path / "a.ru", ["Кот 1", "x", "Пёс 2", "Кот"])
    seen = look(TextFiles(src=tmp_path / "a.ja", tgt=tmp_path / "a.ru"), langs=None, say=lambda _: None)
    assert (seen.pairs, seen.unusable) == (3, 1)
    assert seen.scripts(0) == ["Kana", "Han"]
    assert seen.scripts(1) == ["Cyrillic"]
    assert seen.mean(0) == 5
    texts = "猫が いる犬が いる猫が いるКот 1Пёс 2Кот"
    assert seen.alphabet == sum(texts.count(character) >= RARE for character in set(texts))
    assert "3 pairs (1 more with an empty side" in seen.line()


def test_the_suffix_tells_the_format(tmp_path: Path) -> None:
    kinds = {"a.tsv": TsvFile, "a.tsv.gz": TsvFile, "a.tmx": TmxFile, "b.xlf": XliffFile}
    for name, kind in kinds.items():
        corpus = corpus_of(None, None, tmp_path / name)
        assert isinstance(corpus, kind)
        assert corpus.paths() == [tmp_path / name]


@pytest.mark.parametrize(
    ("src", "tgt", "pairs", "problem"),
    [
        ("a", None, None, "one side is missing: add --tgt FILE"),
        (None, "a", None, "one side is missing: add --src FILE"),
        (None, None, None, "no corpus is given: add --src FILE and --tgt FILE, or --pairs FILE"),
        ("a", "b", "c.tsv", "--pairs and --src: give one file with both sides, or two files"),
        (None, None, "c.txt", "--pairs c.txt: its name tells no format; it should end in .tsv, .csv"),
    ],
)
def test_what_is_no_corpus_is_a_line(src: str | None, tgt: str | None, pairs: str | None, problem: str) -> None:
    with pytest.raises(DataError, match="^" + problem.replace(".", r"\.")):
        corpus_of(*(name and Path(name) for name in (src, tgt, pairs)))


def test_a_corpus_without_a_usable_pair_is_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.en", ["a", ""])
    write_lines(tmp_path / "a.de", ["", "b"])
    with pytest.raises(DataError, match=r"a\.en: no pair can be used"):
        look(TextFiles(src=tmp_path / "a.en", tgt=tmp_path / "a.de"), langs=None, say=lambda _: None)
