"""`mt data check`: looks at corpora before training."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from mt.errors import DataError, MTError
from mt.files import write_atomic

if TYPE_CHECKING:
    from mt.config.schema import Config, Langs
    from mt.doctor.findings import Diagnosis

DASH = Path("-")
LINE_EVERY = 10.0  # seconds between plain lines where there is no terminal


def check(
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings, in YAML: all their corpora.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, as in data.max_pieces=200; repeatable.")
    ] = None,
    src: Annotated[Path | None, typer.Option(metavar="FILE", help="Instead of settings: source side of one corpus.")] = None,
    tgt: Annotated[Path | None, typer.Option(metavar="FILE", help="Its target side.")] = None,
    langs: Annotated[str | None, typer.Option(metavar="en-de", help="Its languages.  [default: by the files' suffixes]")] = None,
    model: Annotated[Path | None, typer.Option(metavar="RUN", help="Ask this run's tokenizer, instead of one made from a sample.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", readable=False, metavar="FILE", help="Write all as JSON; - prints nothing else.")
    ] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", readable=False, metavar="FILE", help="Write a page with examples; - as above.")
    ] = None,
    fix: Annotated[
        Path | None, typer.Option(metavar="PREFIX", help="Write a clean copy of the training data, and what was left out.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there are warnings.")] = False,
) -> None:
    """Examine corpora before training: encoding, alignment, duplicates, leakage of test sets, odd pairs, tokenised text and more.

    Prints errors, warnings and notes, each with its count, share, first places and cure. Exit code: 0, or 1 for warnings with --strict,
    or 2 for errors. --fix PREFIX writes PREFIX.en, PREFIX.de (by the languages) and PREFIX.dropped.tsv; no input is ever changed.

    Examples:

    mt data check --src train.en --tgt train.de

    mt data check --config my.yaml --html report.html
    """
    settings = _settings(config, overrides, src, tgt, langs)
    _places_to_write(settings, json_file, html_file, fix)  # before the work, not after it

    from mt.doctor.doctor import Doctor, size
    from mt.doctor.findings import legible
    from mt.doctor.kinds import Severity
    from mt.doctor.pieces import of_run
    from mt.doctor.repair import repair

    tokenizers = of_run(model) if model else None
    total = size(settings)
    with Progress.shown(total) as progress:
        diagnosis = Doctor(settings, tokenizers=tokenizers, advance=progress.advance, say=progress.say).examine()
    _report(diagnosis, json_file, html_file, title=legible(str(config or src)))
    if fix:
        with Progress.shown(total) as progress:
            report = repair(settings, fix, diagnosis, advance=progress.advance, say=progress.say)
        for line in report:
            print(legible(line), file=sys.stderr)
    if diagnosis.worst == Severity.ERROR:
        raise typer.Exit(2)
    if strict and diagnosis.worst == Severity.WARNING:
        raise typer.Exit(1)


def _settings(config: Path | None, overrides: list[str] | None, src: Path | None, tgt: Path | None, langs: str | None) -> Config:
    """The settings asked for, or those of two files. Raises MTError for options that do not go together."""
    if config and (src or tgt):
        raise MTError("--config and --src: give one of the two, settings or the two files of a corpus")
    if config:
        if langs:
            raise MTError("--langs goes with --src and --tgt; with --config use --set 'langs={src: en, tgt: de}'")
        return _loaded(config, overrides or [])
    if not src or not tgt:
        missing = "--tgt" if src else "--src" if tgt else "--config FILE, or --src FILE and --tgt FILE"
        raise MTError(f"nothing to compare: add {missing}" if src or tgt else f"nothing to examine: give {missing}")
    if overrides:
        raise MTError("--set goes with --config: add it")
    from mt.config.languages import infer
    from mt.config.schema import Config, DataConfig, TextFiles

    data = DataConfig(train=[TextFiles(src=src, tgt=tgt)], dev="none")
    return Config(data=data, langs=_languages(langs) if langs else infer(data))


def _loaded(config: Path, overrides: list[str]) -> Config:
    from mt.clean.filters import refuse_what_cannot_filter
    from mt.config.load import load

    loaded = load(config, overrides)
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    refuse_what_cannot_filter(loaded.config)
    return loaded.config


def _languages(text: str) -> Langs:
    """Two codes from `en-de`; a colon where a code holds a hyphen itself, as in `pt-BR:en`."""
    from mt.config.languages import language
    from mt.config.schema import Langs

    codes = text.split(":" if ":" in text else "-")
    if len(codes) != 2 or not all(codes):
        raise MTError(f"--langs {text}: expected two language codes, as in en-de or pt-BR:en")
    for code in codes:
        if not language(f"x.{code}"):
            raise MTError(f"--langs {text}: {code!r} is no language code; write codes, as in en-de or pt-BR:en")
    return Langs(src=codes[0], tgt=codes[1])


def _places_to_write(settings: Config, json_file: Path | None, html_file: Path | None, fix: Path | None) -> None:
    """Raise MTError for a report or a copy that could not be written, or would be written over something dear."""
    from mt.doctor.doctor import inputs
    from mt.doctor.repair import refuse_overwriting

    if json_file and json_file == html_file:
        raise MTError(f"--json {json_file} and --html {json_file}: give one of them another file")
    for path in (json_file, html_file, fix):
        if path and path != DASH and not path.parent.is_dir():
            raise DataError(f"{path}: there is no folder {path.parent}")
    read = {os.path.realpath(path) for path in inputs(settings)}
    for path in (json_file, html_file):
        if path and os.path.realpath(path) in read:
            raise DataError(f"{path}: would be written over, but is one of the files to check; give another name")
    if fix:
        refuse_overwriting(settings, fix)


def _report(diagnosis: Diagnosis, json_file: Path | None, html_file: Path | None, *, title: str) -> None:
    """Write what was found to where it is wanted."""
    from mt.doctor.page import page
    from mt.doctor.summary import lines

    if DASH not in (json_file, html_file):
        for line in lines(diagnosis):
            print(line)
    if html_file:
        with writing(html_file) as file:
            file.write(page(diagnosis, title=f"Data check of {title}"))
    if json_file:
        with writing(json_file) as file:
            json.dump(diagnosis.as_json(), file, ensure_ascii=False, indent=2)
            file.write("\n")


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A file, or stdout."""
    if path == DASH:
        yield sys.stdout
        return
    with write_atomic(path) as file:
        yield file


class Progress:
    """A bar over the bytes of the files in a terminal; elsewhere a plain line every some seconds."""

    def __init__(self, total: int) -> None:
        from tqdm import tqdm

        self._total, self._done = total, 0
        self._next_line = time.monotonic() + LINE_EVERY
        self._doing = ""
        terminal = sys.stderr.isatty()
        self._bar = tqdm(total=total, unit="B", unit_scale=True, file=sys.stderr, disable=not terminal, leave=False, dynamic_ncols=True)

    @classmethod
    @contextmanager
    def shown(cls, total: int) -> Iterator[Progress]:
        """Shown while it lasts."""
        progress = cls(total)
        try:
            yield progress
        finally:
            progress._bar.close()

    def advance(self, count: int) -> None:
        """So many more bytes are read."""
        self._done += count
        self._bar.update(count)
        self._line()

    def say(self, what: str) -> None:
        """What is being done now."""
        self._doing = what
        self._bar.set_description_str(what)
        self._line()

    def _line(self) -> None:
        if self._bar.disable and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_EVERY
            print(f"{self._doing}, {self._done / self._total if self._total else 1:.0%} of all bytes read", file=sys.stderr, flush=True)
