"""Runs as they are found on a disk, written by hand: whatever can be in a journal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mt.config.load import dump
from mt.rundir import RunDir
from tests import toy

EVIL = '<script>alert("x")</script><img src=x onerror=y> & $title'


def run_of(path: Path, events: Iterable[dict[str, Any] | str], *overrides: str) -> RunDir:
    """A run directory with a config and a journal, and no checkpoint."""
    folder = path.parent
    if not (folder / "train.src").exists():
        toy.write_corpus(folder, train=12, dev=4, test=3)
    config = toy.config(folder, *toy.TINY, f"run_dir={path}", *overrides)
    path.mkdir()
    run = RunDir(path)
    run.config.write_text(dump(config), encoding="utf-8")
    lines = (event if isinstance(event, str) else json.dumps(event) + "\n" for event in events)
    run.journal.write_text("".join(lines), encoding="utf-8")
    return run


def update(number: int, **more: Any) -> dict[str, Any]:
    values = {"event": "update", "update": number, "epoch": 0, "loss": 5 - number / 100, "lr": 1e-3, "norm": 1.0, "scale": 1.0}
    return {
        **values,
        "tokens": 100,
        "src_tokens": 90,
        "padded": 220,
        "seconds": 0.5,
        "waited": 0.1,
        "optimizing": 0.1,
        "skipped": False,
        **more,
    }


def validated(number: int, **more: Any) -> dict[str, Any]:
    scores = {"loss": 4 - number / 100, "bleu": number / 10, "chrf": 20.0}
    samples = [{"source": EVIL, "reference": "مرحبا 漢字", "translation": f"<b>{number}</b>", "to": None}]
    values = {"event": "validated", "update": number, "epoch": 0, "scores": scores, "signatures": {"bleu": "tok:13a"}, "beam": 1}
    return {**values, "best": True, "seconds": 2.0, "samples": samples, "sets": {}, "shares": {"model": 0.75, "data": 0.125}, **more}


def ended(number: int, reason: str = "the limit of 4 updates") -> dict[str, Any]:
    return {"event": "ended", "update": number, "reason": reason, "skipped": 0, "epochs": 1, "seconds": 100.0, "shares": {"model": 0.5}}
