"""`--retry-loops`: what repeats itself is tried again, and nothing else is touched."""

from __future__ import annotations

import json

import pytest

from mt.constraints.control import Control
from mt.decode.engine import Beam, Sampling
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

LINES = ["", *toy.sentences(25, seed=5), "bage bage bage bage"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
SEARCHES = pytest.mark.parametrize("search", [Beam(width=1), Beam(width=2), Sampling(temperature=0.5)], ids=["greedy", "beam", "sampling"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=3", "decode.max_length_extra=40")


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return Translator.load(run.path)


def test_the_model_loops_now_and_then(translator: Translator) -> None:
    loops = ["loop" in one.flags for one in translator.translate(LINES, settings=Beam(width=1))]
    assert True in loops
    assert False in loops


@SEARCHES
def test_the_second_stands_where_it_does_not_loop(translator: Translator, search: Beam | Sampling) -> None:
    first = translator.translate(LINES, settings=search)
    blocked = translator.translate(LINES, settings=search, control=Control(no_repeat_ngram=3))
    found = translator.translate(LINES, settings=search, control=Control(retry_loops=True))
    for one, two, kept in zip(first, blocked, found, strict=True):
        assert kept.retried == ("loop" in one.flags)
        better = kept.retried and "loop" not in two.flags and "empty" not in two.flags
        assert kept.text == (two.text if better else one.text)
        assert kept.source == one.source


def test_the_counts_are_said_and_only_loops_change(run: RunDir) -> None:
    plain = mt("translate", "--model", run.path, "--greedy", "--format", "jsonl", stdin=TEXT)
    done = mt("translate", "--model", run.path, "--greedy", "--format", "jsonl", "--retry-loops", stdin=TEXT)
    before, after = ([json.loads(line) for line in one.lines] for one in (plain, done))
    assert len(after) == len(before) == len(LINES)
    looped = ["loop" in one["flags"] for one in before]
    assert [two for one, two in zip(looped, after, strict=True) if not one] == [b for one, b in zip(looped, before, strict=True) if not one]
    still = sum("loop" in one["flags"] for one in after)
    assert still < sum(looped)
    (report,) = [line for line in done.err if line.startswith("second tries: ")]
    assert report.startswith(f"second tries: {sum(looped) - still} without a loop, {still} no better")
    assert not any("second tries" in line for line in plain.err)


def test_neither_windows_nor_batches_matter(translator: Translator) -> None:
    control = Control(retry_loops=True)
    whole = [one.text for one in translator.translate(LINES, settings=Sampling(), control=control)]
    assert [one.text for one in translator.stream(LINES, settings=Sampling(), control=control, window=3)] == whole
    assert [one.text for one in translator.translate(LINES, settings=Sampling(), control=control, batch_tokens=1)] == whole


def test_the_run_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("asking")
    run = lively_run(folder, "decode.max_length_factor=3", "decode.max_length_extra=40", "decode.retry_loops=true")
    assert any("second tries" in line for line in mt("translate", "--model", run.path, "--greedy", stdin=TEXT).err)
    off = mt("translate", "--model", run.path, "--greedy", "--no-retry-loops", stdin=TEXT)
    assert not any("second tries" in line for line in off.err)
