"""Text to ids and back. The sentencepiece model is the vocabulary: its size is the number of embedding rows, its ids are the only ids.

What a round trip gives back, with normalisation `identity` and every character known (character coverage 1.0, or bytes):

    decode(encode(x)) == x      but for white space: U+0020, TAB, LF and U+2581 act as one space each, runs of them become one,
                                and those at either end are dropped

Every other character is kept as it is, other Unicode spaces, soft hyphens, zero-width characters and CR included. Text such as `</s>`,
`<unk>`, `<0x41>`, `<2de>` or `<bt>` is ordinary text.
"""

from __future__ import annotations

import hashlib
import math
import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, assert_never

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from mt.config.schema import BpeDropout, Sample, Unigram, UnigramSample
from mt.errors import TokenizerError
from mt.tokenizer.segmentation import LatticeSampler, MergeDropout, Vocabulary

UNKNOWN = "\u2047"
"""How an unknown character (one without a piece, in a model without bytes) looks once decoded: ⁇, with no spaces around it."""

SPACE = "\u2581"
"""How sentencepiece writes a space inside a piece; in text it acts as a space."""

sentencepiece.set_min_log_level(3)  # its log speaks of C++ files; what matters comes as an exception
sentencepiece.set_nbest_timeout(2**31 - 1)  # no result may depend on how fast the machine is


def plain(text: str) -> str:
    """The text as pieces are made from it: TAB, LF and U+2581 as spaces, a lone surrogate (no UTF-8 can hold it) as U+FFFD."""
    text = text.replace("\t", " ").replace("\n", " ").replace(SPACE, " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def tag_piece(lang: str) -> str:
    """The piece that asks for a target language, such as `<2de>`: a control symbol, reached by id and never matched in text."""
    return f"<2{lang}>"


def tag_language(piece: str) -> str | None:
    """The language that a control symbol asks for, if it is a tag."""
    return piece[2:-1] if piece.startswith("<2") and piece.endswith(">") and len(piece) > 3 else None


BACK_TRANSLATED = "<bt>"
"""The control symbol before a source that a model has made (Caswell et al. 2019, https://arxiv.org/abs/1906.06442)."""


class Tokenizer:
    """One sentencepiece model: encodes, samples and decodes; immutable, and safe to use from several threads.

    `pad`, `unk`, `bos` and `eos` are the special ids, `byte_pieces` those that spell bytes, `size` is the number of ids and `fingerprint`
    the SHA-256 of the model.
    """

    def __init__(self, model: bytes) -> None:
        self._bytes = model
        try:
            self._model = sentencepiece.SentencePieceProcessor(model_proto=model)
            whole = self._model.get_piece_size() > 0  # no bytes at all are a model too, of nothing
        except (RuntimeError, ValueError):
            whole = False
        if not whole:
            raise TokenizerError("is empty or damaged: not a sentencepiece model")
        self.pad, self.unk = self._model.pad_id(), self._model.unk_id()
        self.bos, self.eos = self._model.bos_id(), self._model.eos_id()
        if missing := [name for name in ("pad", "unk", "bos", "eos") if getattr(self, name) < 0]:
            raise TokenizerError(f"has no id for {', '.join(missing)}; train the tokenizer with mt")
        self.size: int = self._model.get_piece_size()
        self.fingerprint = hashlib.sha256(model).hexdigest()
        self._controls = frozenset(i for i in range(self.size) if self._model.IsControl(i))
        names = {i: tag_language(self._model.id_to_piece(i)) for i in sorted(self._controls)}
        self.tags = {lang: i for i, lang in names.items() if lang is not None}
        """Id of the tag of each target language, in the order they were declared."""
        self.mark = next((i for i in self._controls if self._model.id_to_piece(i) == BACK_TRANSLATED), None)
        """Id of <bt>, if it was declared."""
        self.prefixes = (*self.tags.values(), *([] if self.mark is None else [self.mark]))
        """Ids that stand before a source and nowhere else."""
        self.byte_pieces = frozenset(i for i in range(self.size) if self._model.IsByte(i))
        self._special = self._controls | {self.unk} | self.byte_pieces
        self._scores: list[float] = [self._model.GetScore(i) for i in range(self.size)]
        # Nothing tells declared symbols apart but their score of 0; the piece after them has it too if scores are ranks (bpe).
        zeros = [i for i in range(self.size) if i not in self._special and self._scores[i] == 0.0]
        self._symbols = frozenset(zeros[:-1] if all(score.is_integer() for score in self._scores) else zeros)

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a model file. Raises TokenizerError, naming the file, if it is missing or holds no usable model."""
        try:
            return cls(Path(path).read_bytes())
        except OSError as error:
            raise TokenizerError(f"{path}: cannot read the tokenizer ({error.strerror})") from None
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from None

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return type(self), (self._bytes,)

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces, without bos and eos; never a special id but unk, and that only for characters without piece and bytes."""
        return self._model.encode(plain(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, in order, on all processor cores."""
        return self._model.encode([plain(text) for text in texts])

    def encode_arrays(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """`encode` of each text, in order, on one core; a third of the time of lists."""
        return self._model.encode([plain(text) for text in texts], num_threads=1, return_type="numpy")

    def sample_batch(self, texts: Sequence[str], sample: Sample, *, rngs: Sequence[random.Random]) -> list[list[int]]:
        """A random segmentation of each text, drawn from its generator: a function of the arguments alone, the same in every process.

        Each decodes to what `encode` of it decodes to, and declared symbols stay whole. `sample` has to suit the model's kind.
        """
        lines = [plain(text) for text in texts]
        match sample:
            case BpeDropout(bpe_dropout=p):
                return [self._dropout.sample(line, p=p, rng=rng) for line, rng in self._normal(lines, rngs)]
            case UnigramSample(unigram=Unigram(alpha=alpha, nbest=-1)):
                return [self._lattice.sample(line, alpha=alpha, rng=rng) for line, rng in self._normal(lines, rngs)]
            case UnigramSample(unigram=Unigram(alpha=alpha, nbest=nbest)):
                found = zip(lines, rngs, strict=True)
                return [self._one_of_the_best(line, alpha=alpha, nbest=nbest, rng=rng) for line, rng in found]
            case _:
                assert_never(sample)

    def _normal(self, lines: list[str], rngs: Sequence[random.Random]) -> Iterator[tuple[str, random.Random]]:
        return zip(self._model.normalize(lines), rngs, strict=True)

    def _one_of_the_best(self, line: str, *, alpha: float, nbest: int, rng: random.Random) -> list[int]:
        """One of the best segmentations that cut no symbol, with probability ∝ exp(alpha · sum of scores)."""
        best: list[list[int]] = self._model.nbest_encode(line, nbest_size=nbest)
        if self._symbols:
            symbols = [sum(i in self._symbols for i in ids) for ids in best]
            best = [ids for ids, whole in zip(best, symbols, strict=True) if whole == max(symbols)]
        scores = [sum(map(self._scores.__getitem__, ids)) for ids in best]
        top = max(scores)
        totals = list(accumulate(math.exp(alpha * (score - top)) for score in scores))
        return best[bisect(totals, rng.random() * totals[-1], hi=len(totals) - 1)]

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        pieces = {i: self._model.id_to_piece(i) for i in range(self.size) if i not in self._special}
        return Vocabulary(
            {piece: self._scores[i] for i, piece in pieces.items() if i not in self._symbols},
            symbols=[pieces[i] for i in sorted(self._symbols)],
            ids={piece: i for i, piece in pieces.items()},
            bytes_=sorted(self.byte_pieces) or None,
            unk=self.unk,
        )

    @cached_property
    def _dropout(self) -> MergeDropout:
        return MergeDropout(self._vocabulary)

    @cached_property
    def _lattice(self) -> LatticeSampler:
        return LatticeSampler(self._vocabulary)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces, one line whatever the ids; never raises.

        Special ids, tags and <bt> say nothing. An unknown, as well as an id outside the vocabulary, is U+2047; a byte that is no part of
        valid UTF-8 is U+FFFD; a TAB or LF, which only bytes can spell, is a space.
        """
        known = [int(i) if 0 <= i < self.size else self.unk for i in ids if i not in self._controls]
        return self._model.decode(known).replace("\n", " ").replace("\t", " ")

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where each piece of `encode` begins and ends in the text, in characters; the space before a piece is not counted.

        Of several bytes that spell a character all but the last have no extent.
        """
        text = plain(text)
        return _places(self._model.encode(text, return_type="proto"), text)

    def decoded_places(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Where each id begins and ends in what `decode` makes of them; as `places`. Ids that say nothing are not allowed."""
        assert not self._controls.intersection(ids)
        found = self._model.decode(list(ids), return_type="proto")
        return _places(found, found.text)

    def tag(self, lang: str) -> int:
        """Id of the tag that asks for a target language. Raises TokenizerError if the tokenizer was trained without it."""
        if lang not in self.tags:
            known = ", ".join(map(tag_piece, self.tags))
            raise TokenizerError(f"the tokenizer has no tag {tag_piece(lang)}; it has {known or 'none'}")
        return self.tags[lang]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id, as it stands in the model: a space is U+2581."""
        return [self._model.id_to_piece(int(i)) for i in ids]


def _places(found: Any, text: str) -> list[tuple[int, int]]:
    """From byte offsets, as sentencepiece counts, to characters."""
    characters = [*accumulate((byte & 0xC0 != 0x80 for byte in text.encode("utf-8")), initial=0)]
    spans = [(characters[piece.begin], characters[piece.end]) for piece in found.pieces]
    blank = [end - start - len(text[start:end].lstrip(" ")) for start, end in spans]
    return [(start + spaces, end) for (start, end), spaces in zip(spans, blank, strict=True)]


class Tokenizers(NamedTuple):
    """The tokenizer of each side; the same object twice where the sides share one."""

    src: Tokenizer
    """Of the source side."""
    tgt: Tokenizer
    """Of the target side."""

    @property
    def joint(self) -> bool:
        """Whether the sides share one vocabulary."""
        return self.src is self.tgt
