"""A pair as the model sees it, for people to read."""

from __future__ import annotations

from collections.abc import Iterator

from mt.data.batches import collate
from mt.data.store import Example
from mt.formats.pairs import one_line
from mt.tokenizer.spm import Tokenizers


def shown(example: Example, tokenizers: Tokenizers) -> Iterator[str]:
    """Lines on one pair: the pieces of its batch row (tag and end mark among them), and what noise was put on it, over which text."""
    batch = collate([example], tokenizers)
    for side, tokenizer, ids, own in (
        ("source", tokenizers.src, batch.src_BS[0].tolist(), example.src_ids),
        ("target", tokenizers.tgt, batch.gold_BT[0].tolist(), example.tgt_ids),
    ):
        yield f"  {side}  {len(own)} piece{' ' if len(own) == 1 else 's'}  {' '.join(tokenizer.pieces(ids))}"
    if example.noise:
        yield f"  noise   {', '.join(example.noise)}"
        yield f"  text    {one_line(example.pair.src)}"
        yield f"          {one_line(example.pair.tgt)}"
