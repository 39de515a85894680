"""What a dry run says of a run, and that nothing is left of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mt.launch import dry_run
from mt.launch.dry_run import end_of, speed_lines, time_warnings
from mt.launch.prepare import Prepared
from mt.launch.rehearsal import Speed
from mt.rundir import RunDir
from tests import toy
from tests.runs import Done, four_updates, mt, prepared, train, tree

MEASURED = Speed(updates=9, seconds=2.0, tokens=100.0, peak=2**30)
"""Two seconds an update."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A folder with a corpus, of which one pair is dropped, and what a dry run says of it."""
    folder = tmp_path_factory.mktemp("dry")
    toy.write_corpus(folder, train=60, dev=40, test=3)
    with (folder / "train.src").open("a") as src, (folder / "train.trg").open("a") as tgt:
        src.write("\n")
        tgt.write("bage .\n")
    config = four_updates(folder, "train.freeze=[encoder]")
    before = tree(folder)
    done = train(config, dry_run=True)
    assert tree(folder) == before
    return folder, done


def line_of(done: Done, start: str) -> str:
    (line,) = [line for line in done.lines if line.startswith(start)]
    return line


def test_nothing_is_left_but_what_is_in_the_cache(told: tuple[Path, Done]) -> None:
    folder, done = told
    assert done.code == 0
    assert not (folder / "run").exists()
    assert line_of(done, "dry run: ").startswith("dry run: leaves nothing but tokenizer and prepared pairs in the cache, /")


def test_all_that_a_run_takes_is_told(told: tuple[Path, Done]) -> None:
    done = told[1]
    total, trained, *parts = map(int, re.findall(r"\d+", line_of(done, "parameters: ")))
    assert sum(parts) == total
    assert total - parts[1] == trained
    assert line_of(done, "pairs: ").startswith("pairs: 60 kept, 1 dropped, ")
    assert line_of(done, "pairs: ").endswith(" updates an epoch, 4 updates in the run")
    assert re.fullmatch(
        r"memory: [\d.]+ MiB by arithmetic: weights .* MiB, gradients and optimiser .* MiB, activations .* MiB for the largest batch .*",
        next(line for line in done.lines if line.startswith("memory: ")),
    )
    assert re.match(r"speed: \d+ target tokens/s, measured over \d+ updates?$", line_of(done, "speed: "))
    assert re.match(r"time: an epoch takes .*, the run until update 4 .*, 2 validations of .* among it, if early", line_of(done, "time: "))
    assert re.match(r"disk: checkpoints of .* each, up to .*; prepared pairs .* in the cache; .* are free", line_of(done, "disk: "))
    assert line_of(done, "CTranslate2: ") == "CTranslate2: can hold it, as its Transformer"
    assert line_of(done, "Hugging Face: ").endswith("PegasusForConditionalGeneration")


def test_a_run_that_is_there_is_told_and_stays(folder: Path) -> None:
    assert train(four_updates(folder)).code == 0
    before = tree(folder / "run")
    done = train(four_updates(folder), dry_run=True)
    assert line_of(done, f"warning: {folder / 'run'}: ").startswith(f"warning: {folder / 'run'}: there is a run here; ")
    assert not train(four_updates(folder), dry_run=True, overwrite=True).says("there is a run here")
    assert tree(folder / "run") == before
    assert RunDir(folder / "run").is_whole()


def test_a_run_that_goes_on_is_no_dry_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy.config_file(folder)
    done = mt("train", "--config", folder / "toy.yaml", "--dry-run", "--resume", capsys=capsys)
    assert (done.code, len(done.lines)) == (2, 1)
    assert done.says("--dry-run looks at a run before it begins, --resume goes on with one: give one of them")


def test_what_another_program_cannot_hold_is_told_when_training_starts(folder: Path) -> None:
    done = train(four_updates(folder, "model.norm_kind=rms", "data.dev=none"))
    assert done.says("Hugging Face: cannot hold it: model.norm_kind rms, ")
    assert not done.says("CTranslate2")


def test_a_model_that_does_not_fit_into_memory_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "memory_of", lambda _: 2**16)
    assert train(four_updates(folder), dry_run=True).says("warning: memory: cpu has 0.1 MiB; lower train.batch_tokens")


# ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def ready(folder: Path, *overrides: str) -> tuple[Prepared, Any]:
    """A run, and the config it was made from."""
    config = toy.config(folder, *toy.TINY, "train.validation.every=10", *overrides)
    return prepared(config), config


def test_the_first_limit_ends_it_and_validations_take_of_the_minutes(folder: Path) -> None:
    one, _ = ready(folder, "train.max_updates=1000")
    assert end_of(one, MEASURED, 20.0) == 1000
    one, _ = ready(folder, "train.max_updates=1000", "train.max_minutes=10")
    assert end_of(one, MEASURED, 0.0) == 300
    assert end_of(one, MEASURED, 10.0) == 200
    (*_, line) = speed_lines(one, MEASURED, 10.0, ranks=1)
    assert "the run until update 200 10 minutes, 20 validations of 10 seconds among it" in line


def test_the_last_update_of_an_epoch_takes_what_is_left(folder: Path) -> None:
    whole, some = (ready(folder, f"train.accumulate={count}")[0] for count in (100_000, 3))
    assert (whole.updates_per_epoch, whole.micro_batches) == (1, whole.epoch.batches)
    assert some.updates_per_epoch * some.micro_batches == pytest.approx(some.epoch.batches)
    assert 1 < some.micro_batches <= 3


@pytest.mark.parametrize(("warmup", "warned"), [(400, True), (200, False)])
def test_a_warm_up_that_the_minutes_cut_off(folder: Path, warmup: int, warned: bool) -> None:
    one, asked = ready(folder, "train.max_updates=1000", "train.max_minutes=10", f"train.schedule.warmup={warmup}")
    told = [line.split(" will")[0] for line in time_warnings(one, asked, MEASURED, 0.0)]
    assert told == ["at this speed the warm-up of 400 updates"] * warned


def test_a_warm_up_that_the_config_tells_of_is_not_told_twice(folder: Path) -> None:
    one, asked = ready(folder, "train.max_updates=30", "train.schedule.warmup=40")
    assert [*time_warnings(one, asked, MEASURED, 0.0)] == []


@pytest.mark.parametrize(("seconds", "warned"), [(6.0, True), (4.0, False)])
def test_validations_that_take_more_than_a_fifth_of_the_time(folder: Path, seconds: float, warned: bool) -> None:
    one, asked = ready(folder, "train.max_updates=1000")
    lines = [*time_warnings(one, asked, MEASURED, seconds)]
    assert lines == ["validation takes 23% of the time; set train.validation.every=12 or so, or lower train.validation.max_lines"] * warned
