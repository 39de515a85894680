"""Which other programs can hold a model of some settings, exactly, and which of the settings they do not know.

CTranslate2   has all of them; RMSNorm, SwiGLU and rotary positions are options of its Transformer, the last only of newer versions
Hugging Face  pre-norm is Pegasus (three-way tied embeddings, sinusoids), post-norm is Marian, in the `transformers` library
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mt.config.schema import Config

OWN = ("coverage_penalty", "protect", "retry_loops")
"""Settings of `decode` that only mt's own searches know."""

IMPATIENT = "the library ends a search when as many translations are finished as the beam is wide"
"""What becomes of `decode.patience` in the `transformers` library."""


class Holder(NamedTuple):
    """A program that might run the model, as what, and what keeps it from doing so."""

    program: str
    architecture: str
    obstacles: list[str]
    """Each the setting, and why; none: it holds the model."""
    note: str = ""
    without: tuple[str, ...] = ()
    """What the run asks for, and exports cannot do."""

    def line(self) -> str:
        """For the user."""
        if self.obstacles:
            return f"{self.program}: cannot hold it: {'; '.join(self.obstacles)}"
        lost = f", but without {', '.join(self.without)}: only mt's own searches know that" if self.without else ""
        return f"{self.program}: can hold it, as {self.architecture}{self.note}{lost}"


def left_out(config: Config) -> tuple[str, ...]:
    """What of the search that a run asks for has no place in an export."""
    return tuple(f"decode.{name}" for name in OWN if getattr(config.decode, name))


def holders(config: Config) -> list[Holder]:
    """What each program makes of the model."""
    model = config.model
    turned = " (model.positions rope: in versions whose encoder has rotary positions)" if model.positions == "rope" else ""
    impatient = f" (but for decode.patience: {IMPATIENT})" if config.decode.patience != 1 else ""
    architecture = "PegasusForConditionalGeneration" if model.norm == "pre" else "MarianMTModel"
    return [
        Holder("CTranslate2", "its Transformer", [], turned, left_out(config)),
        Holder("Hugging Face", architecture, list(strange_to_hugging_face(config)), impatient, left_out(config)),
    ]


def strange_to_hugging_face(config: Config) -> Iterator[str]:
    """Each setting that keeps a model from being one of the `transformers` library, and why."""
    model, joint = config.model, config.tokenizer.joint
    if model.norm_kind == "rms":
        yield "model.norm_kind rms, it has LayerNorm alone"
    if model.activation == "swiglu":
        yield "model.activation swiglu, its feed-forward layers have two matrices"
    if model.positions == "rope":
        yield "model.positions rope, it adds sinusoids to the embeddings"
    if model.norm == "pre" and not joint:  # Marian has two vocabularies where it is told so
        yield "tokenizer.joint false, Pegasus (it is that for model.norm pre) has one vocabulary for both sides"
    elif model.norm == "pre" and not model.tied_embeddings:
        yield "model.tied_embeddings false, Pegasus (it is that for model.norm pre) has one matrix for both sides"
    if config.tokenizer.normalization != "identity":
        yield f"tokenizer.normalization {config.tokenizer.normalization}, its fast tokenizers have no rules that are exactly these"
