"""Slips of the keyboard and of YAML: one line with what was probably meant, at once, before anything is made."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mt.config.load import load
from mt.errors import ConfigError


@pytest.mark.parametrize(
    ("key", "value", "most"),
    [
        ("model.dim", "1000000000", 65536),
        ("model.dim", "9" * 30, 65536),
        ("model.encoder_layers", "1000000", 1000),
        ("tokenizer.vocab_size", "3000000000", 2_000_000),
        ("train.batch_tokens", "1e12", 100_000_000),
        ("train.accumulate", "1e9", 100_000),
        ("data.workers", "100", 64),
        ("decode.beam", "1000000", 10_000),
        ("train.max_updates", "1e15", 1_000_000_000),
    ],
)
def test_sizes_that_nobody_can_mean_are_refused(problems, key: str, value: str, most: int) -> None:
    (line,) = problems("", f"{key}={value}")
    assert line.startswith(f"--set {key}: should be at most {most}, is ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "data: {train: [{src: a, tgt: b}], dev: none, test: {src: a, tgt: b}}",
            ["x.yaml:1: data.test: test sets have names; write test: {NAME: {src: test.en, tgt: test.de}}"],
        ),
        (
            "data: {train: [{src:a, tgt:b}], dev: none}",
            [
                f"x.yaml:1: data.train.0.{side}: put a space after the colon: `{side}: {file}`"
                for side, file in (("src", "a"), ("tgt", "b"))
            ],
        ),
        (
            "data: {train: {src: a, tgt: b}, dev: none}",
            [
                "x.yaml:1: data.train: should be a list, not a group of settings; write [{src: train.en, tgt: train.de}], "
                "or begin each item with `- `"
            ],
        ),
        (
            "data: {train: [{src: a, tgt: b}], dev: none}\ntrain:\n  max_updates:100\n",
            ["x.yaml:2: train: should be a group of settings (name: value), not 'max_updates:100'; put a space after the colon"],
        ),
        (
            "data: {train: [{src: a, tgt: b}], dev: none}\ntrain:\n  seed: 1\n  max_updates:100\n",
            ["x.yaml:5: not valid YAML: a line without a setting; is there a space after each colon?"],
        ),
        (
            "data: {train: [{file: corpus.tsv.gz}], dev: none}",
            ["x.yaml:1: data.train.0.file: unknown key, did you mean `data.train.0.tsv`?"],
        ),
        (
            "data: {train: [{tsv: a.tsv, columns: [English, German]}], dev: none}",
            [
                "x.yaml:1: data.train.0.columns: columns of a TSV are numbers from 0; to choose them by the names in its first line, "
                'read it with csv and separator: "\\t"'
            ],
        ),
        (
            "data: {langs: {src: en, tgt: de}, train: [{tsv: a.tsv}], dev: none}",
            ["x.yaml:1: data.langs: stands at the top level, outside data"],
        ),
        (
            "train: [{src: a, tgt: b}]\ndata: {dev: none}",
            ["x.yaml:1: train: is how to train, a group of settings, not a list; did you mean `data.train`?"],
        ),
        (
            "langs: en-nl\ndata: {train: [{tsv: a.tsv}], dev: none}",
            ["x.yaml:1: langs: should be a group of settings (name: value), not 'en-nl'; write {src: en, tgt: nl}"],
        ),
        (
            "langs: [en, nl]\ndata: {train: [{tsv: a.tsv}], dev: none}",
            ["x.yaml:1: langs: should be a group of settings (name: value), not a list; write {src: en, tgt: nl}"],
        ),
        (
            "langs: english\ndata: {train: [{tsv: a.tsv}], dev: none}",
            ["x.yaml:1: langs: should be a group of settings (name: value), not 'english'; write {src: en, tgt: de}"],
        ),
    ],
    ids=[
        "test without a name",
        "no space",
        "no list",
        "no space in a group",
        "no space after others",
        "file",
        "named columns",
        "langs in data",
        "train not in data",
        "langs with a hyphen",
        "a list of langs",
        "one language",
    ],
)
def test_a_slip_is_told_with_what_was_meant(problems, text: str, expected: list[str]) -> None:
    assert problems(text, data=False) == expected


def test_a_file_of_no_kind_is_told_what_there_is(problems) -> None:
    first, *_ = problems("data: {train: [{file: corpus.txt}], dev: none}", data=False)
    assert first.startswith("x.yaml:1: data.train.0.file: unknown key; name what it is: tsv, csv, ")


def test_a_name_with_a_colon_is_a_name(read) -> None:
    assert list(read("data: {train: [{src: a, tgt: b}], dev: none, test: {wmt:24: {src: c, tgt: d}}}", data=False).config.data.test) == [
        "wmt:24"
    ]


def test_a_key_of_hundreds_of_levels_is_one_line(problems) -> None:
    (line,) = problems("", f"{'a.' * 400}b=1")
    assert line.endswith("…: nested more than 32 deep; there is no such setting")
    assert len(line) < 200


def test_a_list_without_end_is_one_line_at_once(problems) -> None:
    began = time.process_time()
    assert problems(f"foo: [{'a,' * 500_000}]") == ["x.yaml:2: not valid YAML: more than 20000 names and values; is it a config, or data?"]
    assert time.process_time() - began < 20


def test_paths_that_are_not_utf8_are_refused(folder: Path, problems, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could not be written into the config of the run."""
    strange = folder / os.fsdecode(b"caf\xe9")
    strange.mkdir()
    (folder / "x.yaml").write_text("data: {train: [{src: t, tgt: u}], dev: none}", encoding="utf-8")
    assert problems("", f"run_dir={strange}") == ["--set run_dir: byte 0xE9 is not UTF-8; write it as UTF-8, or rename the file it names"]
    monkeypatch.chdir(strange)
    with pytest.raises(ConfigError, match=r"caf\\udce9/runs/x: the name of this path is not UTF-8; rename the folder$"):
        load(folder / "x.yaml")
