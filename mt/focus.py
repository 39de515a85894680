"""What a model looks at while it translates, piece by piece, to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mt.decode.translation import Translation
from mt.forced.attended import attended
from mt.forced.links import given_of
from mt.translator import Translator


@dataclass(frozen=True)
class Attention:
    """How much each piece of a translation looks at each piece of its source: a row for each of the target's."""

    source: list[str]
    target: list[str]
    source_text: str
    target_text: str
    shares: list[list[float]]


def attention_of(translator: Translator, found: Sequence[Translation], *, to: str | None = None) -> list[Attention]:
    """The attention of the best hypothesis of each translation; none of blank ones, and of a long line that of its first part."""
    src, tgt = translator.tokenizers
    prefix = translator.target(to).prefix
    given = [
        (one, given_of([prefix + ids for ids in own], one.hypotheses[0][1])[0])
        for one, own in zip(found, translator.encoded([one.source for one in found]), strict=True)
        if one.hypotheses and own
    ]
    engine = translator.engine
    tokens = translator.config.decode.batch_tokens
    pairs = [pair for _, pair in given]
    weights = dict(attended(engine.models, pairs, translator.tokenizers, device=engine.device, batch_tokens=tokens))
    tag = len(prefix)
    return [
        Attention(src.pieces(pair.source[tag:]), tgt.pieces(pair.target), one.source, one.text, weights[place][:-1, tag:].double().tolist())
        for place, (one, pair) in enumerate(given)
        if pair.target
    ]
