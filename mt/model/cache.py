"""What the decoder remembers between steps: keys and values of the target so far, and those of the source.

Legend: R decoder rows, B sentences, G rows per sentence (R = B·G), H heads, T target positions so far, S source positions, E head size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mt.model.attention import attendable


@dataclass(frozen=True)
class LayerCache:
    """Keys and values of one decoder layer."""

    k_RHTE: Tensor | None
    v_RHTE: Tensor | None
    memory_BHSE: tuple[Tensor, Tensor]

    @classmethod
    def start(cls, memory_BHSE: tuple[Tensor, Tensor]) -> LayerCache:
        """Before the first position. Laid out head by head once, and in the numbers of attention, or each step would copy it."""
        k, v = (attendable(part).contiguous() for part in memory_BHSE)
        return cls(None, None, (k, v))

    def extended(self, k_RH1E: Tensor, v_RH1E: Tensor) -> LayerCache:
        """With one more target position."""
        k_RH1E, v_RH1E = attendable(k_RH1E), attendable(v_RH1E)
        if self.k_RHTE is None or self.v_RHTE is None:
            return replace(self, k_RHTE=k_RH1E, v_RHTE=v_RH1E)
        return replace(self, k_RHTE=torch.cat([self.k_RHTE, k_RH1E], dim=2), v_RHTE=torch.cat([self.v_RHTE, v_RH1E], dim=2))


@dataclass(frozen=True)
class DecoderCache:
    """The state of a batch of searches: rows of one sentence stand together and share its memory."""

    layers: tuple[LayerCache, ...]
    allowed_B11S: Tensor
    sentence_R: Tensor
    length: int

    @property
    def group(self) -> int:
        """G, rows per sentence."""
        return self.sentence_R.numel() // self.allowed_B11S.size(0)

    def reorder(self, rows_R: Tensor) -> DecoderCache:
        """The rows that go on, by index; a row may be repeated, or left out."""
        same_rows = rows_R.numel() == self.sentence_R.numel() and torch.equal(rows_R, torch.arange(rows_R.numel(), device=rows_R.device))
        if same_rows:
            return self
        sentences_B, sentence_R, rows_per_sentence_B = torch.unique_consecutive(
            self.sentence_R[rows_R], return_inverse=True, return_counts=True
        )
        if bool((rows_per_sentence_B != rows_per_sentence_B[0]).any()):  # no common G: each row carries its own memory
            sentences_B, sentence_R = self.sentence_R[rows_R], torch.arange(rows_R.numel(), device=rows_R.device)
        same_sentences = sentences_B.numel() == self.allowed_B11S.size(0) and torch.equal(
            sentences_B, torch.arange(sentences_B.numel(), device=rows_R.device)
        )

        def pick(layer: LayerCache) -> LayerCache:
            k, v = layer.memory_BHSE
            return LayerCache(
                k_RHTE=None if layer.k_RHTE is None else layer.k_RHTE.index_select(0, rows_R),
                v_RHTE=None if layer.v_RHTE is None else layer.v_RHTE.index_select(0, rows_R),
                memory_BHSE=(k, v) if same_sentences else (k.index_select(0, sentences_B), v.index_select(0, sentences_B)),
            )

        allowed = self.allowed_B11S if same_sentences else self.allowed_B11S[sentences_B]
        return DecoderCache(
            layers=tuple(pick(layer) for layer in self.layers), allowed_B11S=allowed, sentence_R=sentence_R, length=self.length
        )
