"""Checkpoints are written whole or not at all, come back bit for bit, and say what is wrong with them."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from mt import checkpoint
from mt.checkpoint import FORMAT, check_model, load_weights, read_state, read_trainer, read_weights, rotate, save_checkpoint
from mt.config.schema import ModelConfig
from mt.errors import RunError
from mt.rundir import PARTIAL, RunDir

WEIGHTS = {"a.weight": torch.arange(6.0).view(2, 3), "a.bias": torch.tensor([-1.0, 2.5])}


def save(path: Path, **extra: Any) -> None:
    standard = {"weights": WEIGHTS, "state": {"progress": {"update": 7}}, "trainer": {"generator": torch.get_rng_state()}}
    save_checkpoint(path, **{**standard, **extra})


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    moving = {name: tensor + 1 for name, tensor in WEIGHTS.items()}
    save(tmp_path / "step-1", ema=moving)
    assert equal(read_weights(tmp_path / "step-1", "raw"), WEIGHTS)
    assert equal(read_weights(tmp_path / "step-1", "ema"), moving)
    assert equal(read_weights(tmp_path / "step-1"), moving)  # what is used unless asked otherwise
    assert read_state(tmp_path / "step-1") == {"format": FORMAT, "progress": {"update": 7}}
    assert torch.equal(read_trainer(tmp_path / "step-1")["generator"], torch.get_rng_state())


def test_without_a_moving_average_the_weights_are_used(tmp_path: Path) -> None:
    save(tmp_path / "step-1")
    assert equal(read_weights(tmp_path / "step-1"), WEIGHTS)
    with pytest.raises(RunError, match="step-1: has no moving average .*--weights raw"):
        read_weights(tmp_path / "step-1", "ema")


def test_nothing_but_tensors_and_json(tmp_path: Path) -> None:
    save(tmp_path / "step-1", ema=WEIGHTS)
    assert {path.name for path in (tmp_path / "step-1").iterdir()} == {"model.safetensors", "ema.safetensors", "state.json", "trainer.pt"}
    json.loads((tmp_path / "step-1" / "state.json").read_text(encoding="utf-8"))


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    save(tmp_path / "step-1")

    class Attack:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "was here"),)

    torch.save({"optimizer": Attack()}, tmp_path / "step-1" / "trainer.pt")
    with pytest.raises(RunError, match="trainer.pt: cannot be read"):
        read_trainer(tmp_path / "step-1")
    assert not (tmp_path / "was here").exists()


def test_tied_weights_are_stored_once_and_tied_after_loading(tmp_path: Path) -> None:
    def model() -> nn.Module:
        tied = nn.ModuleDict({"embedding": nn.Embedding(5, 3), "output": nn.Linear(3, 5, bias=False)})
        tied["output"].weight = tied["embedding"].weight
        return tied

    one, other = model(), model()
    save(tmp_path / "step-1", weights=dict(one.named_parameters()))
    weights = read_weights(tmp_path / "step-1")
    assert list(weights) == ["embedding.weight"]
    load_weights(other, weights, source=tmp_path)
    assert torch.equal(other["output"].weight, one["output"].weight)  # type: ignore[index]
    assert other["output"].weight is other["embedding"].weight  # type: ignore[index]


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 2)})
    with pytest.raises(RunError, match=r"step-1: a.weight is \[4, 3\], this model's is \[2, 3\]"):
        load_weights(model, {**WEIGHTS, "a.weight": torch.zeros(4, 3)}, source=tmp_path / "step-1")
    with pytest.raises(RunError, match="other parameters than this model has: a.bias, a.scale"):
        load_weights(model, {"a.weight": torch.zeros(2, 3), "a.scale": torch.zeros(1)}, source=tmp_path)


# ── what is broken, or from the future ──────────────────────────────────────────────────────────────────────────────


def test_another_format_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "step-1")
    (tmp_path / "step-1" / "state.json").write_text(json.dumps({"format": FORMAT + 1}), encoding="utf-8")
    with pytest.raises(RunError, match=f"written in format {FORMAT + 1}, this version of mt reads format {FORMAT}; update mt"):
        read_state(tmp_path / "step-1")


@pytest.mark.parametrize("name", ["model.safetensors", "state.json", "trainer.pt"])
@pytest.mark.parametrize("harm", ["missing", "cut short", "empty"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, harm: str) -> None:
    save(tmp_path / "step-1")
    file = tmp_path / "step-1" / name
    whole = file.read_bytes()
    file.unlink()
    if harm != "missing":
        file.write_bytes(whole[: len(whole) // 2] if harm == "cut short" else b"")
    read: Any = {"model.safetensors": read_weights, "state.json": read_state, "trainer.pt": read_trainer}[name]
    with pytest.raises(RunError, match="step-1/.*; put it back, or remove this checkpoint"):
        read(tmp_path / "step-1")


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "5", '{"format": "x"}'], ids=["deep", "list", "number", "format"])
def test_a_state_that_is_no_object_is_damaged(tmp_path: Path, text: str) -> None:
    save(tmp_path / "step-1")
    (tmp_path / "step-1" / "state.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"step-1/state.json: is damaged; "):
        read_state(tmp_path / "step-1")


# ── the model it is of ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "change",
    [{"heads": 2}, {"norm": "post"}, {"dim": 128}, {"decoder_layers": 1}, {"tied_embeddings": False}, {"positions": "rope"}],
    ids=str,
)
def test_another_model_is_refused_with_both_values(change: dict[str, Any]) -> None:
    ((key, value),) = change.items()
    trained = ModelConfig()
    changed = ModelConfig.model_validate({**trained.model_dump(), **change})
    state = {"model": trained.model_dump(mode="json")}
    check_model(state, trained, source=Path("step-1"), config=Path("config.yaml"))
    with pytest.raises(
        RunError, match=f"config.yaml: model.{key} is {value}, but step-1 was trained with {getattr(trained, key)}; set it back"
    ):
        check_model(state, changed, source=Path("step-1"), config=Path("config.yaml"))


def test_what_matters_in_training_alone_may_differ_and_old_checkpoints_do_not_say() -> None:
    changed = ModelConfig(dropout=0.5, attention_dropout=0.5, activation_dropout=0.5, word_dropout=0.5, gradient_checkpointing=True)
    check_model({"model": ModelConfig().model_dump(mode="json")}, changed, source=Path("step-1"), config=Path("config.yaml"))
    check_model({}, ModelConfig(heads=2), source=Path("step-1"), config=Path("config.yaml"))


def test_a_setting_that_came_after_the_checkpoint_was_at_its_default() -> None:
    before = {key: value for key, value in ModelConfig().model_dump(mode="json").items() if key != "positions"}
    check_model({"model": before}, ModelConfig(), source=Path("step-1"), config=Path("config.yaml"))
    with pytest.raises(RunError, match="model.positions is rope, but step-1 was trained with sinusoidal"):
        check_model({"model": before}, ModelConfig(positions="rope"), source=Path("step-1"), config=Path("config.yaml"))


# ── whole or not at all ─────────────────────────────────────────────────────────────────────────────────────────────


def disk_full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("place", ["safetensors", "torch.save", "rename", "fsync"])
def test_when_the_disk_refuses_the_old_checkpoint_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    save(tmp_path / "step-1")
    match place:
        case "safetensors":
            monkeypatch.setattr(checkpoint, "save_file", disk_full)
        case "torch.save":
            monkeypatch.setattr(torch, "save", disk_full)
        case "rename":
            monkeypatch.setattr(Path, "rename", disk_full)
        case _:
            monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(RunError, match=r"step-2: cannot be saved .No space left on device.*--resume"):
        save(tmp_path / "step-2")
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert equal(read_weights(tmp_path / "step-1"), WEIGHTS)


@pytest.mark.parametrize("place", ["save_file", "sync"])
@pytest.mark.parametrize("again", [False, True], ids=["new", "written again"])
def test_interrupted_while_it_is_saved_it_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, again: bool) -> None:
    save(tmp_path / "step-1")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, place, interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / ("step-1" if again else "step-2"))
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert equal(read_weights(tmp_path / "step-1"), WEIGHTS)


def test_interrupted_while_it_takes_the_place_of_another_that_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "step-1")
    rename = Path.rename

    def interrupt(path: Path, target: Path) -> Path:
        if target == tmp_path / "step-1" and path.name == f"step-1{PARTIAL}":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "step-1", weights={"a": torch.ones(1)})
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert equal(read_weights(tmp_path / "step-1"), WEIGHTS)


def test_when_the_folder_is_none_the_cure_is_not_room(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match=r"step-1: cannot be saved .Not a directory.; is .*/checkpoints a folder of yours\?"):
        save(tmp_path / "checkpoints" / "step-1")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Within, the system refuses to write more than so many bytes to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("large", ["weights", "trainer"])
def test_when_the_system_refuses_a_large_file(tmp_path: Path, large: str) -> None:
    """The libraries that write raise their own kinds of error, which are no OSError."""
    save(tmp_path / "step-1")
    with files_of_at_most(100_000), pytest.raises(RunError, match="step-2: cannot be saved"):
        save(tmp_path / "step-2", **{large: {"x": torch.zeros(200_000)}})
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def test_a_checkpoint_written_again_replaces_the_first(tmp_path: Path) -> None:
    (tmp_path / f"step-1{PARTIAL}").mkdir()  # left by a kill
    (tmp_path / f"step-1{PARTIAL}" / "junk").write_bytes(b"x")
    save(tmp_path / "step-1")
    save(tmp_path / "step-1", weights={"a": torch.ones(1)})
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert {path.name for path in (tmp_path / "step-1").iterdir()} == {"model.safetensors", "state.json", "trainer.pt"}
    assert list(read_weights(tmp_path / "step-1")) == ["a"]


# ── rotation ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keep", [1, 2, 3, 10])
def test_the_newest_are_kept_and_what_has_a_name(tmp_path: Path, keep: int) -> None:
    run = RunDir(tmp_path)
    for update in range(1, 7):
        save(run.step(update))
    run.set_names(best=run.step(2), last=run.step(6))
    rotate(run, keep=keep, every=1)
    assert run.steps() == sorted({2, *range(max(1, 7 - keep), 7)})


def test_what_was_not_due_goes_when_it_has_no_name(tmp_path: Path) -> None:
    """An interrupt at 5 leaves a checkpoint; later the same ones are there as without it."""
    run = RunDir(tmp_path)
    for update in (2, 4, 5):
        save(run.step(update))
    run.set_names(best=run.step(2), last=run.step(5))
    rotate(run, keep=2, every=2)
    assert run.steps() == [2, 4, 5]
    save(run.step(6))
    run.set_names(last=run.step(6))
    rotate(run, keep=2, every=2)
    assert run.steps() == [2, 4, 6]


@pytest.mark.parametrize("place", ["pathlib.Path.rename", "shutil.rmtree"])
def test_where_a_checkpoint_cannot_be_removed_none_is_left_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    run = RunDir(tmp_path)
    for update in (1, 2):
        save(run.step(update))

    def refuse(path: Path, *_: object) -> None:
        (path / "state.json").unlink(missing_ok=place == "shutil.rmtree")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(place, refuse if place == "shutil.rmtree" else disk_full)
    with pytest.raises(RunError, match=r"step-00000001: cannot be removed \(.*\); remove it yourself, then go on with --resume$"):
        rotate(run, keep=1, every=1)
    assert all(read_state(run.step(update)) for update in run.steps())


def test_the_average_is_never_rotated_away(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for update in (1, 2, 3):
        save(run.step(update))
    save(run.average, trainer=None)
    run.set_names(best=run.average, last=run.step(3))
    rotate(run, keep=1, every=1)
    assert run.steps() == [3]
    assert equal(read_weights(run.average), WEIGHTS)
