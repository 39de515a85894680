"""`mt quickstart`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

import mt
from mt.errors import MTError

CONFIG = "quickstart.yaml"
IN_A_CHECKOUT = "../data/quickstart/"  # where the config finds its corpus there


def quickstart(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where they are written; must not be there yet, or be empty.")] = Path(
        "quickstart"
    ),
) -> None:
    """Write a small English-German corpus and a config that trains on it in three minutes on a processor.

    The sentences are generated: they show how training goes, a score on them says nothing about real text.

    Examples:

    mt quickstart
    """
    from mt.files import write_folder

    next_step = f"mt train --config {shlex.quote(str(folder / CONFIG))}"
    if (folder / CONFIG).is_file():
        raise MTError(f"{folder}: is there already, with its {CONFIG}; go on with {next_step}, or give another folder: mt quickstart DIR")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise MTError(f"{folder}: {'is there already' if folder.is_dir() else 'is a file'}; give another folder: mt quickstart DIR")
    config, corpus = source()
    try:
        with write_folder(folder) as out:
            for file in corpus:
                (out / file.name).write_bytes(file.read_bytes())
            text = config.read_text(encoding="utf-8").replace(IN_A_CHECKOUT, "").replace(f"configs/{CONFIG}", CONFIG, 1)
            (out / CONFIG).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise MTError(f"{folder}: cannot be written ({os.strerror(error.errno or 0).lower()}); give another folder") from None
    print(f"{folder}: written, a corpus and {CONFIG}")
    print(f"next: {next_step}")
    print(f"then: mt translate --model runs/{Path(CONFIG).stem}")


def source() -> tuple[Path, list[Path]]:
    """The config and the six files of its corpus: of an installed wheel within the package, of a checkout where a reader finds them."""
    package = Path(mt.__file__).parent
    inside, checkout = package / "quickstart", package.parent
    config, data = (inside / CONFIG, inside) if inside.is_dir() else (checkout / "configs" / CONFIG, checkout / "data" / "quickstart")
    return config, [data / f"{name}.{side}" for name in ("train", "dev", "test") for side in ("en", "de")]
