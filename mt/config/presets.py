"""Settings that fit a corpus, by its size and by what trains it: data, and the rules that choose among them.

Where they come from, beside what was measured here (docs/results.md):

- Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, table 3: base and big, with 25000 tokens an update.
- Sennrich & Zhang 2019, https://aclanthology.org/P19-1021: with few pairs a small vocabulary, small batches and much dropout.
- Ding et al. 2019, https://aclanthology.org/W19-6620: with few pairs 0 to 4000 merges; more of them cost up to 4 BLEU.
- Araabi & Monz 2020, https://aclanthology.org/2020.coling-main.304: with few pairs a narrower and shallower Transformer with more dropout.
- Wu et al. 2021, https://aclanthology.org/2021.acl-long.480: Transformer-Tiny (128 wide, 4 layers, dropout 0.3) is the best on Multi30k.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A model, and how it is trained."""

    name: str
    pairs: int
    """For corpora of fewer."""
    dim: int
    ffn: int
    heads: int
    layers: int
    lr: float
    """At the peak, for updates of `tokens`."""
    tokens: int
    """Of an update."""
    passes: int
    """Over the corpus, where no time is given."""


ON_CPU = (
    Preset("tiny", 100_000, dim=160, ffn=640, heads=4, layers=3, lr=3e-3, tokens=1200, passes=40),
    Preset("small", 10**12, dim=256, ffn=1024, heads=4, layers=3, lr=2e-3, tokens=2400, passes=8),
)
ON_GPU = (
    Preset("tiny", 20_000, dim=160, ffn=640, heads=4, layers=3, lr=3e-3, tokens=1200, passes=60),
    Preset("small", 300_000, dim=256, ffn=1024, heads=4, layers=3, lr=2e-3, tokens=4096, passes=40),
    Preset("base", 5_000_000, dim=512, ffn=2048, heads=8, layers=6, lr=7e-4, tokens=25_000, passes=25),
    Preset("big", 10**12, dim=1024, ffn=4096, heads=16, layers=6, lr=5e-4, tokens=50_000, passes=15),
)

VOCABULARIES = ((1000, 500), (3000, 1000), (10_000, 2000), (100_000, 4000), (300_000, 8000), (2_000_000, 16_000), (10**12, 32_000))
"""Pieces of both sides together, for corpora of fewer pairs."""
DROPOUTS = ((15, 0.1), (20, 0.2), (10**12, 0.3))
"""For fewer passes over the corpus."""
MOST_PASSES = 200
"""Over a corpus: beyond them a model only learns its pairs by heart, however much time there is."""


def preset_for(pairs: int, *, gpu: bool) -> Preset:
    """The one for so many pairs."""
    return next(preset for preset in (ON_GPU if gpu else ON_CPU) if pairs < preset.pairs)


def vocabulary_for(pairs: int, *, alphabet: int) -> int:
    """Pieces for so many pairs in so many characters, which are pieces as well: as many again have to be longer ones."""
    usual = next(size for limit, size in VOCABULARIES if pairs < limit)
    return max(usual, 2 * alphabet // 1000 * 1000)


def dropout_for(passes: float) -> float:
    """The more often a pair is seen, the more it takes to keep a model from learning it by heart."""
    return next(dropout for limit, dropout in DROPOUTS if passes < limit)


def ema_for(updates: int) -> float:
    """Decay of the moving average: over about the last fifth of a short run, a thousand updates of a long one."""
    return next(decay for limit, decay in ((300, 0.95), (1500, 0.99), (10_000, 0.998), (10**12, 0.999)) if updates < limit)


def warmup_for(updates: int) -> int:
    """An eighth of a run, 4000 updates at most."""
    return max(1, min(4000, updates // 8))
