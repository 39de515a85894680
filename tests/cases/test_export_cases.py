"""Trouble cases of exports: one test for each row, named after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mt.decode.ct2_engine import Ct2Engine
from mt.export.proof import first_step
from mt.translator import Translator
from tests import toy
from tests.cases.conftest import ToyRun
from tests.translating import mt

pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")


def test_104_converted_model_translates_differently(trained: ToyRun, tmp_path: Path) -> None:
    """41 lines, greedily and with a beam of 4, in fp32: the same, and what may come first is as probable."""
    folder, source = tmp_path / "exported", tmp_path / "test.src"
    toy.write_lines(source, trained.test)
    done = mt("export", "ct2", trained.run.path, folder, "--proof-src", source, "--tolerance", "0")
    assert done.code == 0, done.err
    assert "tokenizer.model" in {path.name for path in folder.iterdir()}
    for beam in "1", "4":
        ours, theirs = (mt("translate", "--model", model, "--input", source, "--beam", beam) for model in (trained.run.path, folder))
        assert ours.code == theirs.code == 0
        assert len(theirs.lines) == 41
        assert theirs.lines == ours.lines
    exported = Translator.load(folder, device="cpu")
    assert isinstance(exported.engine, Ct2Engine)
    found = exported.engine.first_step([parts[0] for parts in exported.encoded(trained.test)])
    assert np.abs(found - first_step(trained.translator, trained.test)).max() < 1e-4
