"""What a run reads: dev and test sets, training corpora, and the fingerprints of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mt.clean.filters import TextFilters, drop_reason
from mt.clean.partition import Trained, shares_in
from mt.config.dialect import text_of
from mt.config.directions import langs_of, tag_of
from mt.config.schema import Config, Corpus, HubDataset
from mt.config.tree import one_line
from mt.data.build import Source
from mt.data.cachedir import CacheDir
from mt.errors import DataError, RunError
from mt.files import shards
from mt.formats.hub import hub_fingerprint
from mt.formats.pairs import Pair
from mt.formats.readers import read_held_out, read_pairs
from mt.rundir import RunDir, read_object


def read_dev(config: Config) -> dict[str, list[Pair]]:
    """The pairs of each dev set, by its name. Raises DataError if one is empty or broken."""
    found = {name: read_held_out(corpus, langs=langs_of(config, corpus)) for name, corpus in config.data.dev_sets().items()}
    for name, pairs in found.items():
        if all(map(drop_reason, pairs[: config.train.validation.max_lines])):
            raise DataError(f"{name}: every pair has an empty side; give another dev set, or `dev: none`")
    return found


def check_tests(config: Config) -> None:
    """Read the test sets once: what is wrong with them is said before hours of training, not after."""
    for corpus in config.data.test.values():
        read_held_out(corpus, langs=langs_of(config, corpus))


def files_of(corpus: Corpus) -> list[Path]:
    """All files that are read of a corpus; none of a data set that is not on this machine."""
    if isinstance(corpus, HubDataset) and Path(corpus.hub).is_dir():
        return sorted(file for file in Path(corpus.hub).rglob("*") if file.is_file())
    return [file for path in corpus.paths() for file in shards(path)]


def check_files(config: Config) -> None:
    """Raise DataError for a pipe or device in place of a file, as corpora are read more than once, and for a name that is not UTF-8."""
    corpora = (*config.data.train, *config.data.dev_sets().values(), *config.data.test.values())
    for file in (file for corpus in corpora for file in files_of(corpus)):
        if file.exists() and not file.is_file():
            raise DataError(f"{file}: is a pipe or device, and corpora are read more than once; write it to a file")
        if text_of(str(file)) is None:
            raise DataError(f"{one_line(str(file))}: the name of this file is not UTF-8; rename it")


def fingerprints(config: Config, cache: CacheDir) -> dict[str, str]:
    """SHA-256 of each file the run is made from; data sets of a hub are not among them."""
    check_files(config)
    corpora = [*config.data.train, *config.data.dev_sets().values()]
    return cache.digests(file for corpus in corpora for file in files_of(corpus))


def check_sources(run: RunDir, cache: CacheDir) -> None:
    """Raise RunError naming each file that is no longer what the run was made from; one that is gone does no harm yet."""
    before = read_object(run.sources, cure="copy it from a backup, or start over with --overwrite")
    changed = [file for file, digest in before.items() if Path(file).exists() and cache.digest(Path(file)) != digest]
    if changed:
        raise RunError(
            f"{run.path}: cannot resume, the data changed: {', '.join(changed)}; put the old files back, or start with --run-dir NEW"
        )


def facts_of(corpus: Corpus, config: Config, prints: dict[str, str]) -> dict[str, Any]:
    """All that decides what pairs, origins and names a corpus gives: two that agree in this are one. The folders do not count."""
    settings = {name: value for name, value in corpus.model_dump(mode="json").items() if name not in ("weight", "synthetic")}
    for name in type(corpus).model_fields:
        if isinstance(getattr(corpus, name), Path | list):
            del settings[name]
    langs = langs_of(config, corpus)
    files = [(file.name, prints[str(file)]) for file in files_of(corpus)]
    if isinstance(corpus, HubDataset):
        settings["hub"] = Path(corpus.hub).name if Path(corpus.hub).is_dir() else corpus.hub
        settings["version"] = "" if files else hub_fingerprint(corpus, name=corpus.called())
    return {**settings, "name": corpus.called(), "files": files, "langs": langs and langs.model_dump()}


def training_sources(config: Config) -> list[Source]:
    """The training corpora with their filters. Raises ConfigError where a filter needs what is not there."""
    shares, sources = shares_in(config.data), []
    for corpus in config.data.train:
        langs = langs_of(config, corpus)
        reason = TextFilters(config.data.filters, langs)
        kept = Trained(reason, shares) if shares and not corpus.synthetic else reason
        sources.append(Source(corpus.called(), read_pairs(corpus, langs=langs), kept, tag_of(config, corpus)))
    return sources
