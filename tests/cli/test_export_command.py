"""`mt export ct2` proves, averages, refuses, and leaves nothing half-made; `mt translate` and `mt eval` take what it wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from mt.rundir import RunDir
from tests import toy
from tests.translating import mt, taught_run

pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")

TEXT = "\ufeffkane tofo .\r\n\n  \t\nbanana\tkane\u2028tofo .\n" + " ".join(toy.sentences(9, seed=2)) + "\nkane <b>5</b> .\n"
"""A byte order mark, blank lines, a TAB, a line separator that ends no line, a line that is too long, unknown characters."""


class Exported(NamedTuple):
    """A run, its export, and a folder for the rest."""

    run: RunDir
    folder: Path
    home: Path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    home = tmp_path_factory.mktemp("taught")
    run = taught_run(home, "data.max_pieces=30", "tokenizer.byte_fallback=false", "decode.beam=3", checkpoints=(1, 2, 3))
    done = mt("export", "ct2", run.path, home / "exported", "--tolerance", "5")
    assert done.code == 0, done.err
    assert done.err[0].startswith("proof: 40 lines of the dev set (valid.src), translated by the run and by CTranslate2 ")
    assert [line.split()[0] for line in done.err[2:4]] == ["greedy", "beam"]
    return Exported(run, home / "exported", home)


def facts(folder: Path) -> dict[str, object]:
    found = json.loads((folder / "mt.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_folder_tells_what_it_is_and_not_where_it_was_made(exported: Exported) -> None:
    about = facts(exported.folder)
    assert (about["format"], about["program"], about["run"], about["checkpoints"]) == (2, "ctranslate2", "run", ["step-00000003"])
    assert about["proof"]
    texts = [(exported.folder / name).read_text(encoding="utf-8") for name in ("mt.json", "mt.yaml")]
    assert not any(str(exported.home) in text for text in texts)


@pytest.mark.parametrize(
    "options",
    [(), ("--greedy",), ("--format", "tsv"), ("--format", "jsonl", "--greedy"), ("--beam", "4", "--length-penalty", "0.6")],
    ids=" ".join,
)
def test_text_is_treated_alike(exported: Exported, options: tuple[str, ...]) -> None:
    ours, theirs = (mt("translate", "--model", model, *options, stdin=TEXT.encode()) for model in (exported.run.path, exported.folder))
    assert (theirs.code, ours.code) == (0, 0)
    if "jsonl" in options:
        for one, other in zip(map(json.loads, ours.lines), map(json.loads, theirs.lines), strict=True):
            assert {name: one[name] for name in ("line", "source", "flags")} == {name: other[name] for name in ("line", "source", "flags")}
            for mine, its in zip(one["hypotheses"], other["hypotheses"], strict=True):
                assert (its["text"], its["ids"], its.get("parts")) == (mine["text"], mine["ids"], mine.get("parts"))
                assert its["log_prob"] == pytest.approx(mine["log_prob"], abs=1e-3)
                assert its["token_log_probs"] == pytest.approx(mine["token_log_probs"], abs=1e-4)
    elif "tsv" in options:
        rows = [[line.split("\t") for line in side.lines] for side in (ours, theirs)]
        assert [(row[0], row[2]) for row in rows[1]] == [(row[0], row[2]) for row in rows[0]]
    else:
        assert theirs.lines == ours.lines
    assert theirs.err == ours.err  # the line in parts, the unknown characters


def test_the_evaluation_is_that_of_the_translations(exported: Exported, tmp_path: Path) -> None:
    files = "--src", exported.home / "test.src", "--ref", exported.home / "test.trg"
    found = {}
    for name, model in ("run", exported.run.path), ("export", exported.folder):
        assert mt("eval", "--model", model, *files, "--beam", "1", "--json", tmp_path / name).code == 0
        found[name] = json.loads((tmp_path / name).read_text(encoding="utf-8"))["metrics"]
    assert found["export"] == found["run"]


def test_exports_are_compared_and_measured_as_runs_are(exported: Exported) -> None:
    src, ref = exported.home / "test.src", exported.home / "test.trg"
    models = "--model", f"one={exported.folder}", "--model", f"run={exported.run.path}"
    done = mt("compare", *models, "--src", src, "--ref", ref, "--beam", "1", "--show", "0")
    assert done.code == 0, done.err
    assert any("41 the same text" in line for line in done.lines)
    assert "warning: run and one are the same, line for line: was one file given for the other?" in done.err
    assert not any("rare words" in line for line in done.err)  # the run among them knows the text
    done = mt("bench", "--model", exported.folder, "--src", src, "--ref", ref, "--systems", "greedy")
    assert done.lines[1].split()[:2] == ["greedy", "float32"]


def test_a_translation_that_was_killed_goes_on(exported: Exported, tmp_path: Path) -> None:
    lines = toy.sentences(10, seed=3)
    toy.write_lines(tmp_path / "in", lines)
    command = "translate", "--model", exported.folder, "--input", tmp_path / "in", "--output", tmp_path / "out", "--resume-output"
    assert mt(*command).code == 0
    assert len((tmp_path / "out").read_text(encoding="utf-8").splitlines()) == len(lines)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("translate", "--sample"), "--sample: CTranslate2 has no generator of its own for each line; leave it out, or give the run that "),
        (("translate", "--no-repeat-ngram", "3"), "--no-repeat-ngram: only mt's own searches know it"),
        (("translate", "--checkpoint", "last"), "--checkpoint last: "),
        (
            ("translate", "--precision", "fp16", "--device", "cpu"),
            "precision fp16: CTranslate2 does not compute in float16",
        ),
        (("score", "--src", "{file}", "--tgt", "{file}"), "is exported for CTranslate2, which can only translate here; give the run"),
        (("average", "--last", "2"), "is a run as it was exported for another program"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_what_an_export_cannot_is_one_line(exported: Exported, words: tuple[str, ...], says: str) -> None:
    command, *options = (word.format(file=exported.home / "test.src") for word in words)
    done = mt(command, "--model", exported.folder, *options, stdin=b"kane .\n")
    assert done.code == 2
    assert len(done.err) == 1
    assert says in done.err[0]


def test_where_too_much_differs_nothing_is_left(exported: Exported, tmp_path: Path) -> None:
    done = mt("export", "ct2", exported.run.path, tmp_path / "out", "--quantization", "int8", "--tolerance", "0")
    assert done.code == 2
    assert "lines differ, more than 0 %; " in done.err[-1]
    assert done.err[-1].endswith("--tolerance N lets N per cent differ, --no-proof asks nothing")
    assert list(tmp_path.iterdir()) == []


def test_the_mean_of_the_newest_is_that_of_mt_average(exported: Exported, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(exported.run.path, run)
    assert mt("export", "ct2", run, tmp_path / "mean", "--average", "2", "--no-proof").code == 0
    assert facts(tmp_path / "mean")["checkpoints"] == ["step-00000002", "step-00000003"]
    assert mt("average", "--model", run, "--last", "2", "--device", "cpu").code == 0
    assert mt("export", "ct2", run, tmp_path / "kept", "--checkpoint", "average", "--no-proof").code == 0
    weights = [(folder / "model.bin").read_bytes() for folder in (tmp_path / "mean", tmp_path / "kept", exported.folder)]
    assert weights[0] == weights[1] != weights[2]
    many = mt("export", "ct2", run, tmp_path / "many", "--average", "9")
    assert (many.code, many.err) == (2, [f"--average 9: {run} has 3 checkpoints (train.keep says how many stay); ask for fewer"])
    both = mt("export", "ct2", run, tmp_path / "both", "--average", "2", "--checkpoint", "1")
    assert (both.code, both.err) == (2, ["--average 2 is the mean of the last checkpoints; leave out --checkpoint 1"])


def test_a_sample_of_ones_own(exported: Exported, tmp_path: Path) -> None:
    source, ref = exported.home / "test.src", exported.home / "test.trg"
    done = mt("export", "ct2", exported.run.path, tmp_path / "out", "--proof-src", source, "--proof-ref", ref, "--tolerance", "5")
    assert done.code == 0
    assert done.err[0].startswith("proof: 41 lines of test.src, ")
    assert "BLEU" in done.err[1]
    for words, says in (
        (("--proof-ref", ref), "--proof-ref goes with --proof-src FILE: add it"),
        (("--no-proof", "--tolerance", "1"), "--tolerance and --no-proof: give one of the two"),
        (("--proof-src", tmp_path / "none"), f"--proof-src {tmp_path / 'none'}: no such file"),
    ):
        done = mt("export", "ct2", exported.run.path, tmp_path / "other", *words)
        assert done.code == 2
        assert done.err[-1].startswith(says)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_without_any_data_it_is_said_and_written(exported: Exported, tmp_path: Path) -> None:
    (tmp_path / "taught").mkdir()
    run = tmp_path / "run"
    shutil.copytree(exported.run.path, run)
    config = (run / "config.yaml").read_text(encoding="utf-8").replace("valid.", "gone.")
    (run / "config.yaml").write_text(config, encoding="utf-8")
    done = mt("export", "ct2", run, tmp_path / "out")
    assert done.code == 0
    told, written = done.err
    assert told.startswith("proof: none, ")
    assert written == f"written: {tmp_path / 'out'}; to use it: mt translate --model {tmp_path / 'out'} --input FILE"
    assert facts(tmp_path / "out")["proof"] is None


def test_what_the_run_asks_for_and_the_export_cannot_is_said(exported: Exported, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(exported.run.path, run)
    config = (run / "config.yaml").read_text(encoding="utf-8").replace("retry_loops: false", "retry_loops: true")
    (run / "config.yaml").write_text(config, encoding="utf-8")
    done = mt("export", "ct2", run, tmp_path / "out", "--no-proof")
    assert (done.code, done.err[:-1]) == (0, ["decode.retry_loops is not in the export: only mt's own searches know it"])
    assert mt("translate", "--model", tmp_path / "out", stdin=b"kane .\n").code == 0
