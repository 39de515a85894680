"""What is in the run directory already: refused, resumed or replaced; and a run that cannot start leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from mt.config.load import load
from mt.errors import ConfigError, DataError, RunError
from mt.launch.derive import longer
from mt.rundir import RunDir
from mt.translator import Translator
from tests.runs import Done, Silent, contents, differences, final_test, four_updates, journal, train, tree

pytestmark = pytest.mark.usefixtures("quiet")


# ── an existing directory ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_not_touched_unless_that_is_asked_for(finished: tuple[Path, Done]) -> None:
    folder = finished[0]
    before = tree(folder / "run")
    with pytest.raises(RunError, match=r"run: there is a run here; go on with --resume, start over with --overwrite"):
        train(four_updates(folder))
    assert tree(folder / "run") == before


def test_overwrite_starts_over(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    assert train(four_updates(folder, run_dir, "train.max_updates=1"), overwrite=True).code == 0
    run = RunDir(tmp_path / "copy")
    assert run.steps() == [1]
    assert not run.reports.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_what_is_no_run_is_left_alone(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "thesis.tex").write_text("x", encoding="utf-8")
    for flags in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(RunError, match=r"run: not a run, but not empty either .it holds thesis.tex."):
            train(four_updates(folder), **flags)
    shutil.rmtree(folder / "run")
    (folder / "run").write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match="run: is a file"):
        train(four_updates(folder))


def test_what_a_killed_preparation_left_is_no_hindrance(folder: Path) -> None:
    run = RunDir(folder / "run")
    run.data.mkdir(parents=True)
    run.lock_file.write_text("999999999", encoding="utf-8")
    for debris in (run.pointer, run.path / "tokenizer.model", run.path / ".config.yaml.0a1b2c3d.partial"):
        debris.write_bytes(b"half")
    assert train(four_updates(folder, "data.dev=none", "train.max_updates=1")).code == 0
    assert {path.name for path in run.path.iterdir()} == {
        *("config.yaml", "tokenizer.model", "data", "starts.jsonl", "journal.jsonl", "tensorboard", "checkpoints")
    }


def test_a_run_in_use_is_refused(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    run = RunDir(tmp_path / "copy")
    with run.lock():
        before = tree(run.path)
        for flags in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(RunError, match=f"in use by process {os.getpid()}"):
                train(four_updates(folder, final_test(folder), run_dir), **flags)
        assert tree(run.path) == before


def test_a_run_whose_replacement_was_killed_is_there_again(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    run = RunDir(tmp_path / "copy")
    before = tree(run.path)
    run.replacing.mkdir()  # killed after the first file was put aside
    run.config.rename(run.replacing / run.config.name)
    with pytest.raises(RunError, match="copy: there is a run here; go on with --resume"):
        train(four_updates(folder, final_test(folder), run_dir))
    assert tree(run.path) == before


# ── resume ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_finished_run_says_so(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    run = RunDir(tmp_path / "copy")
    before = {name: content for name, content in tree(run.path).items() if not name.startswith("reports")}
    done = train(four_updates(folder, final_test(folder), run_dir), resume=True)
    assert done.code == 0
    assert done.says("is finished already (the limit of 4 updates); to train longer: --resume --set train.max_updates=…")
    assert not done.says("BLEU")
    assert {name: content for name, content in tree(run.path).items() if not name.startswith("reports")} == before | {
        "config.yaml": run.config.read_bytes()
    }


def test_a_run_that_is_past_a_lower_limit_names_the_limit(copied: tuple[Path, str]) -> None:
    folder, run_dir = copied
    done = train(four_updates(folder, final_test(folder), run_dir, "train.max_updates=2"), resume=True)
    assert done.says("is finished already (the limit of 2 updates)")


@pytest.mark.parametrize(
    ("at_first", "later", "more"),
    [
        ("train.max_updates=6", "train.max_updates=2", ", or more"),
        ("train.max_minutes=7", "train.max_minutes=1e-5", ", or more"),
        ("train.max_minutes=null", "train.max_minutes=1e-5", ""),
    ],
)
def test_a_run_that_was_to_go_on_names_the_limit_it_had(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at_first: str, later: str, more: str
) -> None:
    """One that was given on the command line, and is not given again."""
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent(lambda update: update == 3 and os.kill(os.getpid(), signal.SIGTERM)))
    assert train(four_updates(folder, "data.dev=none", at_first)).code == 143
    done = train(four_updates(folder, "data.dev=none", later), resume=True)
    assert done.code == 0
    told = [line.split("; ", 1)[1] for line in done.lines if "is finished already" in line]
    assert told == [f"the run had {at_first} before; to go on: --resume --set {at_first}{more}"]


def test_a_run_that_ends_before_its_first_validation_is_scored_by_its_last_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent(lambda _: os.kill(os.getpid(), signal.SIGTERM)))
    assert train(four_updates(folder, final_test(folder))).code == 143
    done = train(four_updates(folder, final_test(folder), "train.max_updates=1"), resume=True)
    assert (done.code, RunDir(folder / "run").names()) == (0, {"last": "step-00000001"})
    assert done.says("final: BLEU ")
    assert done.lines[-1] == f"translate with: mt translate --model {folder / 'run'} --checkpoint last --input FILE"


@pytest.mark.parametrize(
    ("setting", "why", "cure"),
    [
        ("train.max_minutes=3", "the limit of 3 minutes", "--resume --set train.max_minutes=…"),
        ("train.max_epochs=1", "the limit of 1 epoch", "--resume --set train.max_epochs=…"),
        ("train.early_stopping.patience=2", "bleu no better for 2 validations", "--resume --set train.early_stopping.patience=…"),
        ("train.schedule.kind=cosine", "the limit of 4 updates", "another run, with --init-from old; the schedule has come to its end"),
    ],
)
def test_the_limit_that_ended_a_run_is_named(folder: Path, setting: str, why: str, cure: str) -> None:
    assert longer(four_updates(folder, setting), why, RunDir("old")) == f"to train longer: {cure}"


def test_a_run_that_is_not_there_is_started(folder: Path) -> None:
    done = train(four_updates(folder, "data.dev=none"), resume=True)
    assert done.code == 0
    assert done.says(f"{folder / 'run'}: there is no run to go on with yet, starting one")
    assert RunDir(folder / "run").steps() == [2, 4]


def test_a_finished_run_goes_on_to_a_later_end(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    longer = ("train.max_updates=6", "train.schedule.warmup=50")
    assert train(four_updates(folder, *longer, f"run_dir={tmp_path / 'whole'}", final_test(folder))).code == 0
    assert train(four_updates(folder, *longer, run_dir, final_test(folder)), resume=True).code == 0
    whole, extended = RunDir(tmp_path / "whole"), RunDir(tmp_path / "copy")
    assert differences(contents(whole.step(6)), contents(extended.step(6))) == []
    assert load(extended.config).config.train.max_updates == 6
    assert journal(whole) == journal(extended)


def test_changed_settings_are_refused_all_at_once(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    before = tree(tmp_path / "copy")
    with pytest.raises(ConfigError) as caught:
        train(four_updates(folder, final_test(folder), run_dir, "train.seed=2", "model.dropout=0.5", "train.keep=1"), resume=True)
    assert [line.split(" changed: ")[0].split()[-1] for line in caught.value.problems[:-1]] == ["model.dropout", "train.seed"]
    assert tree(tmp_path / "copy") == before


def test_a_model_changed_in_the_config_of_the_run_is_refused(copied: tuple[Path, str], tmp_path: Path) -> None:
    """Other heads fit the same weights: nothing but the checkpoint can tell."""
    run = RunDir(tmp_path / "copy")
    text = run.config.read_text(encoding="utf-8")
    run.config.write_text(text.replace("dropout: 0.0", "dropout: 0.1"), encoding="utf-8")
    Translator.load(run.path)
    run.config.write_text(text.replace("heads: 2", "heads: 4"), encoding="utf-8")
    for use in (lambda: Translator.load(run.path), lambda: train(load(run.config, [copied[1]]).config, resume=True)):
        with pytest.raises(RunError, match=r"copy/config.yaml: model.heads is 4, but step-0000000[24] was trained with 2; set it back"):
            use()


def test_changed_data_is_refused_by_name(folder: Path) -> None:
    train(four_updates(folder, "train.max_updates=2"))
    before = tree(folder / "run")
    with (folder / "train.trg").open("a", encoding="utf-8") as file:
        file.write("one more\n")
    with pytest.raises(RunError, match=f"cannot resume, the data changed: {folder / 'train.trg'}"):
        train(four_updates(folder), resume=True)
    assert tree(folder / "run") == before


def test_training_text_that_is_gone_does_no_harm(folder: Path) -> None:
    train(four_updates(folder, "train.max_updates=2"))
    (folder / "train.src").unlink()
    assert train(four_updates(folder), resume=True).code == 0
    assert RunDir(folder / "run").names()["last"] == "step-00000004"


def test_killed_before_its_first_checkpoint_it_starts_over_and_says_so(folder: Path) -> None:
    class KilledError(BaseException):
        pass

    def kill(number: int) -> None:
        if number == 1:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.launch.run.Console", lambda **_: Silent(kill))
        with pytest.raises(KilledError):
            train(four_updates(folder))
    run = RunDir(folder / "run")
    assert len(journal(run)) == 1
    done = train(four_updates(folder), resume=True)
    assert done.code == 0
    assert done.says("was stopped before its first checkpoint, starting over")
    assert [event["update"] for event in journal(run) if event["event"] == "update"] == [1, 2, 3, 4]


def test_when_the_curves_cannot_be_written(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tensorboard.summary.writer.record_writer import RecordWriter

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    def fill(number: int) -> None:
        if number == 3:
            patch.setattr(RecordWriter, "write", full)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.launch.run.Console", lambda **_: Silent(fill))
        with pytest.raises(RunError, match="tensorboard: cannot be written .no space left on device.; make room, then go on with --resume"):
            train(four_updates(folder, "train.max_updates=40"))
    assert "Traceback" not in capfd.readouterr().err
    run = RunDir(folder / "run")
    assert (run.names()["last"], run.lock_file.exists()) == (f"step-{run.steps()[-1]:08d}", False)
    assert train(four_updates(folder), resume=True).code == 0


@pytest.mark.parametrize("name", ["tensorboard", "journal.jsonl", "reports"])
def test_what_is_of_another_kind_than_it_should_be_is_named(copied: tuple[Path, str], tmp_path: Path, name: str) -> None:
    folder, run_dir = copied
    path = tmp_path / "copy" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.mkdir() if name == "journal.jsonl" else path.write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match=rf"copy/{name}: cannot be written .*; move {name} away, then go on with --resume"):
        train(four_updates(folder, final_test(folder), run_dir, "train.max_updates=6"), resume=True)


def test_when_a_checkpoint_cannot_be_written(folder: Path, finished: tuple[Path, Done]) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    def fill(number: int) -> None:
        if number == 3:
            patch.setattr("mt.checkpoint.save_file", full)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.launch.run.Console", lambda **_: Silent(fill))
        with pytest.raises(RunError, match="step-00000004: cannot be saved .No space left on device."):
            train(four_updates(folder))
    run = RunDir(folder / "run")
    assert (run.steps(), run.names()["last"], run.lock_file.exists()) == ([2], "step-00000002", False)
    assert train(four_updates(folder), resume=True).code == 0
    assert differences(contents(run.step(4)), contents(RunDir(finished[0] / "run").step(4))) == []


# ── nothing is left behind ──────────────────────────────────────────────────────────────────────────────────────────

TROUBLE = {
    "no such file": ("data.train.0.src=nowhere.src", "nowhere.src"),
    "dev of other length": ("data.dev.tgt={folder}/test.trg", "4 lines, .* has 3"),
    "test of other length": ("data.test.x={{src: {folder}/test.src, tgt: {folder}/valid.trg}}", "3 lines, .* has 4"),
    "dev of empty sides": ("data.dev.tgt={folder}/blank", "valid.src: every pair has an empty side"),
    "a pipe": ("data.dev.tgt={folder}/pipe", "pipe: is a pipe or device, and corpora are read more than once; write it to a file"),
    "a name that is not UTF-8": ("data.train.0.src={folder}/names", "the name of this file is not UTF-8; rename it"),
    "blank lines": ("data.train.0={{src: {folder}/blank, tgt: {folder}/blank}}", "blank: kept 0 of 4 pairs .4 empty side"),
    "too large": (
        "model={{dim: 65536, ffn: 100000, encoder_layers: 900}}",
        "take .* GiB to train, and cpu has",
    ),
    "everything too long": ("data.max_pieces=1", "kept 0 of 40 pairs .40 longer than 1 piece"),
    "no such device": ("train.precision=fp16", "fp16 needs a CUDA device"),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_a_run_that_cannot_start_leaves_nothing_behind(folder: Path, name: str) -> None:
    override, message = TROUBLE[name]
    (folder / "blank").write_text("\n" * 4, encoding="utf-8")
    os.mkfifo(folder / "pipe")
    (folder / "names").mkdir()
    (folder / "names" / os.fsdecode(b"caf\xe9")).write_text("bage .\n", encoding="utf-8")
    before = tree(folder)
    with pytest.raises((DataError, ConfigError), match=message):
        train(four_updates(folder, f"run_dir={folder}/deep/er/run", override.format(folder=folder)))
    assert tree(folder) == before
    assert not (folder / "deep").exists()


@pytest.mark.parametrize("name", ["everything too long", "no such device"])
def test_then_a_run_that_was_to_be_overwritten_is_still_there(copied: tuple[Path, str], tmp_path: Path, name: str) -> None:
    folder, run_dir = copied
    before = tree(tmp_path)
    override, message = TROUBLE[name]
    with pytest.raises((DataError, ConfigError), match=message):
        train(four_updates(folder, run_dir, override), overwrite=True)
    assert tree(tmp_path) == before
    assert train(four_updates(folder, final_test(folder), run_dir), resume=True).says("is finished already")


def test_a_folder_with_a_config_of_its_own_is_no_run(folder: Path) -> None:
    """Somebody's project, its corpora under data/: neither starting, starting over nor resuming may touch it."""
    project = folder / "run"
    (project / "data" / "corpora").mkdir(parents=True)
    (project / "data" / "corpora" / "a.en").write_text("x", encoding="utf-8")
    (project / "config.yaml").write_text("data: {}\n", encoding="utf-8")
    (project / "download.partial").write_text("x", encoding="utf-8")
    before = sorted(project.rglob("*"))
    for flags in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(RunError, match="not a run, but not empty either"):
            train(four_updates(folder), **flags)
    assert sorted(project.rglob("*")) == before


def test_what_is_added_to_a_run_survives_starting_over(folder: Path) -> None:
    settings = four_updates(folder, "data.dev=none", "train.max_updates=1")
    assert train(settings).code == 0
    (folder / "run" / "notes.txt").write_text("mine", encoding="utf-8")
    assert train(settings, overwrite=True).code == 0
    assert (folder / "run" / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_without_names_it_goes_on_from_the_newest_checkpoint(copied: tuple[Path, str], tmp_path: Path) -> None:
    folder, run_dir = copied
    run = RunDir(tmp_path / "copy")
    run.names_file.unlink()
    told = run.journal.read_bytes()
    # shorter than the checkpoint says, as after a power cut: not to be filled up with NULs
    kept = told[: told.rindex(b'{"event": "ended"') - 50]
    run.journal.write_bytes(kept)
    assert train(four_updates(folder, run_dir, final_test(folder), "train.max_updates=6"), resume=True).code == 0
    assert run.steps()[-1] == 6
    assert run.journal.read_bytes().startswith(kept)
    assert b"\0" not in run.journal.read_bytes()
