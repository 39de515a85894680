"""From what was counted in a corpus to findings: a sentence, a severity and a cure for each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from mt.config.schema import FilterConfig
from mt.doctor.examine import Examination
from mt.doctor.findings import EXAMPLES, CorpusFacts, Finding, Spots, example, legible, number, sentence
from mt.doctor.kinds import BOUNDS, WORDS, Severity
from mt.doctor.leakage import HeldOut, Leaks
from mt.doctor.lengths import FACTOR, FilePair
from mt.doctor.looks import Look
from mt.doctor.pieces import Fates
from mt.doctor.reading import COLUMNS
from mt.formats.pairs import Pair

SIDES = "source", "target"


def judged(facts: CorpusFacts, exam: Examination, looks: list[Look], filters: FilterConfig | None) -> Iterator[Finding]:
    """The findings on one corpus, in the order of kinds; `facts` gets its counts. `filters` are those that it will pass, if any."""
    found = [*_files(facts, exam)]
    for (kind, side), spots in exam.spots.items():
        found.append(_finding(facts, kind, side, spots, exam.pairs if side is None else exam.lines[side]))
    for look in looks:
        sample = len(exam.sample) < exam.sample.seen or (look.of < len(exam.sample) and not look.telling)
        found.append(_finding(facts, look.kind, look.side, look.spots, look.of, sample=sample, telling=look.telling))
    found = [finding for finding in found if finding.count]
    for flaw, spots in exam.reading.flaws.items():
        kind, more = ("columns", "") if flaw == COLUMNS else ("flawed", f"({flaw})")
        found.append(_finding(facts, kind, None, spots, facts.pairs, more=more))
    for finding in found:
        facts.counts[finding.kind] += finding.count
    order = list(BOUNDS)
    found.sort(key=lambda finding: order.index(finding.kind))
    foreign = Counter(finding.kind for finding in found if finding.kind in ("script", "language") and finding.share > 0.5)
    for finding in found:
        if foreign[finding.kind] == len(SIDES):
            yield replace(finding, cure="are the sides swapped, or are these other languages than their names say?")
        elif BOUNDS[finding.kind].severity(finding.share) is not None:
            yield _with_cure(finding, exam, filters)


def _finding(
    facts: CorpusFacts, kind: str, side: int | None, spots: Spots, of: int, *, sample: bool = False, telling: bool = False, more: str = ""
) -> Finding:
    """A finding on some of the pairs or lines."""
    noun = "pair" if side is None else f"{'telling ' if telling else ''}{SIDES[side]} line"
    what = sentence(spots.count, of, noun, WORDS[kind].says) + (f" {more}" if more else "") + (" (in a sample)" if sample else "")
    return _new(facts, kind, SIDES[side] if side is not None else None, spots.count, of, what, [example(pair) for pair in spots.examples])


def _new(facts: CorpusFacts, kind: str, side: str | None, count: int, of: int, what: str, examples: list[dict[str, str]]) -> Finding:
    share = min(1.0, count / of) if of else float(count > 0)
    severity = BOUNDS[kind].severity(share) or Severity.NOTE
    return Finding(kind, severity, facts.name, side, count, share, legible(what), WORDS[kind].cure, examples)


def _with_cure(finding: Finding, exam: Examination, filters: FilterConfig | None) -> Finding:
    """With the setting that helps; a note where it is on already."""
    _, cure, setting = WORDS[finding.kind]
    if not setting or filters is None:
        return finding
    if _filtered(setting, filters):
        return replace(finding, severity=Severity.NOTE, cure=f"training drops them (data.filters.{setting.partition(':')[0]})")
    if finding.kind == "ratio":
        ratio = exam.lengths.usual().ratio
        setting = f"max_ratio: {math.ceil(FACTOR * max(ratio, 1 / ratio))}"
    return replace(finding, cure=f"{cure} (data.filters.{setting})")


def _filtered(setting: str, filters: FilterConfig) -> bool:
    """Whether a filter is on that drops all that this setting would."""
    name, _, wanted = setting.partition(": ")
    now = getattr(filters, name)
    if name == "duplicates":
        return now in (wanted, "normalised")
    return now is True or (name in ("max_chars", "languages") and now is not None and now <= float(wanted))


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _files(facts: CorpusFacts, exam: Examination) -> Iterator[Finding]:
    """What is wrong with the files as a whole."""
    reading = exam.reading
    for message in reading.unreadable:
        yield _new(facts, "unreadable", None, 1, 1, message, [])
    if not exam.sample.seen and not reading.unreadable:
        none = f"none of {number(facts.pairs, 'pair')} can be used" if facts.pairs else "there are no pairs"
        yield _new(facts, "no_pairs", None, 1, 1, f"{none} in {' and '.join(facts.files)}", [])
    for src, tgt, src_lines, tgt_lines in reading.uneven:
        first = f"{(src if src_lines > tgt_lines else tgt).name}:{min(src_lines, tgt_lines) + 1}"
        what = f"{src} has {number(src_lines, 'line')}, {tgt} has {tgt_lines}: {first} is the first without a partner"
        yield _new(facts, "line_counts", None, abs(src_lines - tgt_lines), max(src_lines, tgt_lines), what, [])
    for files in exam.lengths.files:
        yield from _alignment(facts, files)


def _alignment(facts: CorpusFacts, files: FilePair) -> Iterator[Finding]:
    if files.shift:
        line, ahead = files.shift
        noun = files.noun
        count = max(1, files.pairs - line + 1)
        direction = "ahead of" if ahead < 0 else "behind"
        what = (
            f"from about {files.places[0]} on the target is {number(abs(ahead), noun)} {direction} the source: source {noun} n belongs to "
            f"target {noun} n{ahead:+d}, by their lengths"
        )
        yield _new(facts, "alignment", None, count, max(count, files.pairs), what, _places(files))
    if files.strangers:
        first, last = files.strangers
        what = f"{' to '.join(files.places)}: lengths do not agree with those of the partners, as if they were strangers"
        yield _new(facts, "strangers", None, last - first + 1, files.pairs, what, _places(files))


def _places(files: FilePair) -> list[dict[str, str]]:
    return [example(Pair("", "", files.places[0]))]


# ── held-out sets ───────────────────────────────────────────────────────────────────────────────────────────────────


class Leaked(NamedTuple):
    """What of a held-out set was met elsewhere."""

    finding: Finding | None
    numbers: dict[str, Any]
    """For the JSON report."""


def leaked(facts: CorpusFacts, held_out: HeldOut, leaks: Leaks, *, kind: str, where: str) -> Leaked:
    """Judge what of a held-out set was met; `facts` gets the count."""
    counts = leaks.counts(facts.name)
    closest = leaks.closest(facts.name)
    examples = [_met(held_out, leaks, item) for item in closest[:EXAMPLES]]
    numbers = {"pairs": facts.pairs, "met": len(closest), **counts, "examples": examples}
    facts.counts[kind] = len(closest)
    if not closest:
        return Leaked(None, numbers)
    met = sentence(len(closest), facts.pairs, "pair", f"are met in {where}")
    what = f"{met}; the same or nearly: {_by_side(counts['near'])}; word for word: {_by_side(counts['exact'])}"
    severity = BOUNDS[kind].severity(leaks.same(facts.name) / facts.pairs) or Severity.NOTE
    finding = Finding(kind, severity, facts.name, None, len(closest), len(closest) / facts.pairs, what, WORDS[kind].cure, examples)
    return Leaked(finding, numbers)


def _by_side(counts: dict[str, int]) -> str:
    """Of how many held-out pairs what was met."""
    found = f"the source of {counts['source']}, the target of {counts['target']}, both in one pair of {counts['both']}"
    return found if any(counts.values()) else "none"


def _met(held_out: HeldOut, leaks: Leaks, item: int) -> dict[str, str]:
    met = leaks.met[item]
    return example(held_out.pairs[item]) | {f"train_{key}": value for key, value in example(met).items()}


# ── tokenizer ───────────────────────────────────────────────────────────────────────────────────────────────────────


def tokenized(facts: CorpusFacts, fates: list[Fates], long: Spots, *, sampled: int, about: str, max_pieces: int) -> Iterator[Finding]:
    """The findings on what a tokenizer makes of a corpus."""
    for side, fate in zip(SIDES, fates, strict=True):
        for kind, characters in (("lost_characters", fate.unknown), ("byte_characters", fate.spelled)):
            if count := characters.total():
                what = sentence(count, fate.total, f"{side} character", WORDS[kind].says) + f", with {about}: {_named(characters)}"
                facts.counts[kind] += count
                yield _new(facts, kind, side, count, fate.total, what, [])
    if long.count:
        limit = f"are longer than {number(max_pieces, 'piece')} (data.max_pieces), with {about}"
        what = sentence(long.count, sampled, "pair", limit) + (" (in a sample)" if sampled < facts.usable else "")
        facts.counts["length_limit"] += long.count
        yield _new(facts, "length_limit", None, long.count, sampled, what, [example(pair) for pair in long.examples])


def without_tokenizer(facts: CorpusFacts, message: str) -> Finding:
    """The finding that no tokenizer can be trained."""
    return _new(facts, "no_tokenizer", None, 1, 1, message, [])


def other_way_round(facts: CorpusFacts, held_out: str) -> Finding:
    """The finding that a corpus has its sides the other way round than a held-out set."""
    return _new(facts, "turned", None, 1, 1, f"the sides are the other way round than in {held_out}, by their words", [])


def unidentified(facts: CorpusFacts) -> Finding:
    """The finding that nobody looked at languages."""
    return _new(facts, "unidentified", None, 1, 1, WORDS["unidentified"].says, [])


def _named(characters: Counter[str], most: int = 8) -> str:
    """The commonest characters with their numbers."""
    names = [f"{c + ' ' if c.isprintable() else ''}U+{ord(c):04X} ({count})" for c, count in characters.most_common(most)]
    return ", ".join(names) + (f" and {len(characters) - most} more" if len(characters) > most else "")
