"""What a model that has learnt to translate word for word links: the words that stand for each other."""

from __future__ import annotations

from tests.cases.conftest import ToyRun, right


def test_words_are_linked_to_their_translations(trained: ToyRun) -> None:
    lines = [line for line in trained.test if len(line.split()) < 8]
    found = trained.translator.translate(lines, beam=2, align=True)
    known = [one for line, one in zip(lines, found, strict=True) if one.text == right(line)]
    links = [link for one in known for link in one.alignments[0].links]
    assert len(known) >= len(lines) - 1
    assert sum(source == target for source, target in links) > 0.95 * len(links)
