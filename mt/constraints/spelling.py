"""From what is asked for in text to orders in the ids of a target tokenizer, and whether a translation obeys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from mt.constraints.control import Control, Wish
from mt.constraints.glossary import Term
from mt.constraints.orders import Orders, Phrase
from mt.formats.placeholders import Protected
from mt.tokenizer.spm import Tokenizer, Tokenizers

OPENER = "\ue000"
"""A character that is no part of a piece with others: what follows it is cut as it is within a word or after a bracket."""


class Speller:
    """One control for one target language, whose words stand apart (`spaced`) or not."""

    def __init__(self, control: Control, tokenizers: Tokenizers, *, spaced: bool) -> None:
        self.control, self.tokenizers, self.spaced = control, tokenizers, spaced
        self.protected = control.protect or Protected(())
        tgt = tokenizers.tgt
        self.banned = sorted({way for phrase in control.banned for text in cases(phrase) for way in ways(text, tgt)})

    def terms(self, text: str) -> list[Term]:
        """Entries of the glossary that a source has."""
        return self.control.glossary.terms(text) if self.control.glossary else []

    def spread(self, line: str, wish: Wish, parts: Sequence[list[int]]) -> list[Wish]:
        """The wishes of the parts of a line: the first has its prefix, the last its phrases, each its own terms and what it keeps."""
        texts = [line] if len(parts) == 1 else [self.tokenizers.src.decode(ids) for ids in parts]
        last = len(parts) - 1
        return [
            Wish(
                wish.prefix if place == 0 else "",
                (*(wish.phrases if place == last else ()), *(term.target for term in self.terms(text))),
                tuple(self.protected.spans(text)),
            )
            for place, text in enumerate(texts)
        ]

    def orders(self, wishes: Sequence[Wish]) -> Orders:
        """Those of some sources."""
        control = self.control
        return Orders(
            min_length=control.min_length,
            no_repeat_ngram=control.no_repeat_ngram,
            repetition_penalty=control.repetition_penalty,
            banned=self.banned,
            prefixes=[self.prefix(wish.prefix) for wish in wishes],
            required=[list(self.required(wish)) for wish in wishes],
        )

    def prefix(self, text: str) -> list[int]:
        """The ids of a prefix, as far as the tokenizer can spell it."""
        tgt = self.tokenizers.tgt
        return list(takewhile(lambda i: i != tgt.unk, tgt.encode(text))) if text else []

    def required(self, wish: Wish) -> Iterator[Phrase]:
        """Those of the phrases that can be said, each once, and of what is kept, as often as it comes."""
        kept = Counter(wish.kept) - Counter({*wish.phrases})
        for text in (*dict.fromkeys(wish.phrases), *kept.elements()):
            found = [way for way in ways(text, self.tokenizers.tgt) if not any(within(banned, way) for banned in self.banned)]
            if found:
                yield tuple(found if self.spaced else found[::-1])

    def says(self, text: str, phrase: str) -> bool:
        """Whether a translation has a phrase, letter by letter."""
        return self.plain(phrase) in text

    def obeyed(self, text: str, wish: Wish) -> bool:
        """Whether a translation has all that it was to have."""
        return text.startswith(self.plain(wish.prefix)) and all(self.says(text, phrase) for phrase in wish.phrases)

    def plain(self, text: str) -> str:
        """A text as the tokenizer gives it back."""
        tgt = self.tokenizers.tgt
        return tgt.decode(tgt.encode(text))


def cases(phrase: str) -> set[str]:
    """A phrase with either case of its first letter."""
    return {phrase, phrase[:1].upper() + phrase[1:], phrase[:1].lower() + phrase[1:]}


def ways(text: str, tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """The ids of a text after a space, and of the same text right after something else; none if it has characters without a piece."""
    spaced = tokenizer.encode(text)
    if tokenizer.unk in spaced:  # it might be one unknown with the opener
        return []
    head = tokenizer.encode(OPENER)
    joined = tokenizer.encode(OPENER + text.strip())
    both = spaced, joined[len(head) :] if joined[: len(head)] == head else []
    return list(dict.fromkeys(tuple(ids) for ids in both if ids))


def within(short: tuple[int, ...], long: tuple[int, ...]) -> bool:
    """Whether a sequence is part of another."""
    return any(long[start : start + len(short)] == short for start in range(len(long) - len(short) + 1))
