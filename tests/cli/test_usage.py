"""Usage that is wrong in the usual ways is told with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import mt


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["train", "my.yaml"], "Missing option '--config'; write --config my.yaml"),
        (["data", "prepare", "my.yml"], "Missing option '--config'; write --config my.yml"),
        (["data", "check", "my.yaml"], "; write --config my.yaml"),
        (["train", "--config", "my.yaml", "--set", "train.seed", "2"], "(2); write --set train.seed=2"),
        (["config", "show", "my.yaml", "--set", "train.seed", "2"], "(2); write --set train.seed=2"),
        (["train", "-c", "my.yaml"], "; write --config my.yaml"),
        (["train", "--config", "my.yaml", "train.seed=2"], "; write --set train.seed=2"),
        (["train", "--config", "my.yaml", "--max-minutes", "1"], "; write --set train.max_minutes=1"),
        (["train", "--config", "my.yaml", "--batch-size=1"], "; write --set train.batch_tokens=1"),
        (["train", "--src", "a.en", "--tgt", "a.de"], "; name the files in the config, under data.train"),
        (["train", "--model", "runs/my"], "--init-from RUN starts from its weights"),
        (["train"], "; --config FILE: Settings, in YAML; see `mt config explain`."),
        (["translate", "a.en"], "; --model RUN: Run directory that `mt train` wrote; several are an ensemble."),
        (["translate", "--model", "runs/my", "--src", "a.en"], "; write --input a.en"),
        (["translate", "--config", "my.yaml", "--input", "a.en"], "; write --model RUN"),
        (["eval", "--model", "runs/my", "--src", "a.en", "--tgt", "a.de"], "; write --ref a.de"),
        (["distill", "--model", "runs/my", "--input", "a.en"], "; write --src a.en"),
        (["data", "check", "a.en", "a.de"], "; write --src a.en --tgt a.de"),
        (["config", "show", "--config", "my.yaml"], "; write the file alone: my.yaml"),
        (["my.yaml"], "; write mt train --config my.yaml"),
        (["config", "my.yaml"], "; write mt config show my.yaml"),
        (["check", "--config", "my.yaml"], "; write mt data check"),
        (["help"], "; write mt --help"),
        (["export", "--model", "runs/my", "--output", "my-ct2", "--format", "ctranslate2"], "; write mt export ct2 runs/my my-ct2"),
        (["export", "--format=hf", "--model=runs/my"], "; write mt export hf runs/my OUT"),
        (["export", "runs/my", "my-ct2"], "; write mt export ct2 runs/my my-ct2"),
        (["export", "ctranslate2", "runs/my", "my-ct2"], "; write mt export ct2 runs/my my-ct2"),
        (["export", "ct", "runs/my", "my-ct2"], "Did you mean 'ct2'?"),
        (["export", "ct2", "--model", "runs/my", "--output", "my-ct2"], "; write mt export ct2 runs/my my-ct2"),
        (["export", "ct2", "runs/my"], "; OUT: Folder for the model; must not be there yet, or be empty."),
        (["config", "show", "my.yaml", "--set", "train.lr", "=", "5e-4"], "; write --set train.lr=5e-4"),
        (["config", "show", "my.yaml", "--set", "train.lr=", "5e-4"], "; write --set train.lr=5e-4"),
        (["config", "show", "my.yaml", "--set", "train.lr", "=5e-4"], "; write --set train.lr=5e-4"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_the_cure_is_named(words: list[str], cure: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = mt(*words, capsys=capsys)
    assert done.code == 2
    assert done.lines[-1].endswith(cure)


def test_other_mistakes_keep_their_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = mt("train", "--config", tmp_path / "x.yaml", "--no-such-option", capsys=capsys)
    assert done.code == 2
    assert "--no-such-option" in done.lines[-1]
    assert "write" not in done.lines[-1]


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("translate --model x --beam 0", "--beam: "),
        ("translate --model x --format foo", "--format: "),
        ("eval --model x --beam wide", "--beam: "),
    ],
)
def test_a_value_that_an_option_does_not_take_is_told_in_one_line(words: str, start: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = mt(*words.split(), capsys=capsys)
    assert done.code == 2
    assert len(done.lines) == 1
    assert done.lines[0].startswith(start)


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("train --config none.yaml", "--config none.yaml: there is no such file"),
        ("translate --model none", "--model none: no such folder"),
        ("translate --model . --input none.en", "--input none.en: no such file"),
        ("eval --hyp here.de --ref here.de --ref none.de", "--ref none.de: no such file"),
        ("data check --src here.de --tgt none.de", "--tgt none.de: no such file"),
        ("export ct2 none out", "none: no such folder"),
        ("translate --model here.de --input here.de", "here.de: "),
    ],
)
def test_a_path_at_which_nothing_is_is_named_with_its_option(
    words: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.de").write_text("x\n", encoding="utf-8")
    done = mt(*words.split(), capsys=capsys)
    assert done.code == 2
    assert done.lines[-1].startswith(start)
