"""A sentencepiece model as a tokenizer of the `tokenizers` library, with the same ids for the same text.

What `mt.tokenizer.spm` does is done again with what that library has: a space goes before the line, white space becomes U+2581, several of
them one, those at the end none; symbols are cut out; the rest is merged pair by pair (bpe) or cut into the most probable pieces (unigram),
and what has no piece is bytes or unknown. Nothing in a text is a special piece: they are reached by their ids alone.

Where a unigram model finds the same pieces in two orders, such as 00 and 0 in 000, both are equally probable, and the rounding of float32
decides in sentencepiece: the other order may come out here. Two things differ when ids become text again. Of bytes in a row that are not
UTF-8 as a whole each is U+FFFD, where sentencepiece keeps those that are; and an unknown, being special, says nothing where special pieces
are skipped, instead of U+2047. No search gives one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mt.errors import RunError
from mt.tokenizer.spm import SPACE, Tokenizer

MARK = "\n"
"""Before the name of a declared symbol, as it is in no line. Tokens are looked for as the normaliser leaves them: it would put a space
before a symbol as it does before a line."""

NEVER = 1000.0
"""Times the score of the rarest piece of a unigram model is that of its special pieces: no text is worth them."""

TEXTS = (
    *("", " ", "a", " a", "a ", "  a   b  ", "\ta\tb", "a\u2581b", "\u2581", "\u2581\u2581a", "a\u00a0b", "a\u3000b"),
    *(
        "a\u2028b",
        "a\u0085b",
        "a\rb",
        "\r",
        "\ufeffa",
        "a\u00adb",
        "a\u200bb",
        "\u200d",
        "\x00",
        "a\x00b",
        "\x07\x1b[0m",
        "\ufffd",
        "\uffff",
    ),
    *("e\u0301", "\u0301", "\u00e9", "\u0915\u094d\u0937", "\ufb01", "\uff21", "\u01c5", "\u1e9e", "\u0130", "\u0645\u064e"),
    *("\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "ok \U0001f600!", "\u6f22\u5b57\u3002"),
    *("aaaa", "aaaaa", "aaaaaaa", "!!!!!", "......", "----", "0000000", "<", ">", "</", "<0x", "</s", "a" * 3000, "a b " * 500),
)
"""Lines that are easily got wrong."""


def fast_tokenizer(model: bytes, *, tag: int | None = None) -> Any:
    """The `tokenizers.Tokenizer` of a sentencepiece model. After a text it puts the end, before it the piece `tag`, if one is given.

    Raises RunError for a model with another normalisation than `identity`.
    """
    from tokenizers import AddedToken, processors
    from tokenizers import Tokenizer as Fast

    proto, ours = parsed(model), Tokenizer(model)
    if proto.normalizer_spec.precompiled_charsmap:
        rule = proto.normalizer_spec.name
        raise RunError(f"tokenizer.normalization {rule}: fast tokenizers have no rules that are exactly these; use `mt export ct2`")
    kind = type(proto).SentencePiece
    symbols = symbols_of(proto)
    special = [one.piece for one in proto.pieces if one.type in (kind.CONTROL, kind.UNKNOWN)]
    scores = {one.piece: one.score for one in proto.pieces if one.type == kind.NORMAL}
    names = [f"{MARK * (one.type == kind.USER_DEFINED)}{one.piece}" for one in proto.pieces]
    merging = proto.trainer_spec.model_type == proto.trainer_spec.BPE
    cut = merged if merging else most_probable

    fast = Fast(cut(names, scores, unk=ours.unk, byte_fallback=bool(ours.byte_pieces)))
    fast.normalizer = normalizer(symbols)
    fast.pre_tokenizer = units(None if merging else scores, byte_fallback=bool(ours.byte_pieces))
    fast.decoder = decoder()
    fast.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    fast.add_tokens([AddedToken(MARK + symbol, special=False, normalized=True) for symbol in symbols])
    fast.encode_special_tokens = True
    around = [*([] if tag is None else [tag]), ours.eos]
    template = [*(names[i] for i in around[:-1]), "$A", names[ours.eos]]
    fast.post_processor = processors.TemplateProcessing(single=template, special_tokens=[(names[i], i) for i in around])
    assert fast.get_vocab_size() == ours.size, "each piece is a token, and no other is"
    return fast


def parsed(model: bytes) -> Any:
    """A sentencepiece model as its protocol buffer."""
    from sentencepiece import sentencepiece_model_pb2 as made

    proto: Any = getattr(made, "ModelProto")()  # noqa: B009 (a class made when it is imported, which the checker cannot see)
    proto.ParseFromString(model)
    return proto


def symbols_of(proto: Any) -> list[str]:
    """The pieces that were declared."""
    return [one.piece for one in proto.pieces if one.type == one.USER_DEFINED]


def merged(names: Sequence[str], scores: Mapping[str, float], *, unk: int, byte_fallback: bool) -> Any:
    """The model of a bpe: a piece can be merged from any two that make it up, the piece of the best score first."""
    from tokenizers.models import BPE

    ranked = sorted(scores, key=lambda piece: -scores[piece])
    merges = [
        (piece[:cut], piece[cut:])
        for piece in ranked
        for cut in range(len(piece) - 1, 0, -1)
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    vocabulary = {name: i for i, name in enumerate(names)}
    return BPE(vocab=vocabulary, merges=merges, unk_token=names[unk], fuse_unk=True, byte_fallback=byte_fallback)


def most_probable(names: Sequence[str], scores: Mapping[str, float], *, unk: int, byte_fallback: bool) -> Any:
    """The model of a unigram."""
    from tokenizers.models import Unigram

    never = NEVER * min(-1.0, *scores.values())
    return Unigram([(name, scores.get(name, never)) for name in names], unk_id=unk, byte_fallback=byte_fallback)


def normalizer(symbols: Sequence[str]) -> Any:
    """White space as sentencepiece has it; a space before the line, but not before what is a symbol and has the MARK."""
    from tokenizers import Regex, normalizers

    steps: list[Any] = [normalizers.Prepend(SPACE)]
    if symbols:
        names = "|".join(re.escape(symbol) for symbol in symbols)
        steps.append(normalizers.Replace(Regex(rf"\A{SPACE}{MARK}(?=(?:{names})\z)"), ""))
    steps += [normalizers.Replace(Regex(f"[\t\n {SPACE}]+"), SPACE), normalizers.Replace(Regex(rf"{SPACE}\z"), "")]
    return normalizers.Sequence(steps)


def units(scores: Mapping[str, float] | None, *, byte_fallback: bool) -> Any:
    """The parts of a line that are cut independently: words; for a unigram (with its scores) what has no piece is apart.

    So no name of a special piece is found in it, and of unknowns in a row there is one.
    """
    from tokenizers import Regex, pre_tokenizers

    steps = [pre_tokenizers.Split(SPACE, "merged_with_next")]
    if scores is not None:
        letters = "".join(re.escape(letter) for letter in sorted({letter for piece in scores for letter in piece}))
        steps.append(pre_tokenizers.Split(Regex(f"[^{letters}]{'' if byte_fallback else '+'}"), "isolated"))
    return pre_tokenizers.Sequence(steps)


def decoder() -> Any:
    """From pieces to text: bytes put together, spaces at the beginning dropped."""
    from tokenizers import decoders

    pieces = [decoders.Replace(MARK, ""), decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*pieces, decoders.Strip(" ", 2**31, 0), decoders.Replace("\n", " "), decoders.Replace("\t", " ")])


def odd_lines(model: bytes) -> list[str]:
    """Lines to prove it by: TEXTS, what looks like a special piece, and symbols in all sorts of company."""
    proto = parsed(model)
    special = [one.piece for one in proto.pieces if one.type in (one.CONTROL, one.UNKNOWN, one.BYTE)]
    found = [*TEXTS, *(line for name in special for line in (name, f"a{name}b {name}"))]
    for symbol in symbols_of(proto):
        found += [symbol, f" {symbol}", f"a{symbol}b", f"a {symbol} b", symbol * 2, symbol + symbol[0], symbol[0] + symbol, symbol[1:]]
    return found


def refuse_other_ids(model: bytes, fast: Any, texts: Sequence[str]) -> int:
    """Raise RunError, with the first of them, where a text has other ids than ours, or its ids another text.

    A unigram model may have them in another order; how many texts do is given back.
    """
    ours, proto, turned = Tokenizer(model), parsed(model), 0
    ordered = proto.trainer_spec.model_type == proto.trainer_spec.BPE
    found = fast.encode_batch(list(texts), add_special_tokens=False)
    for text, ids, one in zip(texts, ours.encode_batch(texts), found, strict=True):
        if one.ids != ids and not ordered and sorted(one.ids) == sorted(ids):
            turned += 1
        elif one.ids != ids:
            pieces = f"{[fast.id_to_token(i) for i in one.ids][:20]}, not {ours.pieces(ids)[:20]}"
            raise RunError(f"a fast tokenizer would cut {text[:80]!r} otherwise ({pieces}); use `mt export ct2`")
        if ours.unk not in ids and fast.decode(ids) != ours.decode(ids):
            raise RunError(f"a fast tokenizer would write {text[:80]!r} otherwise ({fast.decode(ids)[:80]!r}); use `mt export ct2`")
    return turned
