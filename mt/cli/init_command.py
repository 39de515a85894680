"""`mt init`: from a corpus to a config that fits it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mt.errors import ConfigError

if TYPE_CHECKING:
    from mt.config.schema import Corpus, Langs
    from mt.launch.propose import Proposal


def say(line: str) -> None:
    """To stderr, at once."""
    print(line, file=sys.stderr, flush=True)


def init(
    src: Annotated[Path | None, typer.Option(metavar="FILE", help="Source side, one sentence a line.")] = None,
    tgt: Annotated[Path | None, typer.Option(metavar="FILE", help="Target side: line n translates line n.")] = None,
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead: one file with both sides (.tsv .csv .jsonl .tmx .xlf .po).")
    ] = None,
    dev_src: Annotated[Path | None, typer.Option(metavar="FILE", help="Dev set, source side.  [default: held out]")] = None,
    dev_tgt: Annotated[Path | None, typer.Option(metavar="FILE", help="Its target side.")] = None,
    src_lang: Annotated[str | None, typer.Option(metavar="LANG", help="Source language.  [default: by the files' suffixes]")] = None,
    tgt_lang: Annotated[str | None, typer.Option(metavar="LANG", help="Target language.")] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.1, metavar="N", help="Time for training.  [default: what the corpus needs]")
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="The config.  [default: en-de.yaml, by the languages]")] = None,
    device: Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Write over a config that is there.")] = False,
) -> None:
    """Look at a corpus and at this machine, and write a config that fits both, with the reason for each choice.

    Without a dev set, one is held out of the corpus, and a test set as well (docs/split.md). Nothing is trained but a few updates, to see
    how fast that is; the prepared pairs stay in the cache, where `mt train` finds them.

    Examples:

    mt init --src train.en --tgt train.de --minutes 60
    """
    from mt.launch.look import corpus_of

    corpus = corpus_of(src, tgt, pairs)
    dev = corpus_of(dev_src, dev_tgt, None, what="dev-") if dev_src or dev_tgt else None
    langs = _languages(corpus, src_lang, tgt_lang)
    file = output or Path(f"{langs.src}-{langs.tgt}.yaml" if langs else f"{corpus.paths()[0].name.partition('.')[0] or 'corpus'}.yaml")
    _refuse(file, corpus, dev, force=force)

    from mt.files import write_atomic
    from mt.launch.draft import draft
    from mt.launch.look import look
    from mt.launch.propose import measured, propose, where
    from mt.model.device import choose_device
    from mt.train.forecast import duration

    on = choose_device(device)
    seen = look(corpus, langs=langs, say=say)
    say(seen.line())

    def text(proposal: Proposal, folder: Path | None) -> str:
        return draft(proposal, corpus, dev, langs, folder=folder, name=file.name, about=seen.line(), where=where(on))

    pace = measured(text(propose(seen, device=on, minutes=minutes), None), seen, device=device, say=say)
    proposal = propose(seen, device=on, minutes=minutes, pace=pace)
    with write_atomic(file) as out:
        out.write(text(proposal, file.parent))
    print(f"{file}: written, preset {proposal.preset.name}; training will take about {duration(proposal.seconds)}")
    print(f"next: mt train --config {shlex.quote(str(file))}")
    print(f"then: mt translate --model {shlex.quote(f'runs/{file.stem}')} --input FILE")


def _languages(corpus: Corpus, src: str | None, tgt: str | None) -> Langs | None:
    """Those given, else those that the names of the files tell; None where they tell only one."""
    from mt.config.languages import language, named
    from mt.config.schema import Langs

    for option, code in (("--src-lang", src), ("--tgt-lang", tgt)):
        if code is not None and not language(f"x.{code}"):
            raise ConfigError(f"{option} {code}: is no language code; write one such as en, de or pt-BR")
    told = named(corpus)
    both = src or (told.src if told else None), tgt or (told.tgt if told else None)
    if any((src, tgt)) and not all(both):
        raise ConfigError(f"{'--tgt-lang' if src else '--src-lang'}: is missing, and the names of the files do not tell it; add it")
    return Langs(src=both[0], tgt=both[1]) if both[0] and both[1] else None


def _refuse(file: Path, corpus: Corpus, dev: Corpus | None, *, force: bool) -> None:
    """Raise ConfigError for a place that cannot be written to, or where something dear is."""
    if file.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"--output {file}: a config ends in .yaml; write {file.with_suffix('.yaml')}")
    if not file.parent.is_dir():
        raise ConfigError(f"--output {file}: there is no folder {file.parent}")
    if os.path.realpath(file) in {os.path.realpath(path) for one in (corpus, dev) if one for path in one.paths()}:
        raise ConfigError(f"--output {file}: is the corpus; give another name")
    if file.exists() and not (force and file.is_file()):
        cure = "add --force to write over it, or give another --output" if file.is_file() else "give another --output"
        raise ConfigError(f"{file}: is there already; {cure}")
