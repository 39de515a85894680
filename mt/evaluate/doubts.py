"""What makes scores doubtful: warnings about the lines that are compared, and about metrics that do not suit them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from sacrebleu.metrics.chrf import CHRF

# Thai, Lao, Burmese, Khmer, kana and Han: written without spaces between words.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

# What Moses-like tokenizers leave behind: spaces before marks and clitics, @-@, and escaped quotes.
TOKENISED = re.compile(r"\s[.,;:!?%)\]](?=\s|$)|\s['’](?:s|t|d|m|re|ve|ll)\b|@-@|&(?:apos|quot|amp|#\d+);")
PUNCTUATION = re.compile(r"[.,;:!?%)\]'’&-]")
TOKENISED_MARGIN = 0.1

SAMPLED = 500
"""Of so many lines, all over the text, it is looked whether translations are nearer to the source than to the references,"""
MARGIN = 10
"""by so much chrF."""


def about_lines(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[str]:
    """Warnings about the lines themselves: empty ones, pieces instead of text, one side that looks tokenised unlike the other."""
    found = []
    if empty := [n for n, line in enumerate(hypotheses, start=1) if not line.strip() and any(lines[n - 1].strip() for lines in references)]:
        found.append(f"{plural(len(empty), 'empty translation')} ({_line_numbers(empty)})")
    for number, lines in enumerate(references, start=1):
        if empty := [n for n, line in enumerate(lines, start=1) if not line.strip()]:
            where = f" in set {number}" if len(references) > 1 else ""
            found.append(f"{plural(len(empty), 'empty reference')}{where} ({_line_numbers(empty)})")
    if 2 * sum("\u2581" in line for line in hypotheses) > len(hypotheses):
        found.append("the hypotheses are subword pieces, not text, which makes the scores wrong: decode them")
    ours, theirs = _tokenised_share(hypotheses), _tokenised_share(line for lines in references for line in lines)
    if ours is not None and theirs is not None and abs(ours - theirs) > TOKENISED_MARGIN:
        side, cure = ("hypotheses", "detokenise them") if ours > theirs else ("references", "score against the raw text")
        shares = f"{ours:.0%} of the hypotheses with punctuation set it off by spaces, {theirs:.0%} of the references"
        found.append(f"the {side} look tokenised, which makes BLEU and TER wrong: {shares}; {cure}")
    return found


def _tokenised_share(lines: Iterable[str]) -> float | None:
    """Which part of the lines with punctuation shows the traces of a tokenizer, from 0 to 1; None when no line has any."""
    marks = [TOKENISED.search(line) is not None for line in lines if PUNCTUATION.search(line)]
    return sum(marks) / len(marks) if marks else None


def about_sources(hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]) -> list[str]:
    """Warnings about files that are taken for each other, by what is in them: source, references, translations."""
    lines = len(sources)
    if same := [number for number, ref in enumerate(references, start=1) if 2 * _copies(ref, sources) > lines]:
        count = _copies(references[same[0] - 1], sources)
        return [f"{count} of {lines} references are the source, unchanged: was the source given as the reference?"]
    if 2 * (count := _copies(hypotheses, sources)) > lines:
        return [f"{count} of {lines} translations are the source, unchanged: has the model learnt to translate?"]
    chrf = CHRF()
    some = slice(None, None, max(1, lines // SAMPLED))
    near, far = (chrf.corpus_score(hypotheses[some], [side[some]]).score for side in (sources, references[0]))
    if near > far + MARGIN:
        figures = f"chrF {near:.0f} against {far:.0f}"
        return [f"the translations are nearer to the source than to the references ({figures}): are these the right files?"]
    return []


def _copies(lines: Sequence[str], sources: Sequence[str]) -> int:
    """How many lines are their sources."""
    return sum(bool(source.strip()) and source == line for source, line in zip(sources, lines, strict=True))


def unspaced(references: Sequence[Sequence[str]]) -> bool:
    """Whether most of the text is in a script written without spaces between words, and has indeed less than one in ten characters."""
    text = "".join("".join(lines) for lines in references)
    return 2 * len(UNSPACED.findall(text)) > len(text) > 10 * text.count(" ")


def about_metrics(names: Collection[str], *, default_tokenizer: bool) -> list[str]:
    """Warnings about scores that count words between spaces, for text that has none."""
    found = []
    if "bleu" in names and default_tokenizer:
        found.append("the text has no spaces between words, so BLEU with tok:13a means little: name the target language")
    if "ter" in names:
        found.append("the text has no spaces between words, so TER takes whole sentences for words and means little: go by chrF")
    return found


def plural(count: int, noun: str) -> str:
    """The count with its noun, as in `1 empty reference` and `2 empty references`."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _line_numbers(numbers: Sequence[int], *, shown: int = 5) -> str:
    """The first of the line numbers, as in `line 2` and `lines 2, 5, 9, 12, 13, …`."""
    listed = ", ".join(map(str, numbers[:shown])) + (", …" if len(numbers) > shown else "")
    return f"{'line' if len(numbers) == 1 else 'lines'} {listed}"
