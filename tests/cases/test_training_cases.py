"""Trouble with training: one test a row of the list of trouble cases, each with its own input."""

from __future__ import annotations

import math
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.checkpoint import read_weights
from mt.config.schema import Constant, Noam
from mt.data.batches import Batch
from mt.errors import TrainError
from mt.launch.inputs import open_store
from mt.model.loss import LossOfBatch, build_loss
from mt.rundir import RunDir
from mt.train.events import Update
from mt.train.loop import Plan, fit
from mt.train.schedule import learning_rate
from mt.train.signals import Stop
from mt.train.update import update
from mt.translator import Translator
from tests import toy
from tests.runs import contents, differences, journal, mt, torchrun, train
from tests.train import tiny


def options(*changes: str) -> list[str]:
    """`--set` for each, of a tiny model."""
    return [word for change in (*toy.TINY, *changes) for word in ("--set", change)]


def run_command(folder: Path, *changes: str) -> list[str | Path]:
    """`mt train` on the corpus in the folder, for two updates."""
    config = toy.config_file(folder)
    return ["train", "--config", config, "--run-dir", folder / "run", "--device", "cpu", *options("train.max_updates=2", *changes)]


def corpus(folder: Path, name: str, src: str, tgt: str) -> None:
    (folder / f"{name}.src").write_text(src, encoding="utf-8", newline="\n")
    (folder / f"{name}.trg").write_text(tgt, encoding="utf-8", newline="\n")


def assert_refused(folder: Path, capsys: pytest.CaptureFixture[str], *expected: str, changes: tuple[str, ...] = ()) -> str:
    """Exit code 2, one line, no traceback, and the folder holds what it held; the line."""
    command = run_command(folder, *changes)
    before = sorted(folder.rglob("*"))
    done = mt(*command, capsys=capsys)
    lines = [line for line in done.lines if not line.startswith(("warning: ", "tokenizer.model: "))]
    assert done.code == 2
    assert len(lines) == 1, done.lines
    assert all(part in lines[0] for part in expected), lines[0]
    assert sorted(folder.rglob("*")) == before
    return lines[0]


# ── input, as `mt train` meets it ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["train", "valid"])
def test_05_invalid_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    toy.write_corpus(tmp_path, train=20, dev=5, test=1)
    lines = (tmp_path / f"{name}.src").read_bytes().splitlines(keepends=True)
    lines[2] = b"caf\xe9 bage .\n"
    (tmp_path / f"{name}.src").write_bytes(b"".join(lines))
    assert_refused(tmp_path, capsys, f"{tmp_path / name}.src:3: byte 0xE9 is not UTF-8")


def test_05_utf16(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy.write_corpus(tmp_path, train=20, dev=5, test=1)
    (tmp_path / "train.src").write_text("bage .\ndepe .\n", encoding="utf-16")
    assert_refused(tmp_path, capsys, f"{tmp_path / 'train.src'}:1: byte 0xFF is not UTF-8", "looks like UTF-16")


def test_09_empty_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = toy.sentences(5)
    targets = [toy.translation(source) for source in sources]
    corpus(tmp_path, "train", "".join(f"{s}\n" for s in sources), f"{targets[0]}\n\n{targets[2]}\n \t\u3000\n{targets[4]}\n")
    corpus(tmp_path, "valid", "bage .\ndepe .\nfide .\n", "dirkan .\n\ngonmir .\n")
    done = mt(*run_command(tmp_path), capsys=capsys)
    assert done.code == 0, done.lines
    assert done.says("train.src: kept 3 of 5 pairs (2 empty side)")
    assert done.says("valid.src: 3 of 3 pairs, the loss without 1 that have an empty side")
    run = RunDir(tmp_path / "run")
    assert [pair.src for pair in open_store(run).pairs()] == [sources[0], sources[2], sources[4]]
    validated = next(event for event in journal(run) if event["event"] == "validated")
    tokenizer = Translator.load(run.path, device="cpu").tokenizers.tgt
    assert validated["tokens"] == sum(len(tokenizer.encode(text)) + 1 for text in ("dirkan .", "gonmir ."))
    assert math.isfinite(validated["loss"])
    assert validated["lines"] == 3  # BLEU and chrF leave nothing out


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_10_count_mismatch(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    toy.write_corpus(tmp_path, train=20, dev=5, test=3)
    src, tgt = tmp_path / f"{name}.src", tmp_path / f"{name}.trg"
    toy.write_lines(src, ["bage .", "depe .", "fide .", "gome .", "kute ."])
    toy.write_lines(tgt, ["dirkan .", "pallen .", "", "gonmir .", "sesnor .", "lurput ."])
    test = f"data.test.final={{src: {tmp_path}/test.src, tgt: {tmp_path}/test.trg}}"
    assert_refused(tmp_path, capsys, f"{src} has 5 lines, {tgt} has 6", changes=(test,))


def test_16_length_filter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = toy.sentences(8, shortest=70, longest=70)
    toy.write_lines(tmp_path / "train.src", sources)
    toy.write_lines(tmp_path / "train.trg", map(toy.translation, sources))
    toy.write_lines(tmp_path / "valid.src", ["bage ."])
    toy.write_lines(tmp_path / "valid.trg", ["dirkan ."])
    expected = "train.src: kept 0 of 8 pairs (8 longer than 50 pieces)", "data.max_pieces"
    assert_refused(tmp_path, capsys, *expected, changes=("data.max_pieces=50",))
    done = mt(*run_command(tmp_path, "data.max_pieces=1000"), capsys=capsys)
    assert (done.code, done.says("train.src: kept 8 of 8 pairs")) == (0, True)


# ── one update ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_39_overflow(tmp_path: Path) -> None:
    """An infinite gradient at the third update; later at every one."""
    run, state = RunDir(tmp_path / "run"), tiny.state(tiny.cfg(ema=0.9))
    attempts: list[int] = []
    always = False

    def overflow(grad: torch.Tensor) -> torch.Tensor:
        attempts.append(1)
        return grad / 0 if always or len(attempts) == 3 else grad

    next(iter(state.model.parameters())).register_hook(overflow)

    def tensors(name: str) -> dict[str, Any]:
        """Weights, moving average and optimiser; the rate that waits there for the next update is no state of it."""
        found = contents(state.save(RunDir(tmp_path / name)))
        return {key: value for key, value in found.items() if key != "state" and not key.endswith("/lr")}

    plan = Plan(**{**vars(tiny.PLAN), "warmup": 4, "save_every": 2})
    events = fit(state, tiny.Data(), cfg=tiny.cfg(max_skipped=5), plan=plan, run=run, validator=None, stop=Stop())  # type: ignore[arg-type]
    updates = (event for event in events if isinstance(event, Update))
    first, second = next(updates), next(updates)
    before = tensors("before")
    third = next(updates)
    assert (third.skipped, third.update, state.progress.skipped) == (True, 2, 1)
    assert differences(before, tensors("after")) == []
    again, fourth = next(updates), next(updates)
    assert [(event.update, event.skipped) for event in (again, fourth)] == [(3, False), (4, False)]
    assert differences(before, tensors("later")) != []
    assert [event.lr for event in (first, second, third, again, fourth)] == pytest.approx([0.00025, 0.0005, 0.00075, 0.00075, 0.001])

    always = True
    with pytest.raises(TrainError, match="5 updates in a row had a non-finite loss or gradient.*the last good checkpoint is step-00000004"):
        list(updates)
    good = tiny.state(tiny.cfg(ema=0.9))
    good.restore(run.step(4))
    assert all(torch.isfinite(p).all() for p in good.model.parameters())


@pytest.mark.parametrize("always", [False, True], ids=["once", "from then on"])
def test_39_overflow_within_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, always: bool
) -> None:
    """At the third attempt: an update is skipped and made up for. From then on: one line, and what was saved before is whole."""
    toy.write_corpus(tmp_path, train=20, dev=1, test=3)
    attempts = count(1)

    def overflowing(*args: Any, **kwargs: Any) -> LossOfBatch:
        loss = build_loss(*args, **kwargs)
        tiny.break_gradients(loss, when=lambda: (number := next(attempts)) == 3 or (always and number > 3))
        return loss

    monkeypatch.setattr("mt.launch.prepare.build_loss", overflowing)
    changes = ("data.dev=none", "train.max_updates=4", "train.save_every=2", "train.max_skipped=5")
    done = mt(*run_command(tmp_path, *changes), capsys=capsys)
    run = RunDir(tmp_path / "run")
    assert done.says("update skipped after 2: ")
    if not always:
        assert (done.code, run.steps()) == (0, [2, 4])
        assert done.says("ended at update 4: the limit of 4 updates")
        assert done.says(", 1 update skipped")
        return
    assert (done.code, run.steps()) == (2, [2])
    assert done.lines[-1].startswith("5 updates in a row had a non-finite loss or gradient (")
    assert "the last good checkpoint is step-00000002" in done.lines[-1]
    assert mt("translate", "--model", run.path, "--input", tmp_path / "test.src", "--output", tmp_path / "out", capsys=capsys).code == 0
    assert len((tmp_path / "out").read_text(encoding="utf-8").splitlines()) == 3


def test_42_warm_up(tmp_path: Path) -> None:
    state = tiny.state()
    used: list[float] = []
    state.optimizer.register_step_pre_hook(lambda optimizer, *_: used.append(optimizer.param_groups[0]["lr"]))
    plan = Plan(**{**vars(tiny.PLAN), "warmup": 4, "last_update": 5})
    cfg = tiny.cfg(schedule={"kind": "constant"}, optimizer={"lr": 1e-3})
    events = fit(state, tiny.Data(), cfg=cfg, plan=plan, run=RunDir(tmp_path), validator=None, stop=Stop())  # type: ignore[arg-type]
    logged = [event.lr for event in events if isinstance(event, Update)]
    assert logged == used == pytest.approx([0.00025, 0.0005, 0.00075, 0.001, 0.001])
    assert learning_rate(Constant(kind="constant"), 1, lr=1e-3, dim=512, warmup=1, end=None) == 1e-3

    noam = [learning_rate(Noam(kind="noam"), n, lr=1.0, dim=512, warmup=4, end=None) for n in range(1, 7)]
    assert noam == pytest.approx([0.00552427, 0.01104854, 0.01657282, 0.02209709, 0.01976424, 0.01804220], abs=5e-9)


def test_47_accumulation() -> None:
    """A pair of 8 words and one of 1: together, or one after the other, the gradient of the update is the same, and so is the loss."""

    def gradient(*micro: Batch) -> tuple[float, torch.Tensor]:
        state = tiny.state()
        seen: list[torch.Tensor] = []
        state.optimizer.register_step_pre_hook(
            lambda *_: seen.append(torch.cat([p.grad.flatten() for p in state.model.parameters() if p.grad is not None]))
        )
        made = update(state, micro, cfg=tiny.cfg(clip_norm=0.0), lr=1e-3, start=0.0)
        return made.loss, seen[0]

    def part(batch: Batch, row: int, length: int) -> Batch:
        cut = [ids[row : row + 1, :length] for ids in (batch.src_BS, batch.inputs_BT, batch.gold_BT)]
        return Batch(*cut, length, length, batch.origins[row : row + 1])

    both = tiny.batch(8, 1)
    loss, whole = gradient(both)
    accumulated_loss, accumulated = gradient(part(both, 0, 9), part(both, 1, 2))
    torch.testing.assert_close(accumulated, whole, atol=1e-6, rtol=0)
    assert accumulated_loss == pytest.approx(loss, abs=1e-6)
    (long_loss, _), (short_loss, short) = gradient(part(both, 0, 9)), gradient(part(both, 1, 2))  # a group that is not full: its own tokens
    assert loss == pytest.approx((9 * long_loss + 2 * short_loss) / 11, abs=1e-6)
    assert abs(loss - (long_loss + short_loss) / 2) > 1e-3, "the test should see the difference to a mean of means"
    assert short.norm() > accumulated.norm() / 2


def test_48_clip_after_unscaling() -> None:
    state = tiny.slope_state(3.0, 4.0)
    state.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    norms: list[float] = []
    weight: Any = state.model.weight
    state.optimizer.register_step_pre_hook(lambda *_: norms.append(float(weight.grad.norm())))
    event = update(state, [tiny.batch(4)], cfg=tiny.cfg(clip_norm=1.0), lr=1e-3, start=0.0)
    assert norms == [pytest.approx(1.0, abs=1e-5)]
    assert (event.norm, event.scale, event.skipped) == (5.0, 1024.0, False)


# ── validation and checkpoints ──────────────────────────────────────────────────────────────────────────────────────


def test_50_empty_validation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy.write_corpus(tmp_path, train=20, dev=1, test=1)
    corpus(tmp_path, "valid", "", "")
    assert_refused(tmp_path, capsys, f"{tmp_path / 'valid.src'}: is empty")
    done = mt(*run_command(tmp_path, "data.dev=none"), capsys=capsys)
    assert done.code == 0
    assert RunDir(tmp_path / "run").names() == {"best": "step-00000002", "last": "step-00000002"}


@pytest.mark.parametrize(("metric", "scores"), [("bleu", [2.0, 6.0, 4.0]), ("loss", [5.0, 3.0, 4.0])])
def test_52_direction_of_best(tmp_path: Path, metric: str, scores: list[float]) -> None:
    run, plan = RunDir(tmp_path), Plan(**{**vars(tiny.PLAN), "validate_every": 1, "last_update": 3})
    cfg, validator = tiny.cfg(early_stopping={"metric": metric}), tiny.Scripted(metric, scores)
    list(fit(tiny.state(), tiny.Data(), cfg=cfg, plan=plan, run=run, validator=validator, stop=Stop()))  # type: ignore[arg-type]
    assert validator.calls == 3
    assert run.names() == {"best": "step-00000002", "last": "step-00000003"}


def test_52_unknown_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy.write_corpus(tmp_path, train=20, dev=1, test=1)
    toy.config_file(tmp_path)
    assert_refused(tmp_path, capsys, "train.early_stopping.metric", "bleu", changes=("train.early_stopping.metric=perplexity",))


def test_54_rotation_keeps_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    toy.write_corpus(tmp_path, train=20, dev=2, test=1)
    scripted = tiny.Scripted("bleu", [9.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    scripted.report = ""  # type: ignore[attr-defined]
    monkeypatch.setattr("mt.launch.prepare.Validators.build", lambda *_, **__: scripted)
    train(toy.config(tmp_path, *toy.TINY, "train.max_updates=6", "train.keep=2", "train.save_every=1", "train.validation.every=1"))
    run = RunDir(tmp_path / "run")
    assert scripted.calls == 6
    assert run.steps() == [1, 5, 6]
    used = Translator.load(run.path, device="cpu").model.state_dict()
    assert all(torch.equal(used[name], tensor) for name, tensor in read_weights(run.step(1)).items())
    outputs = {}
    for name, words in {"unasked": (), "first": ("--checkpoint", "1"), "last": ("--checkpoint", "last")}.items():
        files = ("--input", tmp_path / "train.src", "--output", tmp_path / name)
        assert mt("translate", "--model", run.path, "--format", "jsonl", *words, *files, capsys=capsys).code == 0
        outputs[name] = (tmp_path / name).read_bytes()
    assert outputs["unasked"] == outputs["first"] != outputs["last"]


# ── ranks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_64_ranks_with_different_numbers_of_batches(tmp_path: Path) -> None:
    """Five pairs, each a batch by itself: three for one rank, two for the other. Nobody waits, and no pair is left out."""
    toy.write_corpus(tmp_path, train=5, dev=1, test=1)
    words = run_command(tmp_path, "data.dev=none", "train.batch_tokens=1", "train.max_epochs=1", "train.max_updates=100")
    with torchrun("-m", "mt", *words) as process:
        said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    run = RunDir(tmp_path / "run")
    updates = [event for event in journal(run) if event["event"] == "update"]
    assert len(updates) == run.steps()[-1] == 3
    store = open_store(run)
    lengths = sorted(len(one.tgt_ids) + 1 for one in store.take(range(5)))
    assert sum(event["tokens"] for event in updates) == sum(lengths)
    assert updates[-1]["tokens"] in lengths, "the last update has one pair, of one rank"
