"""Sentences of a run to try a model on: the dev set, else what it was trained on, else none."""

from __future__ import annotations

import shutil
from pathlib import Path

from mt.launch.probe import probe_of
from tests import toy
from tests.runs import four_updates, prepared


def test_what_is_left_of_the_data_is_found(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, train=30, dev=12)
    run = prepared(four_updates(tmp_path, f"data.cache={tmp_path / 'cache'}")).run
    probe = probe_of(run, 5)
    assert probe is not None
    assert probe.called == "the dev set (valid.src)"
    dev = (tmp_path / "valid.src").read_text(encoding="utf-8").splitlines()
    assert [pair.src for pair in probe.pairs] == [dev[place] for place in (0, 2, 4, 7, 9)]
    assert all(toy.translation(pair.src) == pair.tgt for pair in probe.pairs)
    whole = probe_of(run, 100)
    assert whole is not None
    assert [pair.src for pair in whole.pairs] == dev

    (tmp_path / "valid.src").unlink()
    trained = probe_of(run, 5)
    assert trained is not None
    assert trained.called == "what it was trained on (train.src), as there is no dev set any more"
    assert len({pair.src for pair in trained.pairs}) == 5
    assert {pair.src for pair in trained.pairs} < set((tmp_path / "train.src").read_text(encoding="utf-8").splitlines())

    shutil.rmtree(tmp_path / "cache")
    assert probe_of(run, 5) is None
