"""`mt data check`: exit codes, reports, and options that do not go together."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mt.clean import identify
from mt.cli.app import app
from mt.config.load import load
from mt.errors import ConfigError, DataError, MTError
from mt.extras import install
from mt.launch.sources import training_sources
from tests.corpora import config, pairs, write

GOOD = pairs(60)


def check(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["data", "check", *map(str, words)], catch_exceptions=False)


def files(folder: Path, name: str = "train") -> list[str | Path]:
    return ["--src", folder / f"{name}.en", "--tgt", folder / f"{name}.de"]


@pytest.fixture(autouse=True)
def no_language_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds to load."""

    def missing(*languages: str) -> None:
        raise ConfigError(f"not installed, for {languages}")

    monkeypatch.setattr("mt.doctor.looks.Identifier", missing)
    monkeypatch.setattr("mt.doctor.doctor.installed", lambda: True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "train", GOOD)
    return tmp_path


def test_exit_codes(folder: Path) -> None:
    assert check(*files(folder)).exit_code == 0
    assert check(*files(folder), "--strict").exit_code == 0
    write(folder, "warned", [*GOOD, ("Same.", "Same.")])
    assert check(*files(folder, "warned")).exit_code == 0
    assert check(*files(folder, "warned"), "--strict").exit_code == 1
    write(folder, "bad", [*GOOD, (b"\xe9", "Oh.")])
    assert check(*files(folder, "bad")).exit_code == 2
    assert check(*files(folder, "bad"), "--strict").exit_code == 2


def test_a_config_and_its_files_say_the_same(folder: Path) -> None:
    by_config = check("--config", config(folder, train="{src: train.en, tgt: train.de}"), "--json", "-")
    by_files = check(*files(folder), "--json", "-")
    assert json.loads(by_config.stdout) == json.loads(by_files.stdout)
    assert json.loads(by_config.stdout)["corpora"]["train.en"]["pairs"] == 60


def test_reports_are_written(folder: Path) -> None:
    done = check(*files(folder), "--json", folder / "x.json", "--html", folder / "x.html", "--fix", folder / "clean")
    assert done.stdout.splitlines()[-1] == "0 errors, 0 warnings, 0 notes in 60 pairs"
    assert json.loads((folder / "x.json").read_text(encoding="utf-8"))["findings"] == []
    assert (folder / "x.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (folder / "clean.en").read_text(encoding="utf-8") == (folder / "train.en").read_text(encoding="utf-8")


def test_overrides_reach_the_doctor(folder: Path) -> None:
    path = config(folder, train="{src: train.en, tgt: train.de}")
    assert check("--config", path, "--set", "data.max_pieces=3", "--strict").exit_code == 1


def test_languages_are_told_or_taken_from_the_names(folder: Path) -> None:
    assert check(*files(folder), "--langs", "ru-de").exit_code == 2
    assert check(*files(folder), "--langs", "pt-BR:de").exit_code == 0


def test_a_filter_that_training_would_refuse_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    identify._library.cache_clear()
    path = config(folder, train="{src: train.en, tgt: train.de}")
    with pytest.raises(ConfigError) as trained:
        training_sources(load(path, ["data.filters.languages=0.9"]).config)
    for command in (["data", "check", "--config"], ["config", "show"]):
        with pytest.raises(ConfigError) as told:
            CliRunner().invoke(app, [*command, str(path), "--set", "data.filters.languages=0.9"], catch_exceptions=False)
        assert str(told.value) == str(trained.value)
    assert install("languages") in str(trained.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to examine: give --config FILE, or --src FILE and --tgt FILE"),
        (["--src", "a"], "add --tgt"),
        (["--tgt", "a"], "add --src"),
        (["--config", "x", "--src", "a"], "give one of the two"),
        (["--config", "x", "--langs", "en-de"], "--langs goes with --src"),
        (["--src", "a", "--tgt", "b", "--set", "a=b"], "--set goes with --config"),
        (["--src", "a", "--tgt", "b", "--langs", "english"], "expected two language codes"),
        (["--src", "a", "--tgt", "b", "--langs", "en-pt-BR"], "expected two language codes"),
        (["--src", "a", "--tgt", "b", "--langs", "english-german"], "'english' is no language code; write codes, as in en-de"),
    ],
)
def test_options_that_do_not_go_together(words: list[str], message: str) -> None:
    with pytest.raises(MTError, match=message) as caught:
        check(*words)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_or_written_is_said_before_the_work(folder: Path) -> None:
    with pytest.raises(DataError, match=r"--tgt .*train.dee: no such file; did you mean .*train.de\?"):
        check("--src", folder / "train.en", "--tgt", folder / "train.dee")
    for option in ("--json", "--html", "--fix"):
        with pytest.raises(DataError, match="there is no folder"):
            check(*files(folder), option, folder / "none" / "x")
    with pytest.raises(MTError, match="not a run"):
        check(*files(folder), "--model", folder)
    with pytest.raises(DataError, match="would write over"):
        check(*files(folder), "--fix", folder / "train")
    for option in ("--json", "--html"):
        with pytest.raises(DataError, match=r"train\.de: would be written over, but is one of the files to check"):
            check(*files(folder), option, folder / "train.de")
    with pytest.raises(MTError, match="give one of them another file"):
        check(*files(folder), "--json", "-", "--html", "-")


def test_a_page_on_stdout_is_alone_there(folder: Path) -> None:
    assert check(*files(folder), "--html", "-").stdout.startswith("<!doctype html>")


def test_a_file_whose_name_is_no_text(folder: Path) -> None:
    """Reports and the list of what was left out show its bytes."""
    odd = folder / os.fsdecode(b"caf\xe9.en")
    odd.write_bytes((folder / "train.en").read_bytes() + b"\n")
    with (folder / "train.de").open("a") as file:
        file.write("Leer.\n")
    words = [
        "--json",
        folder / "x.json",
        "--html",
        folder / "x.html",
        "--fix",
        folder / "clean",
        "--src",
        odd,
        "--tgt",
        folder / "train.de",
    ]
    assert "caf\\xe9.en:61" in check(*words).stdout
    assert "caf\\xe9.en:61" in (folder / "x.html").read_text(encoding="utf-8")
    assert r"caf\xe9.en" in json.loads((folder / "x.json").read_text(encoding="utf-8"))["corpora"]
    assert (folder / "clean.dropped.tsv").read_text(encoding="utf-8").startswith("caf\\xe9.en:61\tempty side\t")


def test_pipes_are_refused_at_once(folder: Path) -> None:
    os.mkfifo(folder / "pipe.en")
    with pytest.raises(DataError, match=r"pipe\.en: is a pipe or a device, which gives its text only once; save that to a file"):
        check("--src", folder / "pipe.en", "--tgt", folder / "train.de")
