"""Lines in buckets: by length, by numbers, names and rare words in them, by how hard they are. What one system is better at shows there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mt.evaluate.doubts import UNSPACED

PARTS = 4
"""Buckets of a division by a number, of about as many lines each."""
WORD = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\w)+")
SENTENCE_STARTS = re.compile(r"[.!?:…\"“„«»‚‘()\[\]–—]")


@dataclass(frozen=True)
class Division:
    """Each line's bucket, as the number of its label."""

    title: str
    labels: tuple[str, ...]
    bucket_of: tuple[int, ...]

    def lines(self, bucket: int) -> list[int]:
        """The lines in a bucket, from 0."""
        return [line for line, own in enumerate(self.bucket_of) if own == bucket]


def words(line: str) -> list[str]:
    """What counts as a word: letters and digits between others; a character, where a script has no spaces."""
    return WORD.findall(line)


def divisions(
    sources: Sequence[str] | None,
    references: Sequence[str],
    *,
    langs: tuple[str | None, str | None],
    counts: Counter[str] | None = None,
    rare: int = 5,
) -> list[Division]:
    """All that the files tell: of the source if there is one, else of the reference.

    `counts`, from `seen`, are of words of the source; `langs` are the languages of both sides.
    """
    side, lines = ("source", sources) if sources is not None else ("reference", references)
    found = [by_length(lines, side=side), by_numbers(lines, side=side)]
    spelt = [("source", sources, langs[0]), ("reference", references, langs[1])]
    named = next(((name, text) for name, text, lang in spelt if text is not None and not _capitalises_nouns(lang)), None)
    if named:
        found.append(by_names(named[1], side=named[0]))
    if counts:
        found.append(by_rarity(lines, counts, rare=rare, side=side))
    return found


def by_length(lines: Sequence[str], *, side: str) -> Division:
    """By the number of words."""
    return _by_size(f"length of the {side}, in words", [len(words(line)) for line in lines], str)


def by_difficulty(scores: Sequence[float]) -> Division:
    """By the mean score of all systems, hardest first. By that of one system, others would be better where it was bad by chance."""
    return _by_size("difficulty: the mean chrF2 of all systems", scores, lambda score: f"{score:.0f}", between="to")


def by_numbers(lines: Sequence[str], *, side: str) -> Division:
    """By whether there is a digit."""
    return _yes_or_no(f"numbers in the {side}", "a number", [any(map(str.isdigit, line)) for line in lines])


def by_names(lines: Sequence[str], *, side: str) -> Division:
    """By whether a word within a sentence begins with a capital: not for German, where every noun does."""
    return _yes_or_no(f"names in the {side}: capitals within a sentence", "a name", [_has_name(line) for line in lines])


def by_rarity(lines: Sequence[str], counts: Counter[str], *, rare: int, side: str) -> Division:
    """By the rarest word: how often it was seen in training."""
    least = [min((counts[word.casefold()] for word in words(line)), default=rare) for line in lines]
    labels = (f"{rare} times or more", f"less than {rare} times", "never")
    return Division(
        f"the rarest word of the {side}: how often it was seen in training",
        labels,
        tuple(0 if seen >= rare else 1 if seen else 2 for seen in least),
    )


def seen(training: Iterable[str], lines: Sequence[str]) -> Counter[str]:
    """How often each word of some lines occurs in the training text, whatever its case."""
    wanted = {word.casefold() for line in lines for word in words(line)}
    return Counter(word for line in training for word in words(line.casefold()) if word in wanted)


def useful(divisions: Iterable[Division]) -> list[Division]:
    """Those that divide anything, without empty buckets."""
    return [_without_empty(one) for one in divisions if len(set(one.bucket_of)) > 1]


def _without_empty(division: Division) -> Division:
    filled = sorted(set(division.bucket_of))
    return Division(
        division.title, tuple(division.labels[bucket] for bucket in filled), tuple(filled.index(bucket) for bucket in division.bucket_of)
    )


def _by_size(title: str, sizes: Collection[float], said: Callable[[float], str], between: str = "–") -> Division:
    """Buckets of about equal size, smallest values first; equal values stay together."""
    values = np.array(list(sizes))
    edges = np.unique(np.quantile(values, np.arange(1, PARTS) / PARTS, method="inverted_cdf"))
    bucket_of = np.searchsorted(edges, values)
    labels = []
    for bucket in range(len(edges) + 1):
        inside = values[bucket_of == bucket]
        low, high = (said(inside.min()), said(inside.max())) if len(inside) else ("", "")
        labels.append(low if low == high else f"{low} {between} {high}" if between.isalpha() else f"{low}{between}{high}")
    return Division(title, tuple(labels), tuple(bucket_of.tolist()))


def _yes_or_no(title: str, what: str, has: Sequence[bool]) -> Division:
    return Division(title, (f"without {what}", f"with {what}"), tuple(map(int, has)))


def _capitalises_nouns(lang: str | None) -> bool:
    return re.split("[-_]", (lang or "").lower())[0] in ("de", "deu", "lb", "ltz", "nds", "gsw")


def _has_name(line: str) -> bool:
    """Whether a word of two letters or more begins with a capital that no beginning of a sentence explains."""
    found = list(re.finditer(r"\w+", line))
    return any(
        len(word[0]) > 1 and word[0][0].isupper() and not SENTENCE_STARTS.search(line, before.end(), word.start())
        for before, word in zip(found, found[1:], strict=False)
    )
