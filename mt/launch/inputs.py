"""What a run is made from: the tokenizers, and the store of the training pairs. Both are kept in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sentencepiece

from mt.clean.filters import table, table_json
from mt.clean.tally import Tally
from mt.config.directions import tag_of, tags
from mt.config.schema import Config, Corpus
from mt.data.augment import Augmenter
from mt.data.build import Source, build_store
from mt.data.cachedir import CacheDir, key_of
from mt.data.loader import TrainingData
from mt.data.meter import Meter, Say
from mt.data.plan import Span, tempered
from mt.data.store import FORMAT, LENGTHS, Store, is_whole
from mt.doctor.alike import Alike
from mt.errors import DataError, RunError, TokenizerError
from mt.files import sha256, write_atomic, write_folder
from mt.formats.pairs import Pair
from mt.launch.holdout import facts_of_split
from mt.launch.inherit import keep_tokenizers
from mt.launch.sources import check_sources, facts_of, files_of, fingerprints, training_sources
from mt.rundir import RunDir, read_object
from mt.tokenizer.fit import fit_items
from mt.tokenizer.of_run import load_tokenizers
from mt.tokenizer.spm import Tokenizer, Tokenizers
from mt.train.parallel import ALONE, Ranks

# ── tokenizers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fit_tokenizers(config: Config, run: RunDir, cache: CacheDir, prints: dict[str, str], *, say: Say) -> Tokenizers:
    """Train the tokenizer of both sides, or of each, on the training text, or find it in the cache; says what was adjusted."""
    cfg = config.tokenizer
    if config.train.init_from:
        return keep_tokenizers(config, run)
    src_file, tgt_file = run.tokenizer_files(joint=cfg.joint)
    facts = {
        "corpora": [facts_of(corpus, config, prints) for corpus in config.data.train],
        "filters": config.data.filters.model_dump(),
        "tokenizer": cfg.model_dump(exclude={"sample", "joint"}),
        "seed": config.train.seed,
        "versions": [FORMAT, sentencepiece.__version__],
        **facts_of_split(config, cache),
    }
    for path, sides in [(src_file, (0, 1))] if cfg.joint else [(src_file, (0,)), (tgt_file, (1,))]:
        tagged = tags(config) if 0 in sides else ()
        marked = 0 in sides and any(corpus.synthetic for corpus in config.data.train)
        entry = cache.tokenizer(key_of({**facts, "sides": sides, "tags": tagged, **({"marked": True} if marked else {})}))
        cache.obtain(
            entry,
            whole=has_tokenizer,
            make=partial(make_tokenizer, config=config, sides=sides, tagged=tagged, marked=marked, say=say),
            prints=prints,
            what=f"this {path.name}",
            say=say,
        )
        report = json.loads((entry / "report.json").read_text(encoding="utf-8"))
        for line in [
            *report["warnings"],
            f"{report['vocab_size']} pieces{', tags for ' + ', '.join(tagged) if tagged else ''}{', with <bt>' if marked else ''}",
        ]:
            say(f"{path.name}: {line}")
        with write_atomic(path, "wb") as file:
            file.write((entry / "tokenizer.model").read_bytes())
    return load_tokenizers(run, joint=cfg.joint)


def has_tokenizer(entry: Path) -> bool:
    """Whether a whole tokenizer is there, with what there is to say about it."""
    try:
        report = json.loads((entry / "report.json").read_text(encoding="utf-8"))
        return bool(report["model"] == sha256(entry / "tokenizer.model"))
    except (OSError, ValueError, TypeError, KeyError, DataError):
        return False


def make_tokenizer(entry: Path, *, config: Config, sides: tuple[int, ...], tagged: Sequence[str], marked: bool, say: Say) -> None:
    """Train the tokenizer of some sides into a folder, with what there is to say about it."""
    sources = training_sources(config)
    tallies = {source.name: Tally() for source in sources}

    def line_of(item: tuple[Source, Pair]) -> list[str] | None:
        source, pair = item
        kept = list(tallies[source.name].keep([pair], source.reason))
        return [(pair.src, pair.tgt)[side] for side in sides] if kept else None

    with write_folder(entry) as folder, closing(Meter("reading for the tokenizer", say)) as meter:
        items = meter.counted((source, pair) for source in sources for pair in source.pairs)
        try:
            report = fit_items(
                items, line_of, folder / "tokenizer.model", config.tokenizer, tags=tagged, marked=marked, seed=config.train.seed
            )
        except TokenizerError:
            for name, tally in tallies.items():  # where nothing is left of a corpus, that is the reason
                tally.require_pairs(name)
            raise
        model = sha256(folder / "tokenizer.model")
        facts = {"vocab_size": report.vocab_size, "warnings": report.warnings, "model": model}
        (folder / "report.json").write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")


# ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────────


def make_inputs(config: Config, run: RunDir, *, say: Say) -> tuple[Tokenizers, Store]:
    """Tokenizers and store of a new run, made or found in the cache, and in the run what it needs to find them again."""
    cache = CacheDir(config.data.cache)
    prints = fingerprints(config, cache)
    tokenizers = fit_tokenizers(config, run, cache, prints, say=say)
    store = obtain_store(config, cache, prints, tokenizers, say=say)
    note_store(run, store, say=say)
    with write_atomic(run.sources) as file:
        json.dump(prints, file, indent=1)
    return tokenizers, store


def obtain_store(
    config: Config,
    cache: CacheDir,
    prints: dict[str, str],
    tokenizers: Tokenizers,
    *,
    say: Say,
    whole: Callable[[Path], bool] | None = None,
) -> Store:
    """The store of the training pairs, found in the cache if it is `whole` (None: if it opens), or made."""
    facts = {
        "corpora": [facts_of(corpus, config, prints) for corpus in config.data.train],
        "filters": config.data.filters.model_dump(),
        "max_pieces": config.data.max_pieces,
        "tags": tags(config),
        "tokenizers": [tokenizer.fingerprint for tokenizer in tokenizers],
        "version": FORMAT,
        **facts_of_split(config, cache),
    }
    path = cache.store(key_of(facts))
    make = partial(make_store, config=config, tokenizers=tokenizers, say=say)
    cache.obtain(path, whole=whole or opens, make=make, prints=prints, what="the same store", say=say)
    return Store(path)


def note_store(run: RunDir, store: Store, *, say: Say) -> None:
    """Leave the run a pointer to its store, and the table of what was kept and dropped, which is said as well."""
    run.data.mkdir(parents=True, exist_ok=True)
    for file, value in ((run.pointer, pointer_to(store)), (run.filtered, table_json(store.tallies))):
        with write_atomic(file) as out:
            json.dump(value, out, indent=1, ensure_ascii=False)
    for name, tally in store.tallies.items():
        say(tally.line(name))
    if len(store.tallies) > 1 or any(tally.dropped for tally in store.tallies.values()):
        for line in table(store.tallies):
            say(f"  {line}")


def make_store(path: Path, *, config: Config, tokenizers: Tokenizers, say: Say) -> None:
    """Read, filter and encode the training corpora."""
    data, sources, alike = config.data, training_sources(config), Alike.of(config)
    build_store(path, sources, tokenizers, max_pieces=data.max_pieces, duplicates=data.filters.duplicates, alike=alike, say=say)


def opens(path: Path) -> bool:
    """Whether a whole store is there."""
    try:
        return is_whole(path) and len(Store(path)) > 0
    except RunError:
        return False


def pointer_to(store: Store) -> dict[str, Any]:
    """What a run remembers of its store: where it was, and what tells it from others."""
    return {"path": str(store.path), "pairs": len(store), "lengths": sha256(store.path / LENGTHS)}


def same_pairs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two pointers tell of the same pairs, wherever they are."""
    return all(one[name] == other[name] for name in ("pairs", "lengths"))


def open_store(run: RunDir) -> Store:
    """The store of a run. Raises RunError if it is not in the cache any more."""
    return Store(Path(pointer_of(run)["path"]))


def pointer_of(run: RunDir) -> dict[str, Any]:
    """What `pointer_to` gave when the run was prepared."""
    cure = "copy it from a backup, or start over with --overwrite"
    pointer = read_object(run.pointer, cure=cure)
    if not isinstance(pointer.get("path"), str) or not pointer.keys() >= {"pairs", "lengths"}:
        raise RunError(f"{run.pointer}: is damaged; {cure}")
    return {name: pointer[name] for name in ("path", "pairs", "lengths")}


def find_store(config: Config, run: RunDir, cache: CacheDir, tokenizers: Tokenizers, *, say: Say) -> Store:
    """The store of a run that goes on; if it is no longer in the cache it is made again from the sources.

    Raises RunError if they are gone too, or give another store.
    """
    before = pointer_of(run)

    def same(path: Path) -> bool:
        return opens(path) and same_pairs(pointer_to(Store(path)), before)

    if same(Path(before["path"])):
        return Store(Path(before["path"]))
    for file in (file for corpus in config.data.train for file in files_of(corpus)):
        if not file.exists():
            where = f"the prepared pairs are no longer in {before['path']}, nor is {file} to make them again"
            raise RunError(f"{run.path}: cannot resume, {where}; put the file back")
    check_sources(run, cache)
    say(f"{run.path}: the prepared pairs are no longer in {before['path']}, making them again")
    store = obtain_store(config, cache, fingerprints(config, cache), tokenizers, say=say, whole=same)
    if not same_pairs(pointer_to(store), before):
        raise RunError(f"{run.path}: cannot resume, this version of mt prepares other pairs from the same files; start with --run-dir NEW")
    note_store(run, store, say=say)
    return store


def training_data(config: Config, store: Store, tokenizers: Tokenizers, *, workers: int = 0, ranks: Ranks = ALONE) -> TrainingData:
    """The batches of the run, or of one of its ranks."""
    augment = Augmenter(
        config.data.augment,
        sample=config.tokenizer.sample,
        symbols=config.tokenizer.symbols,
        tokenizers=tokenizers,
        max_pieces=config.data.max_pieces,
        seed=config.train.seed,
    )
    return TrainingData(
        store,
        tokenizers,
        spans=weighted(store, config),
        budget=config.train.budget,
        seed=config.train.seed,
        augment=augment,
        prefixes=[prefix_of(corpus, config, tokenizers.src) for corpus in config.data.train],
        workers=workers,
        rank=ranks.rank,
        ranks=ranks.count,
    )


def prefix_of(corpus: Corpus, config: Config, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids before each source of a training corpus: <bt> if it is synthetic, then the tag if there are tags."""
    mark, lang = tokenizer.mark if corpus.synthetic else None, tag_of(config, corpus)
    return (*(() if mark is None else (mark,)), *(() if lang is None else (tokenizer.tag(lang),)))


def weighted(store: Store, config: Config) -> list[Span]:
    """The corpora of the store with their passes per epoch."""
    if config.data.temperature is not None:
        return tempered(store.spans, config.data.temperature)
    return [replace(span, weight=corpus.weight) for span, corpus in zip(store.spans, config.data.train, strict=True)]
