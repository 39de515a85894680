"""`mt bench`: the scores are those of `mt translate` and `mt eval`, the speed is of what was translated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mt.config.schema import DecodeConfig
from mt.decode.engine import Beam, Sampling
from mt.decode.mbr import Mbr
from mt.errors import DecodeError
from mt.rundir import RunDir
from mt.systems import SYSTEMS, search_of
from tests import toy
from tests.translating import lively_run, mt

LINES = ["bage depe .", *toy.sentences(5, seed=5)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=0.5", "decode.max_length_extra=6")


@pytest.fixture(scope="module")
def files(run: RunDir) -> list[str | Path]:
    paths = run.path / "in.src", run.path / "in.trg"
    for path, lines in zip(paths, (LINES, LINES[::-1]), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ["--src", paths[0], "--ref", paths[1]]


SAME = {"greedy": "--greedy", "beam-3": "--beam 3", "sample": "--sample", "rerank-3": "--beam 3 --mbr 3", "mbr-4": "--sample --mbr 4"}


def test_a_system_scores_as_what_it_stands_for(run: RunDir, files: list[str | Path], tmp_path: Path) -> None:
    done = mt("bench", "--model", run.path, *files, "--systems", ",".join(SAME), "--json", tmp_path / "x.json")
    assert done.code == 0, done.err
    written = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert [one["system"] for one in written["systems"]] == list(SAME)
    for one, row in zip(written["systems"], done.lines[1:], strict=False):
        text = mt("translate", "--model", run.path, *SAME[one["system"]].split(), stdin="".join(f"{x}\n" for x in LINES).encode())
        (tmp_path / "out").write_bytes(text.out)
        scores = mt("eval", "--hyp", tmp_path / "out", *files[2:], "--metrics", "bleu,chrf")
        assert [f"{metric['score']:.2f}" for metric in one["metrics"]] == [line.split()[1] for line in scores.lines]
        assert one["lines_per_second"] == pytest.approx(len(LINES) / one["seconds"])
        assert row.split()[:2] == [one["system"], "fp32"]
    assert all("version:" in line for line in done.lines[-2:])


def test_both_precisions_one_after_the_other(run: RunDir, files: list[str | Path]) -> None:
    done = mt("bench", "--model", run.path, *files, "--systems", "greedy,beam-2", "--precision", "both", "--max-lines", "2")
    rows = [line.split()[:2] for line in done.lines[1:5]]
    assert rows == [["greedy", "fp32"], ["beam-2", "fp32"], ["greedy", "bf16"], ["beam-2", "bf16"]]


def test_what_the_names_ask_for() -> None:
    cfg = DecodeConfig(length_penalty=0.6, n_best=2)
    assert search_of("greedy", cfg) == search_of("beam-1", cfg) == Beam(width=1, length_penalty=0.6)
    assert search_of("beam-7", cfg) == Beam(width=7, length_penalty=0.6)
    assert search_of("sample", cfg) == Sampling(length_penalty=0.6)
    assert search_of("rerank-4", cfg) == Beam(width=4, n_best=4, length_penalty=0.6, mbr=Mbr())
    assert search_of("rerank-4", DecodeConfig(patience=2.0, coverage_penalty=0.5)) == Beam(
        width=4, n_best=4, patience=2.0, coverage_penalty=0.5, mbr=Mbr()
    )
    assert search_of("mbr-16", cfg) == Sampling(n_best=16, length_penalty=0.6, mbr=Mbr())
    assert all(search_of(system, cfg) for system in SYSTEMS)


@pytest.mark.parametrize("system", ["", "beam", "beam-0", "beam-x", "greedy-2", "mbr-1", "mbr", "mbr-99999", "viterbi"])
def test_a_name_that_there_is_not(system: str) -> None:
    with pytest.raises(DecodeError, match="give greedy, beam-N"):
        search_of(system, DecodeConfig())


def test_mistakes_are_one_line(run: RunDir, files: list[str | Path], tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(b"")
    assert mt("bench", "--model", run.path, "--src", tmp_path / "none", "--ref", tmp_path / "none").err == [
        f"{tmp_path / 'none'}: has no lines, so that there is nothing to compare"
    ]
    fewer = mt("bench", "--model", run.path, *files[:2], "--ref", tmp_path / "none")
    assert (fewer.code, fewer.out) == (2, b"")
    assert "has 6 lines" in fewer.err[0]
    assert mt("bench", "--model", run.path, *files, "--systems", "greedy,viterbi").out == b""
    assert mt("bench", "--model", run.path, *files, "--systems", "viterbi").err[0].startswith("system 'viterbi': give greedy")
