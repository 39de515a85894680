"""For tests of translation: a run that needed no training, and the command line within the test's own process."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pytest
import torch

from mt.checkpoint import save_checkpoint
from mt.cli import app
from mt.config.directions import tags
from mt.config.load import dump, load
from mt.data.batches import collate
from mt.data.store import Example
from mt.formats.pairs import Pair
from mt.model.loss import build_loss
from mt.model.packed import unpack
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.tokenizer.fit import fit
from mt.tokenizer.of_run import load_tokenizers
from mt.translator import Translator
from tests import toy

SMALL = [f"model.{value}" for value in ("dim=16", "ffn=16", "heads=2", "encoder_layers=1", "decoder_layers=1", "tied_embeddings=false")]


class Ended(NamedTuple):
    """What a command left: its exit code, the bytes of stdout, the lines of stderr."""

    code: int
    out: bytes
    err: list[str]

    @property
    def lines(self) -> list[str]:
        """The lines of stdout, which end at a line feed and nowhere else."""
        return text_lines(self.out)


def text_lines(text: bytes) -> list[str]:
    """The lines of a file; fails unless the last one is ended too."""
    *lines, rest = text.decode("utf-8").split("\n")
    assert rest == ""
    return lines


class Terminal(io.TextIOWrapper):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


def mt(*words: str | Path, stdin: bytes = b"", typed: BinaryIO | None = None) -> Ended:
    """The real command line, `mt` and these words, with something piped in or typed at a terminal."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = {
        "stdin": Terminal(typed) if typed else io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))),
        "stdout": io.TextIOWrapper(out, encoding="ascii"),
        "stderr": io.TextIOWrapper(err, encoding="ascii"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["mt", *map(str, words)])
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as end:
            app.main()
    for name in ("stdout", "stderr"):
        streams[name].flush()
    assert isinstance(end.value.code, int)
    return Ended(end.value.code, out.getvalue(), text_lines(err.getvalue()))


def lively_run(folder: Path, *overrides: str, checkpoints: Sequence[int] = (1,)) -> RunDir:
    """A run of an untrained model with large weights: it makes something of each line, often up to the length limit.

    Its checkpoints differ; the first is `best`, the last is `last`.
    """
    toy.write_corpus(folder, train=200)
    config = toy.config(folder, *SMALL, *overrides)
    run = RunDir(folder / "run")
    run.checkpoints.mkdir(parents=True)
    sides = [(folder / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("src", "trg")]
    for path, texts in zip(run.tokenizer_files(joint=config.tokenizer.joint), sides, strict=True):
        tagged = tags(config) if path == run.tokenizer_files(joint=config.tokenizer.joint)[0] else ()
        fit(sides[0] + sides[1] if config.tokenizer.joint else texts, path, config.tokenizer, tags=tagged, seed=1)
    tokenizers = load_tokenizers(run, joint=config.tokenizer.joint)
    torch.manual_seed(1)
    model = Transformer.build(config.model, src_vocab=tokenizers.src.size, tgt_vocab=tokenizers.tgt.size, joint=tokenizers.joint)
    state = {"tokenizers": [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint]}
    for update in checkpoints:
        weights = {name: parameter * (2 + update / 10) for name, parameter in model.named_parameters()}
        save_checkpoint(run.step(update), weights=weights, state=state)
    run.set_names(best=run.step(checkpoints[0]), last=run.step(checkpoints[-1]))
    run.config.write_text(dump(config), encoding="utf-8", newline="\n")
    return run


def taught_run(folder: Path, *overrides: str, updates: int = 60, checkpoints: Sequence[int] = (1,)) -> RunDir:
    """A run of a model that has learnt in a second what translations look like, and when they end; not what they are.

    Its checkpoints are as far as their numbers say, the last after all updates: the earlier half-way.
    """
    run = lively_run(folder, *overrides)
    config, tokenizers = load(run.config).config, load_tokenizers(run, joint="tokenizer.joint=false" not in overrides)
    torch.manual_seed(2)
    model = Transformer.build(config.model, src_vocab=tokenizers.src.size, tgt_vocab=tokenizers.tgt.size, joint=tokenizers.joint)
    loss = build_loss(model, config.train, pad=tokenizers.tgt.pad)
    lines = toy.sentences(64, seed=4)
    pairs = [Pair(line, toy.translation(line), "") for line in lines]
    batch = collate([Example(one, tokenizers.src.encode(one.src), tokenizers.tgt.encode(one.tgt)) for one in pairs], tokenizers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    state = {"tokenizers": [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint]}
    for place, update in enumerate(checkpoints):
        for _ in range(updates // len(checkpoints)):
            optimizer.zero_grad()
            total, count = loss(batch.src_BS, batch.inputs_BT, batch.gold_BT)
            (total / count).backward()
            optimizer.step()
        save_checkpoint(run.step(update), weights=dict(model.named_parameters()), state=state)
        run.set_names(**{"last": run.step(update)} | ({"best": run.step(update)} if place == len(checkpoints) - 1 else {}))
    return run


def in_float64(run: RunDir) -> Translator:
    """The best model of a run, in float64: the order of sums decides nothing."""
    translator = Translator.load(run.path)
    return Translator(unpack(translator.model).double(), translator.tokenizers, config=translator.config, device=torch.device("cpu"))
