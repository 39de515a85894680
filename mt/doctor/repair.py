"""A cleaned copy of the training corpora: what can be mended without a guess is mended, what harms is left out and written down.

Mended, in this order: a byte order mark goes, wherever it is; so do soft hyphens, NUL and other control characters; a carriage return at
the end of a line goes, others become a space, and so do U+2028, VT, FF and their like; then text is composed (NFC, equal to what it
was by Unicode's definition). Mojibake, U+0080 to U+009F, private-use characters and U+FFFD are left alone: what they stood for would be a
guess, and without it more than they would be lost.

Left out, for the first reason that holds: rows with the wrong number of columns, bytes that are not UTF-8, what the file itself marks as
unfit, an empty side, what the filters of the config drop, pairs met before (normalised if data.filters.duplicates says so, else exactly
equal), and pairs a side of which is in a dev or test set, nearly the same included.
"""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import numpy as np

from mt.clean.duplicates import Seen, fingerprint
from mt.clean.filters import TextFilters
from mt.config.directions import tag_of
from mt.config.schema import Config
from mt.doctor.characters import NO_CHARACTERS, SEPARATORS
from mt.doctor.doctor import NamedCorpus, Say, inputs, named_corpora, silent
from mt.doctor.findings import Diagnosis, legible, number
from mt.doctor.leakage import HeldOut, Leaks
from mt.doctor.reading import Advance, Block, Reading, plain
from mt.errors import DataError
from mt.files import write_atomic
from mt.formats.pairs import Pair, one_line

BEYOND = "unreadable", "no_pairs", "line_counts", "alignment"
"""Findings that no copy can mend."""
_GONE = re.compile(f"[\ufeff\u00ad\x00-\x08\x0e-\x1b\x1f\x7f{''.join(map(chr, NO_CHARACTERS))}]")
_SPACED = re.compile(f"[\r{SEPARATORS}]")


def mended(text: str) -> str:
    """The text with all repairs; the same object if there are none."""
    if text.isascii() and text.isprintable():
        return text
    text = _SPACED.sub(" ", _GONE.sub("", text))
    return unicodedata.normalize("NFC", text)


class _Copy:
    """The files of a repair, being written."""

    def __init__(self, stack: ExitStack, prefix: Path, corpora: list[NamedCorpus]) -> None:
        self.files = {named.name: paths_of(prefix, named, several=len(corpora) > 1) for named in corpora}
        self.dropped_file = dropped_file(prefix)
        self._texts = {name: [stack.enter_context(write_atomic(path)) for path in paths] for name, paths in self.files.items()}
        self._dropped = stack.enter_context(write_atomic(self.dropped_file))
        self.kept, self.mended = Counter[str](), Counter[str]()
        self.reasons: dict[str, Counter[str]] = {named.name: Counter() for named in corpora}

    def keep(self, name: str, pair: Pair, *, mended: bool) -> None:
        self.kept[name] += 1
        self.mended[name] += mended
        for file, text in zip(self._texts[name], pair.sides, strict=True):
            file.write(text + "\n")

    def drop(self, name: str, pair: Pair, reason: str) -> None:
        self.reasons[name][reason] += 1
        self._dropped.write("\t".join((legible(pair.origin), reason, one_line(legible(pair.src)), one_line(legible(pair.tgt)))) + "\n")

    def flush(self) -> None:
        """Have all on the disk before the first file gets its name: if there is no room for one, there is none of them."""
        files: list[TextIO] = [self._dropped, *(file for texts in self._texts.values() for file in texts)]
        for file in files:
            file.flush()
            os.fsync(file.fileno())


def repair(config: Config, prefix: Path, diagnosis: Diagnosis, *, advance: Advance = silent, say: Say = silent) -> list[str]:
    """Write the cleaned copy and PREFIX.dropped.tsv, whole or not at all; a line about each corpus.

    The copy is PREFIX.en and PREFIX.de, by the languages, else PREFIX.src and PREFIX.tgt; of several training corpora PREFIX.NAME.en and so
    on. Raises DataError if the sides of any corpus do not belong together as they are, or a file cannot be written.
    """
    corpora = named_corpora(config)
    train = [named for named in corpora if named.role == "train"]
    for finding in diagnosis.findings:
        if finding.kind in BEYOND:
            raise DataError(f"--fix {prefix}: nothing written, for {finding.corpus} has to be mended by hand first: {finding.what}")
    say("reading the dev and test sets")
    held_out = HeldOut({named.name: _usable(named, advance) for named in corpora if named.role != "train"})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mt-check-")))
        seen = stack.enter_context(Seen(folder))
        copy = _Copy(stack, prefix, train)
        for named in train:
            say(f"writing a clean copy of {named.name}")
            _clean(named, config, copy, seen, held_out, advance)
        copy.flush()
    return [_report(named.name, copy) for named in train]


def _clean(named: NamedCorpus, config: Config, copy: _Copy, seen: Seen, held_out: HeldOut, advance: Advance) -> None:
    """Pass on one corpus, pair by pair, to what is kept and what is dropped."""
    filters = TextFilters(config.data.filters, named.langs)
    kind, tag = config.data.filters.duplicates or "exact", tag_of(config, named.corpus)
    reading = Reading(named.corpus, named.langs, advance, lambda pair: copy.drop(named.name, pair, str(pair.flaw)))
    for block in reading.blocks():
        pairs: list[Pair] = []
        changed: list[bool] = []
        for pair in _pairs(block):
            if reason := "bytes that are not UTF-8" if broken(pair) else filters(clean := _mended(pair)):
                copy.drop(named.name, pair, reason)
            else:
                pairs.append(clean)
                changed.append(clean.sides != pair.sides)
        known = seen.add(np.array([fingerprint(pair, kind, tag=tag) for pair in pairs], dtype=np.uint64))
        leaking = set(Leaks(held_out).look([pair.src for pair in pairs], [pair.tgt for pair in pairs], pairs.__getitem__))
        for row, pair in enumerate(pairs):
            if known[row] or row in leaking:
                copy.drop(named.name, pair, "duplicate" if known[row] else "in a dev or test set")
            else:
                copy.keep(named.name, pair, mended=changed[row])
    if reading.unreadable or reading.uneven:  # there was nothing like it at the examination
        raise DataError(f"{named.name}: was changed while it was read, nothing is written; check it again")


def _pairs(block: Block) -> Iterator[Pair]:
    """The pairs of a block as training reads them."""
    src, tgt = (plain(lines, begins=block.places.begins) for lines in (block.src, block.tgt))
    for row, texts in enumerate(zip(src, tgt, strict=False)):
        yield Pair(*texts, block.places.of(row))


def _usable(named: NamedCorpus, advance: Advance) -> list[Pair]:
    """The pairs of a dev or test set that can be compared."""
    blocks = Reading(named.corpus, named.langs, advance).blocks()
    return [pair for block in blocks for pair in _pairs(block) if not broken(pair)]


def broken(pair: Pair) -> bool:
    """Whether a side holds bytes that are not UTF-8."""
    return any("\udc80" <= character <= "\udcff" for text in pair.sides if not text.isascii() for character in text)


def _mended(pair: Pair) -> Pair:
    return Pair(mended(pair.src), mended(pair.tgt), pair.origin)


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def paths_of(prefix: Path, named: NamedCorpus, *, several: bool) -> tuple[Path, Path]:
    """Where the two sides of the copy of a corpus go."""
    langs = named.langs
    src, tgt = (langs.src, langs.tgt) if langs and langs.src != langs.tgt else ("src", "tgt")
    stem = ".".join((prefix.name, re.sub(r"[^\w.-]+", "_", named.name))) if several else prefix.name
    return prefix.with_name(f"{stem}.{src}"), prefix.with_name(f"{stem}.{tgt}")


def dropped_file(prefix: Path) -> Path:
    """Where goes what is left out."""
    return prefix.with_name(f"{prefix.name}.dropped.tsv")


def refuse_overwriting(config: Config, prefix: Path) -> None:
    """Raise DataError if a file of the copy is there already, whatever it is, or if two corpora would have the same file."""
    if not prefix.name:
        raise DataError(f"--fix {prefix}: is a folder; give the beginning of names in it, as in {prefix / 'clean'}")
    train = [named for named in named_corpora(config) if named.role == "train"]
    paths = [path for named in train for path in paths_of(prefix, named, several=len(train) > 1)]
    read = {os.path.realpath(path) for path in inputs(config)}
    for path in (*paths, dropped_file(prefix)):
        if os.path.realpath(path) in read:
            raise DataError(f"--fix {prefix}: would write over {path}, which is read; give another prefix")
        if path.exists():
            raise DataError(f"--fix {prefix}: {path} is there already; remove it, or give another prefix")
        if paths.count(path) > 1:
            raise DataError(f"--fix {prefix}: two corpora would be written to {path}; give them names that differ in more than punctuation")


def _report(name: str, copy: _Copy) -> str:
    reasons = copy.reasons[name]
    total = copy.kept[name] + reasons.total()
    dropped = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    where = " and ".join(map(str, copy.files[name]))
    mended = f", {copy.mended[name]} of them mended" if copy.mended[name] else ""
    left_out = f"; left out, in {copy.dropped_file}: {dropped}" if dropped else ""
    return f"{name}: {copy.kept[name]} of {number(total, 'pair')} written to {where}{mended}{left_out}"
