"""The course of a run as charts: thousands of updates are drawn as a few hundred points, with the span of what lies between."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from mt.page.blocks import figure, meter
from mt.page.charts import Line, line_chart
from mt.page.elements import Html, joined, tag
from mt.report.history import History, Points, numbers

POINTS = 240
LOW, HIGH = 10, 90  # percentiles of the span
NAMES = {"model": "forward and backward", "optimizer": "optimiser", "data": "waiting for data"}


def curves(history: History) -> Iterator[Html]:
    """A chart for each thing that is told."""
    validations = history.validations
    at = [float(event["update"]) for event in validations]
    if history.rows or validations:
        training = [_line("training", history, history.column("loss"), weights=history.column("tokens"))] if history.rows else []
        dev = [Line("dev", at, _scores(validations, "loss"), marked=True)] if validations else []
        caption = "Training: with label smoothing and dropout, the shade holds 8 of 10 updates." if history.rows else ""
        caption += " Dev: without, so the two do not compare." if history.rows and validations else ""
        yield figure(line_chart([*training, *dev], title="Loss", x="updates", y="nats a target token"), caption)
    if validations:
        few = len(at) < 60
        both = [Line(title, at, _scores(validations, metric), marked=few) for metric, title in (("bleu", "BLEU"), ("chrf", "chrF"))]
        yield figure(line_chart(both, title="Scores on dev", x="updates"))
        if sets := list(_by_set(validations, "bleu")):
            each = [Line(name, at, values, marked=few) for name, values in sets]
            yield figure(line_chart(each, title="BLEU of each dev set", x="updates"))
    if history.rows:
        yield figure(line_chart([_line("learning rate", history, history.column("lr"), band=False)], title="Learning rate", x="updates"))
        norm = _line("gradient norm", history, history.column("norm"))
        yield figure(line_chart([norm], title="Gradient norm", x="updates", y="before clipping", log=True))
        yield figure(line_chart([_speed(history)], title="Speed", x="updates", y="target tokens a second", zero=True))
    if shares := history.shares:
        yield figure(_time(shares))


def _scores(validations: list[dict[str, Any]], metric: str) -> list[float]:
    return [event["scores"].get(metric, float("nan")) for event in validations]


def _by_set(validations: list[dict[str, Any]], metric: str) -> Iterator[tuple[str, list[float]]]:
    """The scores of each dev set, where there are several."""
    names = dict.fromkeys(name for event in validations for name in event.get("sets") or {})
    for name in names:
        yield name, [numbers((event.get("sets") or {}).get(name, {})).get(metric, float("nan")) for event in validations]


def _line(name: str, history: History, values: Points, *, weights: Points | None = None, band: bool = True) -> Line:
    """Updates in groups: the mean of each, and its span."""
    groups = np.array_split(np.arange(len(values)), min(POINTS, len(values)))
    update = history.column("update")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # groups without a number are gaps
        finite = np.where(np.isfinite(values), values, np.nan)
        weight = np.ones_like(values) if weights is None else np.where(np.isfinite(finite), weights, np.nan)
        mean = [float(np.nansum(finite[own] * weight[own]) / np.nansum(weight[own])) for own in groups]
        low, high = ([float(np.nanpercentile(finite[own], share)) for own in groups] for share in (LOW, HIGH))
    span = (low, high) if band and len(values) > len(groups) else None
    return Line(name, [float(update[own].mean()) for own in groups], mean, band=span)


def _speed(history: History) -> Line:
    """Tokens of a group over its seconds, not a mean of speeds."""
    tokens, seconds, update = (history.column(name) for name in ("tokens", "seconds", "update"))
    groups = np.array_split(np.arange(len(tokens)), min(POINTS // 2, len(tokens)))
    took = [max(float(np.nansum(seconds[own])), 1e-9) for own in groups]
    return Line(
        "speed", [float(update[own].mean()) for own in groups], [float(tokens[own].sum()) / s for own, s in zip(groups, took, strict=True)]
    )


def _time(shares: dict[str, float]) -> Html:
    """What the time went to, as bars."""
    rest = 1 - sum(shares.values())
    rows = [*shares.items(), *([("other", rest)] if rest >= 0.005 else [])]
    bars = (
        joined((tag("dt", NAMES.get(name, name)), tag("dd", meter(share, title=f"{share:.1%}"), tag("span", f"{share:.1%}"))))
        for name, share in rows
    )
    return joined((tag("h3", "Time went to"), tag("dl", *bars, class_="shares")))
