"""`mt train`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)


def train(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="Settings, in YAML; see `mt config explain`.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, as in train.seed=2; repeatable.")
    ] = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", metavar="DIR", help="Where the run is kept, instead of run_dir.")] = None,
    init_from: Annotated[
        Path | None, typer.Option("--init-from", metavar="RUN", help="Start from the best weights of another run, with its tokenizer.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in its directory; starts it if there is none.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start over, in place of the run that is in the directory.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Train nothing; say what it takes of memory, time and disk, and what is doubtful.")
    ] = False,
    device: Annotated[str | None, typer.Option("--device", metavar="D", help="auto, cpu, cuda or mps, instead of train.device.")] = None,
) -> None:
    """Train a model: raw text in, a run directory out, with the tokenizer, checkpoints, the journal and TensorBoard's files in it.

    Ctrl-C (or SIGTERM) finishes the update and saves; --resume goes on from there. At the end the test sets of the config are scored.

    On several GPUs or machines: torchrun --nproc-per-node N -m mt train ...
    """
    from mt.config.load import load
    from mt.errors import ConfigError
    from mt.launch.run import train_run
    from mt.train.parallel import started

    if resume and overwrite:
        raise ConfigError("--resume goes on with a run, --overwrite replaces it: give one of them")
    if resume and dry_run:
        raise ConfigError("--dry-run looks at a run before it begins, --resume goes on with one: give one of them")
    paths = {"run_dir": run_dir, "train.init_from": init_from}
    given = [f"{key}={json.dumps(os.path.realpath(path), ensure_ascii=False)}" for key, path in paths.items() if path]
    changes = [*(overrides or ()), *given]
    with started() as ranks:
        tell = say if ranks.leads else lambda _line: None
        loaded = ranks.first(lambda: load(config, changes))
        for warning in loaded.warnings:
            tell(f"warning: {warning}")
        where = device or loaded.config.train.device
        code = train_run(loaded.config, resume=resume, overwrite=overwrite, dry_run=dry_run, device=where, say=tell, ranks=ranks)
    raise typer.Exit(code)
