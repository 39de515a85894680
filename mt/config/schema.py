"""Every setting there is: one frozen model per stage. The text under a field is its manual (`mt config explain` prints it)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag

from mt.config.cleaning import AugmentConfig, FilterConfig, LocalShuffle, SplitConfig
from mt.config.corpora import (
    Corpus,
    CsvFile,
    DataConfig,
    DevSet,
    Fields,
    HubDataset,
    JsonlFile,
    Langs,
    PoFile,
    TextFiles,
    TmxFile,
    TsvFile,
    XliffFile,
)
from mt.config.protection import flaw_of
from mt.config.stage import MAX_BEAM, Contradiction, Count, Fraction, Stage, clash, kind_tag
from mt.config.training import (
    AverageConfig,
    Constant,
    Cosine,
    EarlyStopping,
    Frozen,
    InverseSqrt,
    Linear,
    Noam,
    OptimizerConfig,
    Schedule,
    TrainConfig,
    ValidationConfig,
)

__all__ = [
    "AugmentConfig",
    "AverageConfig",
    "BpeDropout",
    "Config",
    "Constant",
    "Corpus",
    "Cosine",
    "CsvFile",
    "DataConfig",
    "DecodeConfig",
    "DevSet",
    "EarlyStopping",
    "Fields",
    "FilterConfig",
    "Frozen",
    "HubDataset",
    "InverseSqrt",
    "JsonlFile",
    "Langs",
    "Linear",
    "LocalShuffle",
    "ModelConfig",
    "Noam",
    "OptimizerConfig",
    "PoFile",
    "Sample",
    "Schedule",
    "SplitConfig",
    "Stage",
    "TextFiles",
    "TmxFile",
    "TokenizerConfig",
    "TrainConfig",
    "TsvFile",
    "Unigram",
    "UnigramSample",
    "ValidationConfig",
    "XliffFile",
]

MAX_LENGTH_PENALTY = 10
"""Beyond it, length^α leaves nothing of the log-probability."""
MAX_COVERAGE_PENALTY = 10
"""Far beyond what helps."""
MAX_BATCH_TOKENS = 1_000_000
"""In decoding, where there is a cache for each."""

Layers = Annotated[int, Field(ge=1, le=1000)]
Sides = Annotated[list[Literal["src", "tgt"]], Field(min_length=1)]


class BpeDropout(Stage):
    """Merges left out at random while training (Provilkov et al. 2020, https://arxiv.org/abs/1910.13267)."""

    bpe_dropout: float = Field(default=0.1, gt=0, lt=1)
    """Probability that a merge is left out."""
    sides: Sides = ["src", "tgt"]
    """Which sides are sampled."""


class Unigram(Stage):
    """Smoothing and size of the lattice samples come from."""

    alpha: float = Field(default=0.1, gt=0)
    """Smoothing: smaller is more uniform."""
    nbest: int = Field(default=64, ge=-1, le=512)
    """How many best segmentations are drawn from; -1 is all."""


class UnigramSample(Stage):
    """Segmentations sampled from a unigram model while training (Kudo 2018, https://arxiv.org/abs/1804.10959)."""

    unigram: Unigram
    """How to sample."""
    sides: Sides = ["src", "tgt"]
    """Which sides are sampled."""


def _sample_kind(value: Any) -> str:
    keys = value if isinstance(value, dict) else type(value).model_fields if isinstance(value, Stage) else ()
    return kind_tag("unigram") if "unigram" in keys else kind_tag("bpe_dropout")


Sample = Annotated[
    Annotated[BpeDropout, Tag(kind_tag("bpe_dropout"))] | Annotated[UnigramSample, Tag(kind_tag("unigram"))],
    Discriminator(_sample_kind),
]


class TokenizerConfig(Stage):
    """sentencepiece, trained from the training text."""

    kind: Literal["bpe", "unigram"] = "bpe"
    """Sub-word method."""
    vocab_size: int = Field(default=8000, ge=8, le=2_000_000)
    """Pieces, special ones included; lowered, with a warning, when the corpus cannot fill it."""
    joint: bool = True
    """One vocabulary for both sides, or one each."""
    character_coverage: float = Field(default=1.0, gt=0.9, le=1.0)
    """Share of the characters that get a piece of their own."""
    byte_fallback: Literal["auto", True, False] = "auto"
    """Spell unknown characters as bytes; auto: when the vocabulary has room for 256 of them."""
    normalization: Literal["identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"] = "identity"
    """sentencepiece's normalisation rule; identity leaves the text as it is."""
    symbols: list[str] = []
    """Strings that are always one piece, such as placeholders."""
    max_line_bytes: int = Field(default=4192, ge=1, le=2**30)
    """Longer lines are left out of tokenizer training."""
    sample: Sample | None = None
    """Sub-word sampling while training; off by default."""

    def contradictions(self) -> Iterator[Contradiction]:
        """Each way of sampling belongs to one kind of model."""
        if isinstance(self.sample, UnigramSample) and self.kind == "bpe":
            yield clash("unigram sampling needs kind: unigram (for bpe use sample: {bpe_dropout: 0.1})", "sample", "kind")
        if isinstance(self.sample, BpeDropout) and self.kind == "unigram":
            yield clash("bpe_dropout needs kind: bpe (for unigram use sample: {unigram: {alpha: 0.1, nbest: 64}})", "sample", "kind")


def _divisor(number: int, near: int) -> int:
    return min((n for n in range(1, 2 * near + 1) if number % n == 0), key=lambda n: abs(n - near))


class ModelConfig(Stage):
    """Encoder-decoder Transformer (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762)."""

    dim: int = Field(default=256, ge=2, le=65_536)
    """Width of the states (d_model)."""
    ffn: int = Field(default=1024, ge=1, le=2**20)
    """Inner width of the feed-forward layers."""
    heads: Count = 4
    """Attention heads; they divide dim."""
    encoder_layers: Layers = 3
    """Depth of the encoder."""
    decoder_layers: Layers = 3
    """Depth of the decoder."""
    dropout: Fraction = 0.3
    """On embeddings and on the output of every sub-layer."""
    attention_dropout: Fraction = 0.0
    """On attention weights; above 0 it disables the fused attention kernels on CPU."""
    activation_dropout: Fraction = 0.0
    """Within the feed-forward layers, after the activation."""
    word_dropout: Fraction = 0.0
    """On whole tokens of both sides: the embedding of one is dropped, its position stays."""
    norm: Literal["pre", "post"] = "pre"
    """Normalisation before each sub-layer (with a final one), or after it as in the paper."""
    norm_kind: Literal["layer", "rms"] = "layer"
    """LayerNorm, or RMSNorm, which neither centres nor shifts (Zhang & Sennrich 2019, https://arxiv.org/abs/1910.07467)."""
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    """In the feed-forward layers; swiglu has a third matrix (Shazeer 2020, https://arxiv.org/abs/2002.05202), so take 2/3 of the ffn."""
    positions: Literal["sinusoidal", "rope"] = "sinusoidal"
    """Sinusoids added to embeddings, or queries and keys of self-attention turned (Su et al. 2021, https://arxiv.org/abs/2104.09864)."""
    tied_embeddings: bool = True
    """One matrix for all embeddings and the output layer, where the sides share a vocabulary; else target embedding and output."""
    gradient_checkpointing: bool = False
    """Recompute layers in the backward pass: less memory, a third to two fifths more time, the same losses."""

    def contradictions(self) -> Iterator[Contradiction]:
        """The width must split evenly into heads, and what positions pair into pairs."""
        if self.dim % self.heads:
            yield clash(f"{self.heads} does not divide model.dim {self.dim}; use {_divisor(self.dim, self.heads)}", "heads", "dim")
        elif self.positions == "rope" and self.dim // self.heads % 2:
            what = f"heads {self.dim // self.heads} wide are odd, and rope turns pairs of numbers"
            yield clash(f"{what}; use model.dim {self.dim + self.heads}", "heads", "dim", "positions")
        if self.positions == "sinusoidal" and self.dim % 2:
            yield clash(f"{self.dim} is odd, and sinusoidal positions need an even width; use {self.dim + 1}", "dim")


class DecodeConfig(Stage):
    """How `translate` and the final scores search."""

    beam: int = Field(default=5, ge=1, le=MAX_BEAM)
    """Beam width; 1 is greedy."""
    length_penalty: float = Field(default=1.0, ge=0, le=MAX_LENGTH_PENALTY)
    """α in score = log-probability / length^α; larger favours longer translations, 0 ranks by log-probability."""
    coverage_penalty: float = Field(default=0.0, ge=0, le=MAX_COVERAGE_PENALTY)
    """β in score + β · Σ log(min(attention to a piece of the source, 1)), which ranks what a beam finished; 0: none."""
    n_best: int = Field(default=1, ge=1, le=MAX_BEAM)
    """Translations given for each line."""
    patience: float = Field(default=1.0, ge=1, le=1000)
    """A line is finished when beam × patience translations are."""
    max_length_factor: float = Field(default=2.0, gt=0, le=100)
    """Longest translation, in pieces: factor × source pieces + extra."""
    max_length_extra: int = Field(default=20, ge=1, le=10_000)
    """See max_length_factor."""
    batch_tokens: int = Field(default=4096, ge=1, le=MAX_BATCH_TOKENS)
    """Rows × longest source of one decoding batch; less with a beam wider than 10."""
    protect: list[str] = []
    """What of a source its translation has to have as it is: tags, placeholders, numbers, urls, emails, or regular expressions."""
    retry_loops: bool = False
    """Whether a translation that repeats itself (the flag `loop`) is tried again, with n-grams that come only once."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "fp32"
    """Numbers that weights are in; auto: bf16 where the hardware multiplies it, else fp16 on CUDA, else fp32."""

    def contradictions(self) -> Iterator[Contradiction]:
        """A beam gives only what it holds, and patience needs one."""
        if self.n_best > self.beam * self.patience:
            held = f"a search with beam {self.beam} and patience {self.patience:g} ends at {math.ceil(self.beam * self.patience)}"
            yield clash(f"{self.n_best} translations a line, but {held}; raise decode.beam to {self.n_best}", "n_best", "beam", "patience")
        if self.patience != 1 and self.beam == 1:
            yield clash("patience needs a beam; set decode.beam to 2 or more, or leave patience out", "patience", "beam")
        if self.coverage_penalty and self.beam == 1:
            yield clash("it ranks what a beam finished; set decode.beam to 2 or more, or leave it out", "coverage_penalty", "beam")
        for pattern in self.protect:
            if flaw := flaw_of(pattern):
                yield clash(flaw, "protect")


class Config(Stage):
    """All settings of one run."""

    langs: Langs | None = None
    """Languages; left out: taken from suffixes such as x.en.gz and x.de.gz."""
    data: DataConfig
    """Corpora."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    """Sub-word tokenizer."""
    model: ModelConfig = ModelConfig()
    """Architecture."""
    train: TrainConfig = TrainConfig()
    """Training."""
    decode: DecodeConfig = DecodeConfig()
    """Search."""
    run_dir: Path | None = None
    """Where everything of this run is kept; left out: runs/<name of the config file>."""

    def contradictions(self) -> Iterator[Contradiction]:
        """Two passes need something that tells them apart, an update something to change, and the best a dev set."""
        model = self.model
        if self.train.r_drop and not (model.dropout or model.attention_dropout or model.activation_dropout or model.word_dropout):
            what = "two passes through a model without dropout are one and the same; set model.dropout, or leave r_drop out"
            yield clash(what, "train.r_drop", "model.dropout")
        if model.tied_embeddings and set(self.train.freeze) == set(get_args(Frozen)):
            what = f"nothing is left to train without {', '.join(get_args(Frozen))}; leave one of them out"
            yield clash(what, "train.freeze", "model.tied_embeddings")
        if self.train.average.best and self.data.dev == "none":
            what = "which checkpoints are the best is not known without a dev set; give data.dev, or average the last ones"
            yield clash(what, "train.average.best", "data.dev")
