"""Compiled layers (`train.compile`): torch.compile where it works; where it does not, the plain layers and a warning."""

from __future__ import annotations

import warnings

import torch

from mt.config.schema import TrainConfig
from mt.data.meter import Say
from mt.train.memory import Shape
from mt.train.state import State
from mt.train.trial import try_out


def compile_layers(state: State, *, cfg: TrainConfig, say: Say) -> None:
    """Compile each layer of the model, for any number of rows and positions; layers of one kind share the code.

    Whether it works shows in a trial, which leaves everything as it was.
    """
    warnings.filterwarnings("ignore", module="torch")  # of its own inner workings, now and whenever it compiles again
    layers = [*state.model.encoder, *state.model.decoder]
    for layer in layers:
        layer.compile(dynamic=True)
    try:
        try_out(state, [Shape(5, 7, 11)], cfg=cfg)  # of different sizes, so that none of them is taken for a constant
    except Exception as error:  # noqa: BLE001 - whatever a compiler runs into, training goes on without it
        for layer in layers:
            layer._compiled_call_impl = None
        torch.compiler.reset()
        what = next(filter(None, str(error).splitlines()), "").strip() or type(error).__name__
        say(f"warning: train.compile: torch.compile does not work here ({what}); training goes on without it")
