"""What every export has: the model that goes over, the folder it goes to, and beside it what mt needs to translate with it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError

from mt.checkpoint import Weights, check_model, load_weights, read_state, read_weights
from mt.config.dialect import text_of
from mt.config.exports import OWN, left_out
from mt.config.load import dump
from mt.config.schema import Config, DecodeConfig
from mt.config.stage import Stage
from mt.errors import RunError
from mt.files import sync
from mt.formats.pairs import counted
from mt.model.packed import pack, unpack
from mt.rundir import EXPORT_FORMAT, PARTIAL, ExportDir, RunDir
from mt.tokenizer.of_run import check_fingerprints
from mt.train.average import mean
from mt.translator import Translator

POSITIONS = 1024
"""Rows of a table of positions at least: so many pieces of a source CTranslate2 reads unless it is told otherwise."""


class Exporting(NamedTuple):
    """What is exported."""

    run: RunDir
    translator: Translator
    """On the CPU, in fp32."""
    checkpoints: list[str]
    """The one, or those that it is the mean of."""


def load(run: str | Path, checkpoint: str = "best", *, average: int | None = None, weights: Weights | None = None) -> Exporting:
    """A checkpoint of a run, or the mean of its newest ones. Raises MTError for what is missing, broken or does not fit."""
    rundir = RunDir(run)
    if average and checkpoint not in ("best", "last"):
        raise RunError(f"--average {average} is the mean of the last checkpoints; leave out --checkpoint {checkpoint}")
    translator = Translator.load(run, "last" if average else checkpoint, device="cpu", precision="fp32", weights=weights)
    if not average:
        return Exporting(rundir, translator, [rundir.find(checkpoint).name])
    paths = [rundir.step(update) for update in rundir.steps()[-average:]]
    if len(paths) < average:
        raise RunError(f"--average {average}: {run} has {counted(len(paths), 'checkpoint')} (train.keep says how many stay); ask for fewer")
    for path in paths:
        state = read_state(path)
        check_fingerprints(state, translator.tokenizers, source=path)
        check_model(state, translator.config.model, source=path, config=rundir.config)
    model = unpack(translator.model)
    load_weights(model, mean([read_weights(path, weights) for path in paths]), source=rundir.checkpoints)
    pack(model)
    return Exporting(rundir, translator, [path.name for path in paths])


@contextmanager
def made_in(folder: Path, run: str | Path) -> Iterator[Path]:
    """Within, another folder to write into, which takes the place of the first if all goes well: it appears whole or not at all.

    A link stays, and what it points to is made. Raises RunError where there is something already, within the run, where another process
    is at it, and for what the disk refuses.
    """
    place = Path(os.path.realpath(folder))
    try:
        refuse_place(place, folder, run)
        partial = place.with_name(f".{place.name}{PARTIAL}")
        missing = [parent for parent in partial.parents if not parent.exists()]
        with alone_in(partial, folder):
            try:
                yield partial
                for path in (*partial.rglob("*"), partial):
                    sync(path)
                partial.rename(place)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                with suppress(OSError):
                    for parent in missing:
                        parent.rmdir()
                raise
        with suppress(PermissionError):  # a folder that may be written to but not listed
            sync(place.parent)
    except (OSError, SafetensorError) as error:  # a full disk is no OSError to safetensors
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise RunError(f"{folder}: cannot be written ({reason}); give another folder") from None


def refuse_place(place: Path, folder: Path, run: str | Path) -> None:
    """Raise RunError where no export can appear: `place` is where `folder` leads."""
    if text_of(str(place)) is None:
        raise RunError(f"{folder}: the name of this path is not UTF-8; give another folder")
    if place.is_relative_to(os.path.realpath(run)):
        raise RunError(f"{folder}: lies in the run; give a folder outside of it")
    if place.is_symlink():
        raise RunError(f"{folder}: is a link that leads to itself; remove it, or give another folder")
    if not place.exists():
        return
    if not place.is_dir() or any(place.iterdir()):
        raise RunError(f"{folder}: is there already; remove it, or give another folder")
    if os.path.ismount(place) or place.samefile(os.curdir):
        what = "a disk of its own" if os.path.ismount(place) else "the current folder"
        raise RunError(f"{folder}: is {what}, and no other can take its place; give a folder in it, such as {folder / 'exported'}")


@contextmanager
def alone_in(partial: Path, folder: Path) -> Iterator[None]:
    """Within, an empty folder that no other process writes into; what a killed one left there is gone.

    Raises RunError where another process has it, or where it is no folder.
    """
    if partial.is_symlink() or (partial.exists() and not partial.is_dir()):
        raise RunError(f"{partial}: is in the way of {folder}, as that is written there first; remove it, or give another folder")
    partial.mkdir(parents=True, exist_ok=True)
    handle = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(handle), partial.stat()):  # the other has just come to its end
                raise BlockingIOError
        except BlockingIOError:
            raise RunError(f"{folder}: another process is writing it; wait for it, or give another folder") from None
        except OSError:  # a file system without locks
            pass
        for path in partial.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        yield
    finally:
        os.close(handle)


def put_beside(folder: Path, exporting: Exporting) -> None:
    """Put beside a model what mt needs to translate with it, but for the facts: tokenizers and settings (`mt.yaml`)."""
    run, translator, _ = exporting
    for file in dict.fromkeys(run.tokenizer_files(joint=translator.tokenizers.joint)):
        shutil.copyfile(file, folder / file.name)
    ExportDir(folder).config.write_text(dump(portable(translator.config)), encoding="utf-8", newline="\n")


def write_facts(folder: Path, exporting: Exporting, program: str, facts: dict[str, Any]) -> None:
    """Write `mt.json`: what an export was made from, for which program, and what else is known of it."""
    run, translator, checkpoints = exporting
    origin = {
        "format": EXPORT_FORMAT,
        "program": program,
        "run": run.path.resolve().name,
        "checkpoints": checkpoints,
        "tokenizers": [tokenizer.fingerprint for tokenizer in translator.tokenizers],
    }
    write_json(ExportDir(folder).facts_file, origin | facts)


def write_json(path: Path, value: Any) -> None:
    """To be read by people, too."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")


def portable(config: Config) -> Config:
    """The settings without the folders of whoever trained it, and without what only mt's own searches know."""
    defaults = {name: DecodeConfig.model_fields[name].get_default(call_default_factory=True) for name in OWN}
    data = config.data.model_copy(update={"test": {}, "cache": type(config.data).model_fields["cache"].default})
    return config.model_copy(update={"data": bare(data), "decode": config.decode.model_copy(update=defaults), "run_dir": None})


def bare(value: Any) -> Any:
    """The same with names in place of paths."""
    if isinstance(value, Stage):
        return value.model_copy(update={name: bare(getattr(value, name)) for name in type(value).model_fields})
    if isinstance(value, Path):
        return Path(value.name)
    if isinstance(value, dict):
        return {key: bare(one) for key, one in value.items()}
    return type(value)(map(bare, value)) if isinstance(value, list | tuple) else value


def positions(config: Config) -> int:
    """Rows of the table of positions that goes along: enough for the longest source with its tag and its end, and the longest output."""
    return max(POSITIONS, config.data.max_pieces + 2, longest_output(config))


def longest_output(config: Config) -> int:
    """Pieces, the end counted, of the longest output for the longest source; as `Translator.limit` has it."""
    return int(config.decode.max_length_factor * config.data.max_pieces) + config.decode.max_length_extra


def losses(config: Config) -> Iterator[str]:
    """What the run asks for that its export cannot do, a line each."""
    for name in left_out(config):
        yield f"{name} is not in the export: only mt's own searches know it"
