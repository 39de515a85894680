"""Listeners to the events of the loop: the console and the journal."""

from __future__ import annotations

import json
import math
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from mt.errors import RunError
from mt.files import NO_ROOM
from mt.formats.pairs import counted
from mt.rundir import RunDir
from mt.train.events import Ended, Event, Saved, Update, Validated

LINE_EVERY = 30.0  # seconds between plain lines where there is no terminal
RECENT = 50  # updates that the shown loss and speed are taken over
NAMED = 5  # skipped updates whose pairs are shown
SHOWN = 3  # pairs of each


def speed(updates: Any) -> float:
    """Real target tokens a second over some updates."""
    seconds = sum(u.seconds for u in updates)
    return sum(u.tokens for u in updates) / seconds if seconds else 0.0


class Console:
    """A progress bar in a terminal; elsewhere a plain line every half minute. Validations and the end are lines in both."""

    def __init__(
        self,
        *,
        total: int | None,
        minutes: float | None,
        done: int = 0,
        seconds: float = 0.0,
        skipped: int = 0,
        stream: TextIO | None = None,
    ) -> None:
        """`total` updates and `minutes` are the limits of the run; `done`, `seconds` and `skipped` updates are behind it already."""
        self.stream, self.skipped, self.epoch = stream or sys.stderr, skipped, 0
        self.total, self.minutes, self.began = total, minutes, time.monotonic() - seconds
        self.of = f" of {total}" if total else ""
        self.recent: deque[Update] = deque(maxlen=RECENT)
        self.next_line = time.monotonic() + LINE_EVERY
        share = "{percentage:3.0f}%|{bar:10}| " if total or minutes else ""
        self.bar = tqdm(
            total=self.expected(done),
            initial=done,
            bar_format=f"{share}update {{n_fmt}}{self.of}{{postfix}}",
            postfix="working on the next",
            file=self.stream,
            disable=not self.stream.isatty(),
            dynamic_ncols=True,
        )

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Update():
                self.update(event)
            case Validated():
                self.say(validation_line(event))
                for name, scores in event.sets.items():
                    self.say(f"    {name}: loss {scores['loss']:.3f}, BLEU {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}")
                self.say(f"    {time_line(event.shares)}")
                for sample in event.samples:
                    self.say(
                        f"    source       {sample.source}\n    reference    {sample.reference}\n    translation  {sample.translation}"
                    )
            case Saved():
                pass
            case Ended():
                self.bar.close()
                skipped = f", {counted(event.skipped, 'update')} skipped" if event.skipped else ""
                took = f"in epoch {self.epoch + 1}, after {event.seconds / 60:.1f} minutes{skipped}"
                self.say(f"ended at update {event.update}: {event.reason}; {took}")
                self.say(time_line(event.shares))

    def update(self, event: Update) -> None:
        """Move the bar, or print a line when it is time."""
        self.epoch = event.epoch
        if event.skipped:  # its loss is left out of the mean, being no number
            self.skipped += 1
            why = cause(event) if self.skipped <= NAMED else "; its pairs are in the journal"
            self.say(f"update skipped after {event.update}: loss {event.loss:g}, gradient norm {event.norm:g}{why}")
            return
        self.recent.append(event)
        loss = sum(u.loss * u.tokens for u in self.recent) / sum(u.tokens for u in self.recent)
        norm = sum(u.norm for u in self.recent) / len(self.recent)
        text = f"loss {loss:.3f}, gradient {norm:.2f}, lr {event.lr:.2e}, {speed(self.recent):.0f} tokens/s"
        text += f", {self.skipped} skipped" if self.skipped else ""
        to_go = self.to_go(event)
        if self.stream.isatty():
            self.bar.total = self.expected(event.update)
            self.bar.set_postfix_str(", ".join([*to_go, text]), refresh=False)  # what is cut off in a narrow terminal comes last
            self.bar.update()
        elif time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + LINE_EVERY
            self.say(", ".join([f"update {event.update}{self.of}", f"epoch {event.epoch + 1}", text, *to_go]))

    @property
    def seconds(self) -> float:
        """Wall time of the run so far."""
        return time.monotonic() - self.began

    def expected(self, update: int) -> float | None:
        """The updates of the whole run, if they go on as they went so far, up to the limit of which most is behind; None where none is."""
        behind = [update / self.total] if self.total else []
        behind += [self.seconds / (60 * self.minutes)] if self.minutes else []
        most = max(behind, default=0.0)
        return update / min(1.0, most) if update and most else None

    def to_go(self, event: Update) -> list[str]:
        """How long it is to the first limit, as far as that can be told; nothing once it is reached."""
        each = sum(u.seconds for u in self.recent) / len(self.recent)
        left = [each * (self.total - event.update)] if self.total else []
        left += [60 * self.minutes - self.seconds] if self.minutes else []
        if not left or min(left) <= 0:
            return []
        return [f"{counted(round(min(left) / 60), 'minute') if min(left) >= 60 else 'less than a minute'} to go"]

    def say(self, line: str) -> None:
        """A line that stays, above the bar."""
        if self.stream.isatty():
            tqdm.write(line, file=self.stream)
        else:
            print(line, file=self.stream, flush=True)


def cause(event: Update) -> str:
    """What may have made an update not finite: the loss scale, which begins too high by design, or one of its pairs."""
    if math.isfinite(event.loss) and event.scale > 1:
        return f"; the loss scale was {event.scale:g} and is halved"
    more = f" and {len(event.origins) - SHOWN} more" if len(event.origins) > SHOWN else ""
    return f"; one of its pairs? {', '.join(event.origins[:SHOWN])}{more}" if event.origins else ""


def validation_line(event: Validated) -> str:
    """One validation in one line."""
    scores = f"BLEU {event.scores['bleu']:.2f}, chrF {event.scores['chrf']:.2f}"
    loss = f"loss {event.loss:.3f}, perplexity {math.exp(min(event.loss, 50)):.2f}"
    return f"validation at update {event.update}, epoch {event.epoch + 1}: {loss}, {scores}{' (best so far)' if event.best else ''}"


NAMES = {"model": "forward and backward", "optimizer": "optimiser"}


def time_line(shares: Mapping[str, float]) -> str:
    """What the time of a run went to; the rest, for whoever listens, where it is something."""
    rest = 1 - sum(shares.values())
    parts = [f"{share:.0%} {NAMES.get(name, name)}" for name, share in shares.items()] + [f"{rest:.0%} other"] * (rest >= 0.01)
    return f"time: {', '.join(parts)}"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within, what the disk refuses is a RunError that names the file and the cure."""
    try:
        yield
    except OSError as error:
        cure = "make room" if error.errno in NO_ROOM else f"move {path.name} away"
        reason = (error.strerror or str(error)).lower()
        raise RunError(f"{path}: cannot be written ({reason}); {cure}, then go on with --resume") from error


class Journal:
    """`journal.jsonl`: an object a line, with its kind under `event`."""

    def __init__(self, run: RunDir) -> None:
        self.path = run.journal
        with naming(self.path):
            self.file = run.journal.open("a", encoding="utf-8", newline="\n")

    def __call__(self, event: Event) -> None:
        """Append an event; checkpoints are not in it, being on the disk themselves."""
        if isinstance(event, Saved):
            return
        record = {"event": type(event).__name__.lower(), **asdict(event)}
        record.pop("attention", None)  # a picture, which TensorBoard has
        if not record.get("origins", True):  # as of all updates but skipped ones
            del record["origins"]
        with naming(self.path):
            self.file.write(json.dumps(finite(record), ensure_ascii=False, allow_nan=False) + "\n")
            self.file.flush()

    def close(self) -> None:
        """The last line is written."""
        with naming(self.path):
            self.file.close()


def finite(value: Any) -> Any:
    """The value with infinities and NaN as strings: JSON has none."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
