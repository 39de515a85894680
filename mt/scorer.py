"""Given translations, and how probable a model finds them: nothing is searched. `mt score` is made of this."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from mt.errors import DataError
from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.formats.pairs import one_line
from mt.search.step import Hypothesis, concatenated
from mt.translator import WINDOW, Translator


class Candidate(NamedTuple):
    """A translation that is to be scored."""

    line: int
    """Number of the line that it translates."""
    parts: list[Given]
    """One, or those of a line in parts; none for a blank line."""


def of_texts(translator: Translator, pairs: Iterable[tuple[str, str]], *, to: str | None = None) -> Iterator[Candidate]:
    """Source and translation as text; both are cut into pieces as in training, and however long they are, not into parts."""
    prefix, (src, tgt) = translator.target(to).prefix, translator.tokenizers
    for line, pair in enumerate(pairs, start=1):
        source, target = map(one_line, pair)
        yield Candidate(line, [Given(prefix + src.encode(source), tgt.encode(target))] if f"{source}{target}".strip() else [])


def of_records(translator: Translator, records: Iterable[str], name: str, *, to: str | None = None) -> Iterator[Candidate]:
    """What `mt translate --format jsonl` wrote, with its ids; `name` is the file in messages.

    Raises DataError for what is none of that, and for ids or parts that this model does not make.
    """
    prefix = translator.target(to).prefix
    for number, text in enumerate(records, start=1):
        try:
            record = json.loads(text)
            line, source, outputs = int(record["line"]), str(record["source"]), [split_ids(one) for one in record["hypotheses"]]
        except (ValueError, TypeError, KeyError):
            raise DataError(f"{name}:{number}: is no line of `mt translate --format jsonl`") from None
        sources = translator.encoded([source])[0] if outputs else []
        for parts in outputs:
            if len(parts) != len(sources):
                cut = f"was translated in {len(parts)} part{'s' * (len(parts) > 1)}, this model takes it in {len(sources)}"
                raise DataError(f"{name}:{number}: {cut}; score it with the model that translated it")
            if wrong := [i for ids in parts for i in ids if not 0 <= i < translator.tokenizers.tgt.size]:
                raise DataError(f"{name}:{number}: the model has no id {wrong[0]}; score it with the model that translated it")
            yield Candidate(line, [Given(prefix + ids, output) for ids, output in zip(sources, parts, strict=True)])
        if not outputs:
            yield Candidate(line, [])


def split_ids(hypothesis: dict[str, Any]) -> list[list[int]]:
    """The ids of one of the hypotheses, those of each part apart. Raises ValueError where they are no ids or do not add up."""
    ids: list[int] = hypothesis["ids"]
    lengths = hypothesis.get("parts", [len(ids)])
    if sum(lengths) != len(ids) or min(lengths) < 0 or any(type(i) is not int for i in (*ids, *lengths)):
        raise ValueError("ids and parts")
    rest = iter(ids)
    return [list(islice(rest, length)) for length in lengths]


def scored(
    translator: Translator, candidates: Iterable[Candidate], *, length_penalty: float | None = None, batch_tokens: int | None = None
) -> Iterator[tuple[int, Hypothesis | None]]:
    """Each candidate's line and its log-probability and score, as a search would tell them; None for a blank line.

    In order and in bounded memory: so many at a time are sorted by length. What is left out is as the run's config has it.
    """
    decode = translator.config.decode
    alpha = decode.length_penalty if length_penalty is None else length_penalty
    rest = iter(candidates)
    while window := list(islice(rest, WINDOW)):
        given = [part for candidate in window for part in candidate.parts]
        found = iter(
            token_log_probs(
                translator.engine.models,
                given,
                translator.tokenizers,
                device=translator.engine.device,
                batch_tokens=batch_tokens or decode.batch_tokens,
                mix=translator.engine.mix,
            )
        )
        for candidate in window:
            outputs = [ended(part, next(found), alpha) for part in candidate.parts]
            yield candidate.line, (concatenated(outputs, length_penalty=alpha) if len(outputs) > 1 else outputs[0] if outputs else None)


def ended(part: Given, tokens: list[float], alpha: float) -> Hypothesis:
    """A part with what its ids and its end come to."""
    log_prob = sum(tokens)
    return Hypothesis(part.target, log_prob, log_prob / len(tokens) ** alpha, truncated=False, tokens=tokens)


def perplexity(hypotheses: Sequence[Hypothesis]) -> float:
    """e to the mean of -log p over all ids and ends; 1 where there are none."""
    tokens = sum(len(one.tokens) for one in hypotheses)
    mean = -sum(one.log_prob for one in hypotheses) / max(1, tokens)
    return math.exp(mean) if mean < 700 else math.inf
