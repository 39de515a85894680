"""What a tokenizer would make of the corpora: characters it would lose, and pairs that the length limit would cost."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mt.clean.filters import drop_reason, length_reason
from mt.config.load import load
from mt.config.schema import TokenizerConfig
from mt.doctor.findings import Spots
from mt.doctor.looks import Sample
from mt.rundir import RunDir
from mt.tokenizer.fit import fit
from mt.tokenizer.spm import SPACE, Tokenizer, Tokenizers

FIT_PAIRS = 50_000
"""Pairs that the quick tokenizer is trained on at most."""
ROWS = 5000  # pairs encoded at once


def of_run(path: Path) -> Tokenizers:
    """The tokenizers of a run. Raises MTError if there is none."""
    run = RunDir(path)
    run.require()
    src, tgt = run.tokenizer_files(joint=load(run.config).config.tokenizer.joint)
    source = Tokenizer.load(src)
    return Tokenizers(source, source if src == tgt else Tokenizer.load(tgt))


def quick(samples: list[Sample], alphabets: list[set[str]], cfg: TokenizerConfig, *, seed: int, folder: Path) -> Tokenizers:
    """Tokenizers with the settings of a config, trained on a sample of the training pairs and on all their characters, by side.

    Raises TokenizerError if there is no text.
    """
    step = max(1, -(-sum(map(len, samples)) // FIT_PAIRS))

    def texts(sides: tuple[int, ...]) -> Iterator[list[str]]:
        missing = set[str]().union(*(alphabets[side] for side in sides))
        for sample in samples:
            for pair, _ in islice(sample.pairs(), 0, None, step):
                if not drop_reason(pair):
                    texts = [pair.sides[side] for side in sides]
                    missing.difference_update(*texts)
                    yield texts
        yield from ([character] for character in sorted(missing))

    sides: list[tuple[int, ...]] = [(0, 1)] if cfg.joint else [(0,), (1,)]
    models = [fit(texts(which), folder / f"tokenizer.{which[0]}.model", cfg, seed=seed).model for which in sides]
    fitted = [Tokenizer.load(model) for model in models]
    return Tokenizers(fitted[0], fitted[-1])


class Fates(NamedTuple):
    """What becomes of the characters of a side."""

    total: int
    """All of them but white space and control characters."""
    unknown: Counter[str]
    """Those that have no piece, or that normalisation leaves nothing of."""
    spelled: Counter[str]
    """Those that are spelled as bytes."""


def fates(counts: Mapping[str, int], tokenizer: Tokenizer) -> Fates:
    """Try each character of a side on its own."""
    visible = [c for c in counts if not c.isspace() and c != SPACE and unicodedata.category(c) not in ("Cc", "Cs")]
    found = Fates(sum(counts[c] for c in visible), Counter(), Counter())
    for character, ids in zip(visible, tokenizer.encode_batch(visible), strict=True):
        if not ids or tokenizer.unk in ids:
            found.unknown[character] = counts[character]
        elif not tokenizer.byte_pieces.isdisjoint(ids):
            found.spelled[character] = counts[character]
    return found


def too_long(sample: Sample, tokenizers: Tokenizers, *, max_pieces: int) -> Spots:
    """Pairs of a sample that the length limit drops."""
    spots = Spots()
    pairs = sample.pairs()
    while rows := list(islice(pairs, ROWS)):
        ids = [tokenizer.encode_batch([pair.sides[side] for pair, _ in rows]) for side, tokenizer in enumerate(tokenizers)]
        for (pair, place), src_ids, tgt_ids in zip(rows, *ids, strict=True):
            if not drop_reason(pair) and length_reason(src_ids, tgt_ids, max_pieces=max_pieces):
                spots.add(place(0), pair.src, pair.tgt)
    return spots
