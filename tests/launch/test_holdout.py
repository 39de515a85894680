"""Dev and test set out of the training corpora: no leak is left, the same whatever the order, found again, and the same on resume."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from mt.config.load import load
from mt.config.schema import Config, TextFiles
from mt.doctor.doctor import Doctor
from mt.doctor.leakage import HeldOut, Leaks
from mt.errors import DataError
from mt.formats.readers import read_held_out
from mt.launch.ahead import data_of_config
from mt.launch.combine import average_run
from mt.launch.inputs import open_store
from mt.rundir import RunDir
from tests import toy
from tests.runs import Done, contents, differences, journal, train

pytestmark = pytest.mark.usefixtures("quiet")

COUNT = 400
SHORT = (*toy.TINY, "train.max_updates=4", "train.save_every=2", "train.validation={every: 2, samples: 1, max_lines: 5}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus in which sources, targets and pairs come again, and settings without a dev set."""
    lines = toy.sentences(COUNT, longest=5)
    pairs = [(line, toy.translation(line)) for line in lines]
    pairs += [(src.upper(), f"{tgt} {tgt}") for src, tgt in pairs[:40]]
    pairs += [(f"{src} {src}", tgt.title()) for src, tgt in pairs[20:60]]
    write(tmp_path, random.Random(1).sample(pairs, len(pairs)))
    (tmp_path / "toy.yaml").write_text(toy.config_text().replace("  dev: {src: valid.src, tgt: valid.trg}\n", ""), encoding="utf-8")
    return tmp_path


def write(folder: Path, pairs: list[tuple[str, str]], name: str = "train") -> None:
    for side, suffix in enumerate(("src", "trg")):
        toy.write_lines(folder / f"{name}.{suffix}", [pair[side] for pair in pairs])


def settings(folder: Path, *overrides: str, name: str = "run") -> Config:
    return load(folder / "toy.yaml", [*SHORT, f"run_dir={folder / name}", f"data.cache={folder / 'cache'}", *overrides]).config


def go(folder: Path, *overrides: str, name: str = "run", **flags: Any) -> tuple[RunDir, Done]:
    return RunDir(folder / name), train(settings(folder, *overrides, name=name), **flags)


def sets(run: RunDir) -> dict[str, tuple[str, str]]:
    """The texts of the two sides of both sets."""
    return {
        part: ((run.split / f"{part}.src").read_text("utf-8"), (run.split / f"{part}.tgt").read_text("utf-8")) for part in ("dev", "test")
    }


# ── no leak ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_that_is_trained_on_is_in_the_held_out_sets_or_like_them(folder: Path) -> None:
    run, done = go(folder)
    data = load(run.config).config.data
    held_out = {name: read_held_out(corpus) for name, corpus in {**data.dev_sets(), **data.test}.items()}
    assert list(held_out) == ["dev", "test"]
    index = HeldOut(held_out)
    trained_on = list(open_store(run).pairs())
    src, tgt = [pair.src for pair in trained_on], [pair.tgt for pair in trained_on]
    assert len(trained_on) > COUNT / 3
    assert Leaks(index).look(src, tgt, trained_on.__getitem__) == []
    for name, pairs in held_out.items():
        src, tgt = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
        assert Leaks(index).look(src, tgt, pairs.__getitem__, own=index.sets[name]) == []
    dropped = {entry["reason"]: entry["count"] for entry in json.loads(run.filtered.read_text("utf-8"))["all"]["dropped"]}
    assert dropped["held out"] >= sum(map(len, held_out.values()))
    assert dropped["like a held-out pair"] > 0
    assert done.says(f"dev set: {len(held_out['dev'])} pairs held out, 20 % by fingerprint; data/split/dev.src and dev.tgt of the run")
    assert json.loads(run.test_scores.read_text("utf-8"))["test"]["corpus"] == "test"


def test_the_doctor_finds_none_with_the_config_of_the_run(folder: Path) -> None:
    run, _ = go(folder)
    diagnosis = Doctor(load(run.config).config).examine()
    assert {name: met["met"] for name, met in diagnosis.leakage.items()} == {"dev": 0, "test": 0}
    assert "leakage" not in {finding.kind for finding in diagnosis.findings}


def test_synthetic_corpora_are_not_held_out_of_and_lose_what_is_like_the_sets(folder: Path) -> None:
    lines = (folder / "train.src").read_text("utf-8").splitlines(), (folder / "train.trg").read_text("utf-8").splitlines()
    write(folder, list(zip([f"{line} badu" for line in lines[0]], lines[1], strict=True)), "made")
    run, _ = go(folder, f"data.train.1={{src: {folder}/made.src, tgt: {folder}/made.trg, synthetic: true}}")
    alone, _ = go(folder, name="alone")
    assert sets(run) == sets(alone)
    pairs = list(open_store(run).pairs())
    targets = set(sets(run)["dev"][1].splitlines())
    assert any(pair.src.endswith("badu") for pair in pairs)
    assert not any(pair.tgt in targets for pair in pairs)


def test_each_direction_has_a_dev_set_of_its_own(folder: Path) -> None:
    ways = [{"src": "train.src", "tgt": "train.trg"}, {"src": "train.trg", "tgt": "train.src"}]
    langs = [{"src": "en", "tgt": "de"}, {"src": "de", "tgt": "en"}]
    corpora = [{**{k: str(folder / v) for k, v in way.items()}, "langs": both} for way, both in zip(ways, langs, strict=True)]
    run, _ = go(folder, f"data.train={json.dumps(corpora)}")
    data = load(run.config).config.data
    assert sorted(data.dev_sets()) == ["dev.de-en", "dev.en-de"]
    assert sorted(data.test) == ["test.de-en", "test.en-de"]
    assert all(corpus.langs and corpus.paths()[0].name.endswith(corpus.langs.src) for corpus in data.dev_sets().values())


# ── the same again ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_order_does_not_matter(folder: Path) -> None:
    first, _ = go(folder)
    lines = [(folder / f"train.{side}").read_text("utf-8").splitlines() for side in ("src", "trg")]
    pairs = list(zip(*lines, strict=True))
    write(folder, random.Random(2).sample(pairs, len(pairs)))
    second, _ = go(folder, name="second")
    assert sets(first) == sets(second)


def test_a_second_run_and_what_is_made_ahead_find_it_in_the_cache(folder: Path, made: list[str]) -> None:
    data_of_config(folder / "toy.yaml", [*SHORT, f"data.cache={folder / 'cache'}"], say=lambda _: None)
    assert made == ["tokenizer", "store"]
    first, one = go(folder, name="first")
    second, two = go(folder, name="second")
    assert made == ["tokenizer", "store"]
    assert sets(first) == sets(second)
    assert [line.replace(str(second.path), str(first.path)) for line in two.lines] == one.lines
    assert len(list((folder / "cache" / "splits").iterdir())) == 1


def test_resumed_is_uninterrupted(folder: Path) -> None:
    whole, _ = go(folder, name="whole")
    part, _ = go(folder, "train.max_updates=2", name="part")
    shutil.rmtree(folder / "cache")
    assert go(folder, name="part", resume=True)[1].code == 0
    assert sets(whole) == sets(part)
    assert differences(contents(whole.step(4)), contents(part.step(4))) == []
    assert [line for line in journal(whole) if line["event"] == "update"] == [line for line in journal(part) if line["event"] == "update"]


def test_resumed_with_another_share_is_refused(folder: Path) -> None:
    go(folder, "train.max_updates=2")
    with pytest.raises(Exception, match=r"data\.split\.dev changed: 0\.2 before, 0\.1 now"):
        go(folder, "data.split.dev=0.1", resume=True)


def test_a_run_that_was_moved_finds_its_sets(folder: Path) -> None:
    run, _ = go(folder, "train.max_updates=2")
    run.path.rename(folder / "moved")
    moved, done = go(folder, name="moved", resume=True)
    assert done.code == 0
    lines: list[str] = []
    average_run(moved.path, last=2, best=None, checkpoints=(), output="mean", weights=None, device="cpu", say=lines.append)
    assert lines[-1].startswith("mean: loss")


# ── what is asked for ───────────────────────────────────────────────────────────────────────────────────────────────


def test_with_a_test_set_only_a_dev_set_is_held_out(folder: Path) -> None:
    toy.write_corpus(folder / "other", train=1, dev=1, test=3)
    run, _ = go(folder, f"data.test.mine={{src: {folder}/other/test.src, tgt: {folder}/other/test.trg}}")
    data = load(run.config).config.data
    assert list(data.test) == ["mine"]
    assert data.split is not None
    assert data.split.test == 0
    assert isinstance(data.dev, TextFiles)
    assert not (run.split / "test.src").exists()


def test_without_dev_set_on_request_nothing_is_held_out(folder: Path) -> None:
    run, done = go(folder, "data.dev=none")
    assert not run.split.exists()
    assert len(open_store(run)) == COUNT + 80
    assert not done.says("held out")


def test_the_config_of_a_run_makes_the_same_run(folder: Path) -> None:
    run, _ = go(folder)
    again = load(run.config, [f"run_dir={folder / 'again'}"]).config
    assert train(again).code == 0
    assert open_store(RunDir(folder / "again")).path == open_store(run).path


@pytest.mark.parametrize(
    ("pairs", "override", "problem"),
    [
        (1, "data.split.dev=0.01", r"data\.dev: 1 pair is too few to hold 1 % of them out"),
        (2, "data.split.dev=0.01", r"data\.dev: 2 pairs are too few to hold 1 % of them out; give data\.dev, or `dev: none` to train"),
        (
            400,
            "data.split.test=1e-6",
            r"data\.test: 400 pairs are too few to hold 0\.0001 % of them out; give data\.test, or set data\.split",
        ),
        (
            400,
            "data.train.0.synthetic=true",
            r"data\.dev: nothing can be held out, as the source of every training pair was made by a model",
        ),
    ],
)
def test_what_cannot_be_held_out_is_a_line(folder: Path, pairs: int, override: str, problem: str) -> None:
    write(folder, [(line, toy.translation(line)) for line in toy.sentences(pairs)])
    with pytest.raises(DataError, match=problem):
        go(folder, override)
    assert not (folder / "run").exists()


def test_a_dry_run_leaves_nothing(folder: Path) -> None:
    _, done = go(folder, dry_run=True)
    assert done.says("dev set: ")
    assert not (folder / "run").exists()
