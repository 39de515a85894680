"""Compiled layers (`train.compile`): torch.compile where it works; where it does not, the plain layers and a warning."""

from __future__ import annotations

import warnings

import torch

from mt.data.meter import Say
from mt.train.precision import autocast
from mt.train.state import State


def compile_layers(state: State, *, say: Say) -> None:
    """Compile each layer of the model, for any number of rows and positions; layers of one kind share the code.

    Whether it works shows in a pass forward and back over some ids, after which gradients and generators are as they were.
    """
    warnings.filterwarnings("ignore", module="torch")  # of its own inner workings, now and whenever it compiles again
    layers = [*state.model.encoder, *state.model.decoder]
    for layer in layers:
        layer.compile(dynamic=True)
    try:
        with torch.random.fork_rng([state.device] if state.device.type == "cuda" else []):
            try_out(state)
    except Exception as error:  # noqa: BLE001 - whatever a compiler runs into, training goes on without it
        for layer in layers:
            layer._compiled_call_impl = None
        torch.compiler.reset()
        what = next(filter(None, str(error).splitlines()), "").strip() or type(error).__name__
        say(f"warning: train.compile: torch.compile does not work here ({what}); training goes on without it")


def try_out(state: State) -> None:
    """One pass forward and back; of different sizes, so that none of them is taken for a constant."""
    src_BS, tgt_BT = (torch.ones(5, length, dtype=torch.int64, device=state.device) for length in (7, 11))
    with autocast(state.precision, state.device):
        loss, _ = state.loss(src_BS, tgt_BT, tgt_BT)
    loss.backward()
    state.optimizer.zero_grad()
