"""What there is to a translation beside its text: the pieces of both sides with their places, and which looks at which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from mt.decode.parts import spaced, split
from mt.decode.translation import Translation
from mt.errors import DecodeError
from mt.forced.attended import attended
from mt.forced.given import Given
from mt.forced.links import given_of
from mt.formats.pairs import one_line
from mt.tokenizer.spm import Tokenizer
from mt.translator import Translator

LEAST_WEIGHT = 0.05
"""Links with less are left out, but for the strongest of each token."""


class Token(NamedTuple):
    """A piece of a translation: its text, its place there in characters, and how probable the model found it."""

    text: str
    start: int
    end: int
    probability: float


class SourceToken(NamedTuple):
    """A piece of a source, and its place there in characters."""

    text: str
    start: int
    end: int


class Details(NamedTuple):
    """Of the best translation of a sentence."""

    tokens: list[Token]
    source_tokens: list[SourceToken]
    alignment: list[tuple[int, int, float]]
    """Place of a source token, place of a token, and how much of its attention this one gives to that one."""


NONE = Details([], [], [])


def details_of(translator: Translator, found: Sequence[Translation], *, to: str | None) -> list[Details]:
    """Those of each translation."""
    target, (src, tgt) = translator.target(to), translator.tokenizers
    encoded = translator.encoded([one.source for one in found])
    given = [
        given_of([target.prefix + ids for ids in own], one.hypotheses[0][1]) if one.hypotheses and own else []
        for one, own in zip(found, encoded, strict=True)
    ]
    weights = attention_of(translator, [part for parts in given for part in parts])
    glue, tag, place = " " if spaced(target.lang) else "", len(target.prefix), 0
    all_details = []
    for one, parts in zip(found, given, strict=True):
        if not parts:
            all_details.append(NONE)
            continue
        texts = source_parts(one.source, src, most=translator.config.data.max_pieces)
        details = Details([], [], [])
        probable = iter(one.hypotheses[0][1].tokens)
        start = 0
        for (source_start, source), part in zip(texts, parts, strict=True):
            before = len(details.source_tokens), len(details.tokens)
            details.source_tokens.extend(
                SourceToken(source[first:last], source_start + first, source_start + last) for first, last in src.places(source)
            )
            text = tgt.decode(part.target)
            for (first, last), value in zip(tgt.decoded_places(part.target), probable, strict=False):
                details.tokens.append(Token(text[first:last], start + first, start + last, math.exp(value)))
            next(probable)  # that of the end
            start += len(text) + len(glue)
            if weights:
                details.alignment.extend(links(weights[place][:-1, tag:].tolist(), before))
            place += 1
        all_details.append(details)
    return all_details


def attention_of(translator: Translator, given: Sequence[Given]) -> dict[int, Tensor]:
    """What each output looks at, by its place; nothing where the model runs in another program, which does not tell."""
    engine = translator.engine
    try:
        models = engine.models
    except DecodeError:
        return {}
    return dict(attended(models, given, translator.tokenizers, device=engine.device, batch_tokens=translator.config.decode.batch_tokens))


def source_parts(line: str, src: Tokenizer, *, most: int) -> list[tuple[int, str]]:
    """The parts in which a line is translated, with the place of each; as in `Translator.encoded`."""
    parts, start = [], 0
    for part in split(one_line(line), src, most=most):
        if part.strip() and src.encode(part):
            parts.append((start, part))
        start += len(part)
    return parts


def links(weights_TS: list[list[float]], before: tuple[int, int]) -> list[tuple[int, int, float]]:
    """The links of a part of a line, from weights that each token gives to each source token; as many tokens stand before the part."""
    return [
        (before[0] + source, before[1] + target, round(weight, 4))
        for target, row in enumerate(weights_TS)
        for source, weight in enumerate(row)
        if weight >= LEAST_WEIGHT or weight == max(row)
    ]
