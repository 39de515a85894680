"""Listeners: what the console shows, what the journal holds, what TensorBoard reads."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from mt.errors import RunError
from mt.rundir import RunDir
from mt.train import monitor
from mt.train.board import TensorBoard
from mt.train.events import Ended, Sample, Saved, Spent, Update, Validated
from mt.train.monitor import Console, Journal, speed


def made(number: int, **values: Any) -> Update:
    standard = {"epoch": 0, "loss": 2.0, "lr": 1e-3, "norm": 0.5, "scale": 1.0}
    standard |= {"tokens": 100, "src_tokens": 80, "padded": 200, "seconds": 2.0}
    return Update(update=number, **{**standard, **values})


def validated(number: int, **values: Any) -> Validated:
    standard = {"epoch": 0, "loss": 1.0, "tokens": 50, "lines": 4, "scores": {"loss": 1.0, "bleu": 12.345, "chrf": 40.0}}
    standard |= {"signatures": {"bleu": "tok:13a"}, "beam": 1, "weights": "raw", "precision": "fp32", "best": True, "seconds": 1.0}
    standard["shares"] = Spent(model=8.0, optimizer=0.5, validation=1.0).shares(10.0)
    standard["samples"] = [Sample("ein Haus", "a house", "a <b>horse</b>")]
    return Validated(update=number, **{**standard, **values})


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


# ── console ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Stands in for the time module."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(monitor, "time", clock)
    return clock


def test_speed_is_tokens_over_seconds_not_a_mean_of_speeds() -> None:
    assert speed([made(1, tokens=100, seconds=2.0), made(2, tokens=300, seconds=2.0), made(3, tokens=0, seconds=4.0)]) == 50.0
    assert speed([]) == 0.0


def test_without_a_terminal_a_plain_line_every_half_minute(clock: Clock) -> None:
    stream = io.StringIO()
    console = Console(total=200, minutes=None, stream=stream)
    for number in range(1, 101):
        clock.now += 1.0
        console(made(number))
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == ["update 30 of 200", "update 60 of 200", "update 90 of 200"]
    assert lines[0] == "update 30 of 200, epoch 1, loss 2.000, gradient 0.50, lr 1.00e-03, 50 tokens/s, 6 minutes to go"
    assert "\r" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_the_loss_shown_is_a_mean_over_tokens(clock: Clock) -> None:
    stream = io.StringIO()
    console = Console(total=None, minutes=None, stream=stream)
    console(made(1, loss=1.0, tokens=300))
    clock.now = 31.0
    console(made(2, loss=5.0, tokens=100))
    assert stream.getvalue() == "update 2, epoch 1, loss 2.000, gradient 0.50, lr 1.00e-03, 100 tokens/s\n"


def test_a_skipped_update_is_a_line_and_no_part_of_the_mean(clock: Clock) -> None:
    stream = io.StringIO()
    console = Console(total=None, minutes=None, stream=stream)
    console(made(1, loss=3.0))
    console(made(1, loss=math.nan, norm=math.inf, skipped=True))
    clock.now = 31.0
    console(made(2, loss=3.0))
    skipped, shown = stream.getvalue().splitlines()
    assert skipped == "update skipped after 1: loss nan, gradient norm inf"
    assert "loss 3.000, gradient 0.50" in shown
    assert shown.endswith("tokens/s, 1 skipped")


def test_updates_that_were_skipped_before_a_resume_count(clock: Clock) -> None:
    stream = io.StringIO()
    console = Console(total=None, minutes=None, skipped=2, stream=stream)
    console(made(1, loss=math.nan, skipped=True))
    clock.now = 31.0
    console(made(2))
    assert stream.getvalue().endswith(", 3 skipped\n")


def test_a_validation_is_a_line_with_its_samples(clock: Clock) -> None:  # noqa: ARG001
    stream = io.StringIO()
    console = Console(total=None, minutes=None, stream=stream)
    console(validated(10, epoch=1))
    console(validated(20, epoch=1, best=False, samples=[]))
    assert stream.getvalue().splitlines() == [
        "validation at update 10, epoch 2: loss 1.000, perplexity 2.72, BLEU 12.35, chrF 40.00 (best so far)",
        "    time: 80% forward and backward, 10% validation, 5% optimiser, 0% data, 0% saving, 5% other",
        "    source       ein Haus",
        "    reference    a house",
        "    translation  a <b>horse</b>",
        "validation at update 20, epoch 2: loss 1.000, perplexity 2.72, BLEU 12.35, chrF 40.00",
        "    time: 80% forward and backward, 10% validation, 5% optimiser, 0% data, 0% saving, 5% other",
    ]


def test_of_several_dev_sets_each_has_its_line(run: RunDir) -> None:
    scores = {"loss": 1.5, "bleu": 20.0, "chrf": 41.0}
    event = validated(10, samples=[], sets={"german": scores, "french": {**scores, "bleu": 30.0}})
    stream, journal = io.StringIO(), Journal(run)
    Console(total=None, minutes=None, stream=stream)(event)
    assert stream.getvalue().splitlines()[1:3] == [
        "    german: loss 1.500, BLEU 20.00, chrF 41.00",
        "    french: loss 1.500, BLEU 30.00, chrF 41.00",
    ]
    journal(event)
    journal.close()
    assert json.loads(run.journal.read_text(encoding="utf-8"))["sets"]["french"]["bleu"] == 30.0


def test_a_loss_without_measure_does_not_overflow() -> None:
    stream = io.StringIO()
    Console(total=None, minutes=None, stream=stream)(validated(1, loss=1e6, samples=[]))
    assert "perplexity" in stream.getvalue()


def test_the_end_says_why_and_how_many_were_skipped() -> None:
    stream = io.StringIO()
    console = Console(total=None, minutes=None, stream=stream)
    console(made(20, epoch=1))
    console(Saved(20, Path("x")))
    console(Ended(20, "the limit of 2 epochs", 0, 2, 90.0, shares=Spent(model=81.0, data=9.0).shares(90.0)))
    console(Ended(20, "no better", 3, 1, 90.0))
    assert stream.getvalue().splitlines() == [
        "ended at update 20: the limit of 2 epochs; in epoch 2, after 1.5 minutes",
        "time: 90% forward and backward, 10% data, 0% optimiser, 0% validation, 0% saving",
        "ended at update 20: no better; in epoch 2, after 1.5 minutes, 3 updates skipped",
        "time: 100% other",
    ]


def test_shares_are_of_all_the_time_there_was() -> None:
    spent = Spent(model=6.0).and_also(model=2.0, saving=1.0)
    assert spent.shares(10.0) == {"model": 0.8, "saving": 0.1, "optimizer": 0.0, "data": 0.0, "validation": 0.0}
    assert next(iter(Spent(data=1.0).shares(2.0))) == "data"
    assert sum(Spent().shares(0.0).values()) == 0.0


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"total": 331, "minutes": None}, "10 minutes to go"),
        ({"total": None, "minutes": 5.0}, "3 minutes to go"),
        ({"total": 331, "minutes": 5.0}, "3 minutes to go"),
        ({"total": 91, "minutes": 5.0}, "2 minutes to go"),
        ({"total": 61, "minutes": 5.0}, "1 minute to go"),
        ({"total": 59, "minutes": 5.0}, "less than a minute to go"),
        ({"total": None, "minutes": 3.0}, "less than a minute to go"),
        ({"total": 30, "minutes": None}, ""),
        ({"total": None, "minutes": 1.0}, ""),
        ({"total": None, "minutes": None}, ""),
    ],
)
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_how_long_it_is_to_the_first_limit(clock: Clock, limits: dict[str, Any], told: str, stream: type[io.StringIO]) -> None:
    """In a narrow terminal, where the end of the line is cut off, it has to come first."""
    shown = stream()
    console = after_half_a_minute_twice(clock, limits, shown)
    if stream is io.StringIO:
        assert shown.getvalue().splitlines()[-1].endswith(f"tokens/s, {told}" if told else "tokens/s")
    else:
        assert str(console.bar.postfix).startswith(f"{told}, loss" if told else "loss")
    console(Ended(30, "x", 0, 1, 1.0))


def after_half_a_minute_twice(clock: Clock, limits: dict[str, Any], stream: io.StringIO) -> Console:
    """Of a run that goes on after 60 seconds: a validation of a second, and 30 updates of two."""
    console = Console(**limits, seconds=60.0, stream=stream)
    clock.now += 1.0
    console(validated(1, samples=[]))
    for number in range(1, 31):
        clock.now += 2.0
        console(made(number))
    return console


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ({"total": 90, "minutes": None}, 1 / 3),
        ({"total": None, "minutes": 5.0}, 121 / 300),
        ({"total": 90, "minutes": 5.0}, 121 / 300),
        ({"total": 60, "minutes": 5.0}, 1 / 2),
        ({"total": None, "minutes": 2.0}, 1),
        ({"total": None, "minutes": None}, None),
    ],
)
def test_the_bar_shows_the_share_that_is_behind_the_run(clock: Clock, limits: dict[str, Any], share: float | None) -> None:
    shown = Terminal()
    console = after_half_a_minute_twice(clock, limits, shown)
    console(Ended(30, "x", 0, 1, 1.0))
    last = shown.getvalue().split("\n")[-4].split("\r")[-1]
    of = f" of {limits['total']}" if limits["total"] else ""
    assert f"update 30{of}, " in last
    assert last.startswith("update 30, " if share is None else f"{share:4.0%}|")


def test_in_a_terminal_a_bar_that_starts_where_the_run_was_resumed() -> None:
    stream = Terminal()
    console = Console(total=40, minutes=None, done=30, stream=stream)
    console(made(31))
    console(validated(31))
    assert console.bar.n == 31
    console.bar.refresh()
    console(Ended(40, "40 updates", 0, 1, 1.0))
    shown = stream.getvalue()
    assert shown.startswith("\r 75%|#######5  | update 30 of 40, working on the next")
    assert "update 31 of 40, less than a minute to go, loss 2.000, gradient 0.50, lr 1.00e-03, 50 tokens/s" in shown
    assert "validation at update 31" in shown


# ── journal ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_journal_has_an_object_a_line(run: RunDir) -> None:
    journal = Journal(run)
    for event in (made(1), Saved(1, Path("x")), validated(1), Ended(1, "1 updates", 0, 1, 2.5, {"data": 0.5})):
        journal(event)
    journal.close()
    update, validation, ended = map(json.loads, run.journal.read_text(encoding="utf-8").splitlines())
    assert update == {"event": "update", **{name: value for name, value in vars(made(1)).items() if name != "origins"}}
    assert (validation["event"], validation["scores"]["bleu"], validation["beam"], validation["weights"]) == ("validated", 12.345, 1, "raw")
    assert validation["samples"] == [{"source": "ein Haus", "reference": "a house", "translation": "a <b>horse</b>", "to": None}]
    told = {"update": 1, "reason": "1 updates", "skipped": 0, "epochs": 1, "seconds": 2.5, "shares": {"data": 0.5}}
    assert ended == {"event": "ended", **told}


def test_each_line_is_there_at_once_and_lines_are_added(run: RunDir) -> None:
    for number in (1, 2):
        journal = Journal(run)
        journal(made(number))
        assert len(run.journal.read_text(encoding="utf-8").splitlines()) == number
        journal.close()


def test_what_is_no_number_is_still_json(run: RunDir) -> None:
    journal = Journal(run)
    journal(made(1, loss=math.nan, norm=math.inf, skipped=True))
    journal(validated(1, loss=math.nan, scores={"loss": math.nan, "bleu": 0.0, "chrf": 0.0}))
    journal.close()

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    update, validation = (json.loads(line, parse_constant=refuse) for line in run.journal.read_text(encoding="utf-8").splitlines())
    assert (update["loss"], update["norm"], validation["loss"], validation["scores"]["loss"]) == ("nan", "inf", "nan", "nan")


def test_a_full_disk_names_the_journal(run: RunDir) -> None:
    run.journal.symlink_to("/dev/full")
    journal = Journal(run)
    for use in (lambda: journal(made(1)), journal.close):
        with pytest.raises(RunError, match=r"journal.jsonl: cannot be written .no space left on device.; make room, then go on"):
            use()


# ── tensorboard ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read_back(run: RunDir) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(run.tensorboard))
    accumulator.Reload()
    return accumulator


def curve(accumulator: Any, tag: str) -> list[tuple[int, float]]:
    return [(point.step, pytest.approx(point.value)) for point in accumulator.Scalars(tag)]


def test_the_scalars_are_those_of_the_events(run: RunDir) -> None:
    board = TensorBoard(run)
    for event in (
        made(1, loss=3.0),
        made(2, loss=2.5, lr=2e-3, scale=512.0),
        validated(2),
        Saved(2, Path("x")),
        Ended(3, "x", 0, 1, 1.0, {"model": 0.9}),
    ):
        board(event)
    board(made(2, loss=math.nan, skipped=True))  # would take the place of what was made
    board.close()
    found = read_back(run)
    assert curve(found, "train/loss") == [(1, 3.0), (2, 2.5)]
    assert curve(found, "train/lr") == [(1, 1e-3), (2, 2e-3)]
    assert curve(found, "train/gradient_norm") == [(1, 0.5), (2, 0.5)]
    assert curve(found, "train/loss_scale") == [(1, 1.0), (2, 512.0)]
    assert curve(found, "train/tokens_per_second") == [(1, 50.0), (2, 50.0)]
    assert curve(found, "train/real_tokens") == [(1, 0.9), (2, 0.9)]
    assert curve(found, "dev/bleu") == [(2, 12.345)]
    assert curve(found, "dev/chrf") == [(2, 40.0)]
    assert curve(found, "dev/loss") == [(2, 1.0)]
    assert curve(found, "time/model") == [(2, 0.8), (3, 0.9)]
    assert curve(found, "time/validation") == [(2, 0.1)]


def test_sample_translations_are_text_that_is_shown_as_it_is(run: RunDir) -> None:
    board = TensorBoard(run)
    board(validated(2))
    board.close()
    found = read_back(run)
    (tag,) = found.Tags()["tensors"]
    assert tag.startswith("dev/sample 1")
    text = found.Tensors(tag)[0].tensor_proto.string_val[0].decode("utf-8")
    assert [line for line in text.splitlines() if not line.startswith("    ")] == []
    assert "a <b>horse</b>" in text


def test_with_a_checkpoint_the_curves_are_on_the_disk(run: RunDir) -> None:
    """A kill right after it takes nothing from them."""
    board = TensorBoard(run)
    board(made(1, loss=4.0))
    board(Saved(1, run.step(1)))
    assert curve(read_back(run), "train/loss") == [(1, 4.0)]
    board.close()


def test_a_resumed_run_takes_the_place_of_what_came_after_the_checkpoint(run: RunDir) -> None:
    first = TensorBoard(run)
    for number, loss in [(1, 4.0), (2, 3.0), (3, 2.0)]:
        first(made(number, loss=loss))
    first.close()
    second = TensorBoard(run, purge_from=3)
    second(made(3, loss=1.0))
    second.close()
    assert curve(read_back(run), "train/loss") == [(1, 4.0), (2, 3.0), (3, 1.0)]
