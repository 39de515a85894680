r"""Noise on training pairs, off by default: on the text, then on how it is cut into pieces, then on the source's pieces.

| in this order | config key | of |
|---|---|---|
| capitals, or a capital at the beginning of each word | `upper_case`, `title_case` | both sides together |
| final punctuation left out | `strip_punctuation` | both sides together |
| sub-words sampled | `tokenizer.sample` | the sides it names |
| pieces left out, pieces unknown, pieces out of order | `token_drop`, `token_mask`, `local_shuffle` | source |

All chance of a pair comes from one generator (`pair_rng`), seeded with (seed, epoch, draw); a draw is a pair and which pass over it.
Only `random()` is used of it, as Python keeps what that gives for a seed: a pair is the same whatever batch, worker or machine it is
in, and another one each time it comes in an epoch. Declared symbols (`tokenizer.symbols`) keep their letters.
No side is ever emptied, and a pair that would be longer than `max_pieces` stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from mt.config.schema import AugmentConfig, BpeDropout, Sample
from mt.data.store import Example
from mt.formats.pairs import Pair
from mt.tokenizer.spm import Tokenizer, Tokenizers

TOO_LONG = "none: it would be too long"
"""Stands for the names of the noise where a pair was left as it is."""

FINAL = (
    "!,.:;?\u2024\u2025\u2026\u203c\u203d\u2047\u2048\u2049\u22ef\u2e2e"  # Latin, Greek, Cyrillic, and every script with them
    "\u037e\u0387\u0589\u05c3\u060c\u061b\u061d\u061e\u061f\u06d4\u0700\u0701\u0702\u07f8\u07f9"  # Greek … N'Ko
    "\u0964\u0965\u0e5a\u0e5b\u0f0d\u0f0e\u0f0f\u104a\u104b\u1361\u1362\u1363\u1364\u1365\u1366\u1367\u1368"  # Devanagari … Ethiopic
    "\u166e\u1735\u1736\u17d4\u17d5\u17d6\u17da\u1802\u1803\u1808\u1809\u1944\u1945\u1aa8\u1aa9\u1aaa\u1aab"  # Canadian … Tai Tham
    "\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f\u1c3b\u1c3c\u1c7e\u1c7f\ua4fe\ua4ff\ua60d\ua60e\ua60f\ua6f3\ua6f7"  # Balinese … Bamum
    "\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d\uaa5e\uaa5f\uaaf0\uaaf1\uabeb"  # Phags-pa … Meetei Mayek
    "\u3001\u3002\ufe12\ufe15\ufe16\ufe50\ufe51\ufe52\ufe54\ufe55\ufe56\ufe57\uff01\uff0c\uff0e\uff1a\uff1b\uff1f\uff61\uff64"  # CJK
)
"""What a text may end with: Unicode's Terminal_Punctuation in scripts of today, and dot leaders such as …"""

_ENDING = re.compile(rf"[\s{re.escape(FINAL)}]+\Z")

Text = Callable[[str], str]


class Augmenter:
    """The noise of a run: pairs of the store in, pairs as the model will see them out."""

    def __init__(
        self,
        cfg: AugmentConfig,
        *,
        sample: Sample | None,
        symbols: Sequence[str] = (),
        tokenizers: Tokenizers,
        max_pieces: int | None,
        seed: int,
    ) -> None:
        self.cfg, self.sample, self.tokenizers = cfg, sample, tokenizers
        self.max_pieces, self.seed = max_pieces, seed
        self.texts = TextNoise(symbols)
        self.active = sample is not None or cfg != AugmentConfig()
        """Whether there is any noise at all."""

    def __call__(self, examples: Sequence[Example], *, epoch: int) -> list[Example]:
        """The examples as their draws are in an epoch (from 0); `noise` of each names what was done."""
        if not self.active:
            return list(examples)
        rngs = [pair_rng(self.seed, epoch, example.draw) for example in examples]
        drafts = self._with_text_noise(examples, rngs)
        for side in range(2):
            self._sample(drafts, rngs, side)
        for draft, rng in zip(drafts, rngs, strict=True):
            draft.ids[0] = self._with_piece_noise(draft, rng) if draft.ids[0] else []
        return [draft.example(example, most=self.max_pieces) for draft, example in zip(drafts, examples, strict=True)]

    def _with_text_noise(self, examples: Sequence[Example], rngs: Sequence[Random]) -> list[_Draft]:
        """Every pair with its text, noisy or not, and the usual pieces of that.

        Where letters in the other case have no pieces, the pair stays as it was: a model would learn to say that it does not know them.
        """
        noisy = [self.texts(example.pair, self.cfg, rng) for example, rng in zip(examples, rngs, strict=True)]
        changed = [place for place, (_, names) in enumerate(noisy) if names]
        encoded = [tokenizer.encode_batch([noisy[place][0][side] for place in changed]) for side, tokenizer in enumerate(self.tokenizers)]
        drafts = [_Draft([*example.pair[:2]], [example.src_ids, example.tgt_ids], []) for example in examples]
        for place, *ids in zip(changed, *encoded, strict=True):
            if self._unknown(ids) <= self._unknown(drafts[place].ids):
                texts, names = noisy[place]
                drafts[place] = _Draft([*texts], ids, names)
        return drafts

    def _unknown(self, ids: Sequence[Sequence[int]]) -> int:
        return sum(one.count(tokenizer.unk) for one, tokenizer in zip(ids, self.tokenizers, strict=True))

    def _sample(self, drafts: Sequence[_Draft], rngs: Sequence[Random], side: int) -> None:
        """Other pieces of the same text, where that was asked for."""
        if self.sample is None or ("src", "tgt")[side] not in self.sample.sides:
            return
        name = "bpe_dropout" if isinstance(self.sample, BpeDropout) else "unigram"
        tokenizer: Tokenizer = self.tokenizers[side]
        for draft, ids in zip(drafts, tokenizer.sample_batch([draft.texts[side] for draft in drafts], self.sample, rngs=rngs), strict=True):
            if ids != draft.ids[side]:
                draft.ids[side] = ids
                draft.noise += [name] if name not in draft.noise else []

    def _with_piece_noise(self, draft: _Draft, rng: Random) -> list[int]:
        """The source's pieces, some of them left out, unknown or elsewhere."""
        cfg, shuffle, ids = self.cfg, self.cfg.local_shuffle, draft.ids[0]
        steps: list[tuple[str, Callable[[list[int]], list[int]]]] = []
        if cfg.token_drop:
            steps.append(("token_drop", lambda ids: dropped(ids, cfg.token_drop, rng)))
        if cfg.token_mask:
            steps.append(("token_mask", lambda ids: masked(ids, cfg.token_mask, rng, mask=self.tokenizers.src.unk)))
        if shuffle.probability and rng.random() < shuffle.probability:
            steps.append(("local_shuffle", lambda ids: shuffled(ids, shuffle.distance, rng)))
        for name, step in steps:
            new = step(ids)
            draft.noise += [name] if new != ids else []
            ids = new
        return ids


class _Draft:
    """A pair on its way: source and target, as text and as pieces, and what was done to them."""

    def __init__(self, texts: list[str], ids: list[list[int]], noise: list[str]) -> None:
        self.texts, self.ids, self.noise = texts, ids, noise

    def example(self, plain: Example, *, most: int | None) -> Example:
        """What came out of it, or the plain pair if that has no pieces or too many on a side."""
        if not all(self.ids) or (most is not None and max(map(len, self.ids)) > most):
            return plain._replace(noise=(TOO_LONG,))
        return plain._replace(src_ids=self.ids[0], tgt_ids=self.ids[1], noise=tuple(self.noise))


def pair_rng(seed: int, epoch: int, draw: int) -> Random:
    """The generator of a draw in an epoch; the three numbers, none negative, are the seed, whole (each of the last two below 2^64)."""
    return Random(seed << 128 | epoch << 64 | draw)


# ── text ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class TextNoise:
    """Letter case and final punctuation; `symbols` stay as they are."""

    def __init__(self, symbols: Sequence[str] = ()) -> None:
        longest_first = sorted(symbols, key=len, reverse=True)
        kept = "|".join(map(re.escape, longest_first)) or "(?!)"  # which matches nowhere
        self._kept = re.compile(f"({kept})")
        self._word_begin = re.compile(rf"({kept})|(?<!\S)((?:(?!{kept})(?:[^\w\s]|_))*)(?!{kept})([^\W\d_])")

    def __call__(self, pair: Pair, cfg: AugmentConfig, rng: Random) -> tuple[tuple[str, str], list[str]]:
        """The two texts with the noise that the generator draws, and the names of what changed them."""
        texts, names = (pair.src, pair.tgt), []
        steps: list[tuple[str, Text]] = []
        if cfg.upper_case or cfg.title_case:
            drawn = rng.random()  # one number for both: a text has one letter case
            if drawn < cfg.upper_case:
                steps.append(("upper_case", self.upper))
            elif drawn < cfg.upper_case + cfg.title_case:
                steps.append(("title_case", self.title))
        if cfg.strip_punctuation and rng.random() < cfg.strip_punctuation:
            steps.append(("strip_punctuation", self.without_ending))
        for name, step in steps:
            new = step(texts[0]), step(texts[1])
            if new != texts and all(text.strip() for text in new):
                texts = new
                names.append(name)
        return texts, names

    def upper(self, text: str) -> str:
        """In capitals, where the script has them: `Straße` becomes `STRASSE`."""
        return "".join(part if place % 2 else part.upper() for place, part in enumerate(self._kept.split(text)))

    def title(self, text: str) -> str:
        """With a capital for the first letter of each word; its other letters stay, and so does a word that begins with a digit."""
        return self._word_begin.sub(lambda found: found[0] if found[1] else found[2] + found[3].title(), text)

    def without_ending(self, text: str) -> str:
        """Without the punctuation it ends with, if it does, and without the spaces before that."""
        *before, end = self._kept.split(text)
        if not end.rstrip().endswith(tuple(FINAL)):
            return text
        return "".join([*before, _ENDING.sub("", end)])


# ── pieces ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def dropped(ids: Sequence[int], p: float, rng: Random) -> list[int]:
    """Each left out with probability p; if that would be all of them, the one that came nearest to staying stays."""
    draws = [rng.random() for _ in ids]
    left = [i for i, drawn in zip(ids, draws, strict=True) if drawn >= p]
    return left or [ids[draws.index(max(draws))]]


def masked(ids: Sequence[int], p: float, rng: Random, *, mask: int) -> list[int]:
    """Each replaced with probability p."""
    return [mask if rng.random() < p else i for i in ids]


def shuffled(ids: Sequence[int], distance: int, rng: Random) -> list[int]:
    """Sorted by place + U(0, distance + 1): none moves further than `distance` (Lample et al. 2018)."""
    keys = [place + rng.random() * (distance + 1) for place in range(len(ids))]
    return [ids[place] for place in sorted(range(len(ids)), key=keys.__getitem__)]
