"""`mt init`: a config that loads, says why, and trains; nothing is written over; mistakes are one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mt.config.load import load
from tests import toy
from tests.translating import Ended, mt

COUNT = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus whose files tell its languages."""
    folder = tmp_path_factory.mktemp("init")
    sources = toy.sentences(COUNT)
    toy.write_lines(folder / "train.en", sources)
    toy.write_lines(folder / "train.de", map(toy.translation, sources))
    return folder


def init(folder: Path, *words: str | Path) -> Ended:
    """`mt init` in the folder, on its corpus unless another is given, with few updates to measure."""
    files = () if {"--src", "--pairs"} & set(words) else ("--src", "train.en", "--tgt", "train.de")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("mt.launch.rehearsal.ENOUGH", 6)
        return mt("init", *files, *words)


@pytest.fixture(scope="module")
def written(folder: Path) -> Ended:
    """What it says of a run of two minutes; the config is en-de.yaml."""
    return init(folder, "--minutes", "2")


def test_it_says_what_to_run_next(folder: Path, written: Ended) -> None:
    assert written.code == 0
    assert written.lines[0].startswith("en-de.yaml: written, preset tiny")
    assert written.lines[1] == "next: mt train --config en-de.yaml"
    assert written.lines[2] == "then: mt translate --model runs/en-de --input FILE"
    assert f"{COUNT} pairs; source: Latin letters" in written.err[0]
    assert (folder / "en-de.yaml").read_text("utf-8").startswith("# mt train --config en-de.yaml\n")


@pytest.mark.usefixtures("written")
def test_the_config_loads_without_warnings_and_every_setting_has_its_reason(folder: Path) -> None:
    config, warnings = load(folder / "en-de.yaml")
    assert warnings == ()
    assert config.langs
    assert (config.langs.src, config.langs.tgt) == ("en", "de")
    assert config.data.dev is None
    assert config.data.train[0].paths() == [folder / "train.en", folder / "train.de"]
    assert config.train.max_minutes == 2
    assert config.train.max_epochs or config.train.max_updates  # how many, the speed of this machine decides
    settings = [line for line in (folder / "en-de.yaml").read_text("utf-8").splitlines() if re.match(r"  [a-z_]+: ", line)]
    assert len(settings) > 12
    assert all(re.search(r"  ?# \S", line) for line in settings if "train: [" not in line)


@pytest.mark.usefixtures("written")
def test_it_trains_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    overrides = ("train.max_epochs=1", "train.validation={every: 2, samples: 0, max_lines: 5}", "decode.max_length_factor=0.5")
    done = mt("train", "--config", "en-de.yaml", *(word for override in overrides for word in ("--set", override)))
    assert done.code == 0
    assert any("dev set: " in line for line in done.err)
    assert mt("translate", "--model", "runs/en-de", stdin=b"bedo\n").code == 0


@pytest.mark.usefixtures("written")
def test_nothing_is_written_over_without_force(folder: Path) -> None:
    (folder / "mine.yaml").write_text("mine", encoding="utf-8")
    done = init(folder, "--output", "mine.yaml")
    assert (done.code, done.err) == (2, ["mine.yaml: is there already; add --force to write over it, or give another --output"])
    assert (folder / "mine.yaml").read_text("utf-8") == "mine"
    assert init(folder, "--output", "mine.yaml", "--force", "--minutes", "1").code == 0
    assert load(folder / "mine.yaml").config.train.max_minutes == 1


def test_a_corpus_in_one_file_and_a_dev_set(folder: Path, tmp_path: Path) -> None:
    lines = toy.sentences(60)
    toy.write_lines(tmp_path / "all.tsv", (f"{line}\t{toy.translation(line)}" for line in lines))
    (tmp_path / "configs").mkdir()
    words = ("--pairs", "all.tsv", "--src-lang", "en", "--tgt-lang", "de", "--output", "configs/my.yaml", "--minutes", "1")
    done = init(tmp_path, *words, "--dev-src", folder / "train.en", "--dev-tgt", folder / "train.de")
    assert done.code == 0
    config = load(tmp_path / "configs" / "my.yaml").config
    assert [corpus.paths() for corpus in config.data.train] == [[tmp_path / "all.tsv"]]
    assert config.data.dev_sets()["train.en"].paths()[0] == folder / "train.en"
    assert config.langs
    assert config.langs.tgt == "de"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--src", "train.en"), "one side is missing: add --tgt FILE"),
        (("--src", "no.en", "--tgt", "train.de"), "--src no.en: no such file"),
        (("--src", "empty.en", "--tgt", "empty.de"), "empty.en: is empty, there are no pairs in it"),
        (("--src", "short.en", "--tgt", "train.de"), f"short.en has 1 line, train.de has {COUNT}: line n of one must translate line n"),
        (("--pairs", "train.en"), "--pairs train.en: its name tells no format"),
        (("--dev-src", "train.en"), "one side is missing: add --dev-tgt FILE"),
        (("--src-lang", "english"), "--src-lang english: is no language code"),
        (("--output", "no/x.yaml"), "--output no/x.yaml: there is no folder no"),
        (("--output", "x.txt"), "--output x.txt: a config ends in .yaml; write x.yaml"),
        (("--output", "folder.yaml", "--force"), "folder.yaml: is there already; give another --output"),
        (("--device", "tpu"), "device tpu: no such device"),
    ],
)
def test_mistakes_are_one_line(folder: Path, words: tuple[str, ...], problem: str) -> None:
    (folder / "folder.yaml").mkdir(exist_ok=True)
    for name in ("empty.en", "empty.de"):
        (folder / name).touch()
    toy.write_lines(folder / "short.en", ["a"])
    before = sorted(folder.iterdir())
    done = init(folder, *words, *(() if "--output" in words else ("--output", "new.yaml")))
    assert done.code == 2
    assert [line for line in done.err if line.startswith(problem)] == done.err[-1:]
    assert done.out == b""
    assert sorted(folder.iterdir()) == before
