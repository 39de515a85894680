"""TensorBoard as a listener to the events of the loop: curves, settings, sample translations, and what the model looks at."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mt.config.load import dump
from mt.config.schema import Config
from mt.focus import Attention
from mt.page.charts import styled
from mt.rundir import RunDir
from mt.train.events import Ended, Event, Saved, Update, Validated
from mt.train.monitor import naming, speed

DOTS = 90  # an inch of a picture
MOST = 60  # pieces of a side that can be read in one
# Fonts with the scripts that matplotlib's own has not, where the system has them.
FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
)


class TensorBoard:
    """Scalars of every update that was made and of every validation, the settings, sample translations as text, attention as pictures."""

    def __init__(self, run: RunDir, *, config: Config | None = None, purge_from: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.path = run.tensorboard
        self.hook, threading.excepthook = threading.excepthook, self.hear
        with naming(self.path):
            self.writer = SummaryWriter(run.tensorboard, purge_step=purge_from)
            if config:
                self.describe(config)

    def describe(self, config: Config) -> None:
        """The settings, as a row of the table of hyperparameters and as text."""
        from torch.utils.tensorboard.summary import hparams

        for summary in hparams(hyperparameters(config), dict.fromkeys(("dev/bleu", "dev/chrf", "dev/loss"))):
            self.writer._get_file_writer().add_summary(summary)  # its own add_hparams would make a run of its own
        self.writer.add_text("config", "".join(f"    {line}\n" for line in dump(config).splitlines()))

    def hear(self, args: threading.ExceptHookArgs) -> None:
        """What the disk refuses the writing thread is raised here at the next event: it need not print it."""
        if not isinstance(args.exc_value, OSError):
            self.hook(args)

    def __call__(self, event: Event) -> None:
        """Write an event."""
        with naming(self.path):
            self.write(event)

    def write(self, event: Event) -> None:
        """Hand an event to the thread that writes."""
        match event:
            case Update(skipped=False):
                values = {"loss": event.loss, "lr": event.lr, "gradient_norm": event.norm, "loss_scale": event.scale}
                values |= {"tokens_per_second": speed([event]), "real_tokens": (event.tokens + event.src_tokens) / event.padded}
                values |= {"waiting_for_data": event.waited / event.seconds}
                for name, value in values.items():
                    self.writer.add_scalar(f"train/{name}", value, event.update)
            case Validated():
                for name, scores in {"": event.scores, **event.sets}.items():
                    for metric, value in scores.items():
                        self.writer.add_scalar(f"dev/{name}/{metric}" if name else f"dev/{metric}", value, event.update)
                for number, sample in enumerate(event.samples, start=1):
                    text = f"    {sample.source}\n    {sample.reference}\n    {sample.translation}"  # indented: Markdown shows it as it is
                    self.writer.add_text(f"dev/sample {number}", text, event.update)
                for number, one in enumerate(event.attention, start=1):
                    self.writer.add_image(f"dev/attention {number}", picture(one), event.update, dataformats="HWC")
                self.add_shares(event)
                self.writer.flush()
            case Ended():
                self.add_shares(event)
            case Saved():  # a kill must not take the curves before the checkpoint, as they will not come again
                self.writer.flush()
            case _:
                pass

    def add_shares(self, event: Validated | Ended) -> None:
        """What the time of the run so far went to."""
        for name, share in event.shares.items():
            self.writer.add_scalar(f"time/{name}", share, event.update)

    def close(self) -> None:
        """Everything is on the disk."""
        try:
            with naming(self.path):
                self.writer.close()
        finally:
            threading.excepthook = self.hook


def hyperparameters(config: Config) -> dict[str, Any]:
    """The settings that shape a model and its training, by their names; lists as text."""
    chosen = {name: getattr(config, name).model_dump(mode="json", exclude_none=True) for name in ("tokenizer", "model", "train")}
    return {name: value if isinstance(value, bool | int | float | str) else str(value) for name, value in _flat(chosen, "")}


def _flat(values: dict[str, Any], name: str) -> list[tuple[str, Any]]:
    found = []
    for key, value in values.items():
        found += _flat(value, f"{name}{key}.") if isinstance(value, dict) else [(f"{name}{key}", value)]
    return found


def picture(attention: Attention) -> NDArray[np.uint8]:
    """A heat map as pixels: a row for each piece of the target, dark where it looks."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import get_font_names

    rows, columns = attention.target[:MOST], attention.source[:MOST]
    shares = np.array([row[:MOST] for row in attention.shares[:MOST]], dtype=float).reshape(len(rows), len(columns))
    with styled(salt=""):
        figure = Figure((1.5 + 0.2 * len(columns), 1.5 + 0.2 * len(rows)), dpi=DOTS, facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(np.nan_to_num(shares), cmap="Blues", vmin=0, vmax=1)
        text: dict[str, Any] = {"fontsize": 8, "color": "black", "family": ["DejaVu Sans", *sorted(set(FONTS) & set(get_font_names()))]}
        axes.set_xticks(range(len(columns)), columns, rotation=90, **text)
        axes.set_yticks(range(len(rows)), rows, **text)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axes.grid(visible=False)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()
