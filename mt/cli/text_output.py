"""The text side of `mt translate`: how translations are written, and where."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mt.decode.step import Hypothesis
    from mt.translator import Translation


class Format(StrEnum):
    """How translations are written."""

    text = "text"
    jsonl = "jsonl"
    tsv = "tsv"


def written(translation: Translation, number: int, output_format: Format) -> str:
    """One line (tsv: one for each hypothesis; for a blank line one without score and text)."""
    match output_format:
        case Format.text:
            return translation.text + "\n"
        case Format.tsv:
            rows = [f"{number}\t{found.score:.6f}\t{text}\n" for text, found in translation.hypotheses]
            return "".join(rows) or f"{number}\t\t\n"
        case Format.jsonl:
            hypotheses = [as_json(text, found) for text, found in translation.hypotheses]
            for one, utility in zip(hypotheses, translation.utilities, strict=False):  # there are none without --mbr
                one["utility"] = utility
            record = {"line": number, "source": translation.source, "hypotheses": hypotheses, "flags": translation.flags}
            return json.dumps(record, ensure_ascii=False) + "\n"


def as_json(text: str, found: Hypothesis) -> dict[str, Any]:
    """One of the hypotheses of a line; `token_log_probs` are those of the ids and of EOS, `parts` is there for a line in parts."""
    scores = {"log_prob": found.log_prob, "score": found.score, "ids": found.ids, "token_log_probs": found.tokens}
    return {"text": text, **scores, **({"parts": found.parts} if found.parts else {})}
