"""The dev and test set that are held out of the training corpora where there are none: chosen once, cached, copied into the run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from mt.clean.filters import TextFilters
from mt.clean.partition import Chosen, sets_in, shares_in
from mt.config.cleaning import SplitConfig
from mt.config.directions import CODE, langs_of
from mt.config.schema import Config, Corpus, Langs, TextFiles
from mt.data.cachedir import CacheDir, key_of
from mt.data.meter import Meter, Say
from mt.data.store import FORMAT
from mt.doctor.alike import without_alike
from mt.errors import DataError
from mt.files import sha256, write_atomic, write_folder
from mt.formats.pairs import Pair, counted
from mt.formats.readers import read_pairs
from mt.launch.sources import facts_of, files_of
from mt.rundir import RunDir, read_object

FACTS = "split.json"
GIVE_ONE = "give data.dev, or `dev: none` to train without one"


def hold_out(config: Config, folder: Path, cache: CacheDir, prints: dict[str, str], *, say: Say) -> Config:
    """The config with a dev set, and a test set, out of its training corpora, if it has none; then their files are put into `folder`.

    Raises DataError where there is nothing that could be held out.
    """
    if config.data.dev is not None:
        return config
    corpora = [corpus for corpus in config.data.train if not corpus.synthetic]
    if not corpora:
        raise DataError(f"data.dev: nothing can be held out, as the source of every training pair was made by a model; {GIVE_ONE}")
    cfg = config.data.split or SplitConfig()
    facts = {
        "corpora": [facts_of(corpus, config, prints) for corpus in corpora],
        "filters": config.data.filters.model_dump(),
        "split": cfg.model_dump(),
        "with_test": not config.data.test,
        "version": FORMAT,
    }
    entry = cache.split(key_of(facts))
    make = partial(make_split, config=config, corpora=corpora, cfg=cfg, say=say)
    cache.obtain(entry, whole=has_split, make=make, prints=prints, what="the same split", say=say)
    found = json.loads((entry / FACTS).read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*found["files"], FACTS):
        with write_atomic(folder / name, "wb") as file:
            file.write((entry / name).read_bytes())
    for line in described(found):
        say(line)
    return with_sets(config, found, folder)


def make_split(entry: Path, *, config: Config, corpora: Sequence[Corpus], cfg: SplitConfig, say: Say) -> None:
    """Choose the sets out of these corpora, and write them and all there is to say about them into a folder."""
    chosen = Chosen(cfg, with_test=not config.data.test)
    with closing(Meter("holding out", say)) as meter:
        for corpus in corpora:
            langs = langs_of(config, corpus)
            reason = TextFilters(config.data.filters, langs)
            pairs = (pair for pair in meter.counted(read_pairs(corpus, langs=langs)) if not reason(pair))
            chosen.add(pairs, langs=langs)
    sets = chosen.sets()
    test = [pair for pairs in sets["test"].values() for pair in pairs]
    sets["dev"] = {langs: left for langs, pairs in sets["dev"].items() if (left := without_alike(pairs, test))}
    for part, found in sets.items():
        if (share := chosen.shares._asdict()[part]) and not found:
            what = f"{counted(chosen.pairs, 'pair')} {'is' if chosen.pairs == 1 else 'are'} too few to hold {100 * share:g} % of them out"
            raise DataError(f"data.{part}: {what}; {GIVE_ONE if part == 'dev' else 'give data.test, or set data.split.test: 0'}")
    with write_folder(entry) as folder:
        written = [
            write_set(folder, part, langs, pairs, several=len(groups) > 1)
            for part, groups in sets.items()
            for langs, pairs in groups.items()
        ]
        files = {name: sha256(folder / name) for one in written for name in (one["src"], one["tgt"])}
        facts = {"pairs": chosen.pairs, "shares": chosen.shares._asdict(), "rule": RULE, "sets": written, "files": files}
        (folder / FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def write_set(folder: Path, part: str, langs: Langs | None, pairs: Sequence[Pair], *, several: bool) -> dict[str, Any]:
    """Write the pairs of one direction as two files; what they are."""
    names = file_names(part, langs, several=several)
    for side, name in enumerate(names):
        (folder / name).write_text("".join(f"{pair.sides[side]}\n" for pair in pairs), encoding="utf-8", newline="\n")
    return {"part": part, "pairs": len(pairs), "src": names[0], "tgt": names[1], "langs": langs and langs.model_dump()}


RULE = (
    "The place of a pair is the XXH3 fingerprint (64 bits) of its source without letter case, width, digits, punctuation, symbols and "
    "spacing, divided by 2^64. Below shares.dev it is held out as dev set, from 1 - shares.test on as test set; of pairs that are the same "
    "in this sense one stays. Training leaves these places out, and what is the same as a held-out text, or nearly so, on either side."
)


def file_names(part: str, langs: Langs | None, *, several: bool) -> tuple[str, str]:
    """The files of the two sides of a set; those of several directions tell which."""
    known = langs is not None and langs.src != langs.tgt and all(CODE.fullmatch(code) for code in (langs.src, langs.tgt))
    src, tgt = (langs.src, langs.tgt) if known and langs else ("src", "tgt")
    way = re.sub("[^A-Za-z0-9_-]", "_", f".{langs.src}-{langs.tgt}")[1:] if several and langs else ""
    stem = f"{part}.{way}" if way else part
    return f"{stem}.{src}", f"{stem}.{tgt}"


def has_split(entry: Path) -> bool:
    """Whether whole sets are there."""
    try:
        files = json.loads((entry / FACTS).read_text(encoding="utf-8"))["files"]
        return bool(files) and all(sha256(entry / name) == digest for name, digest in files.items())
    except (OSError, ValueError, TypeError, KeyError, AttributeError, DataError):
        return False


def with_sets(config: Config, found: dict[str, Any], folder: Path) -> Config:
    """The config with the sets that lie in a folder."""
    sets: dict[str, dict[str, Corpus]] = {"dev": {}, "test": {}}
    for one in found["sets"]:
        of_part = [other for other in found["sets"] if other["part"] == one["part"]]
        name = one["part"] if len(of_part) == 1 else Path(one["src"]).stem
        langs = Langs(**one["langs"]) if one["langs"] else None
        own = None if langs == config.langs else langs
        sets[one["part"]][name] = TextFiles(name=name, src=folder / one["src"], tgt=folder / one["tgt"], langs=own)
    dev = next(iter(sets["dev"].values())) if len(sets["dev"]) == 1 else sets["dev"]
    update = {"dev": dev, "test": sets["test"] or config.data.test, "split": SplitConfig(**found["shares"])}
    return config.model_copy(update={"data": config.data.model_copy(update=update)})


def described(found: dict[str, Any]) -> Iterator[str]:
    """What was held out, a line each."""
    for one in found["sets"]:
        share = 100 * found["shares"][one["part"]]
        pairs, files = counted(one["pairs"], "pair"), f"data/split/{one['src']} and {one['tgt']} of the run"
        yield f"{one['part']} set: {pairs} held out, {share:.4g} % by fingerprint; {files}"


def at_home(config: Config, run: RunDir) -> Config:
    """The config of a run with the sets that were held out where they are now: it may have been moved."""
    if not shares_in(config.data) or not run.split.is_dir():
        return config
    return with_sets(config, read_object(run.split / FACTS, cure="copy it from a backup, or start over with --overwrite"), run.split)


def same_split(config: Config, frozen: Config) -> Config:
    """The config of a run that goes on, with the sets that were held out when it began; a share that is another one stays."""
    if config.data.dev is not None or not frozen.data.split:
        return config
    asked, settled = config.data.split or SplitConfig(), frozen.data.split
    split = {part: was if (now := getattr(asked, part)) == "auto" else now for part, was in settled.model_dump().items()}
    data = {"dev": frozen.data.dev, "test": config.data.test or frozen.data.test, "split": SplitConfig(**split)}
    return config.model_copy(update={"data": config.data.model_copy(update=data)})


def facts_of_split(config: Config, cache: CacheDir) -> dict[str, Any]:
    """What of a split decides which pairs are trained on; nothing without one."""
    files = [cache.digest(file) for corpus in sets_in(config.data).values() for file in files_of(corpus)]
    marks = [corpus.synthetic for corpus in config.data.train]
    return {"split": {"shares": shares_in(config.data), "files": files, "synthetic": marks}} if files else {}
