"""An export for the `transformers` library as the proof sees it: what the library makes of it, and whether it costs the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mt.data.batches import padded
from mt.decode.engine import Beam
from mt.decode.parts import spaced, split
from mt.errors import RunError
from mt.export.fast import odd_lines, refuse_other_ids
from mt.export.folder import Exporting
from mt.export.hf_model import SIDES, around, several
from mt.forced.given import Given, batches
from mt.forced.score import token_log_probs
from mt.formats.pairs import counted, one_line
from mt.translator import Translator

BATCH = 2048
"""Rows of the decoder × longest source of a batch, in the proof."""
FORCED = 64
"""Translations whose loss is compared."""
CLOSE = 1e-4
"""How far apart the two losses, a piece, may be."""


class HfOther:
    """An export as the proof sees it: loaded by the library alone."""

    tolerance, exact = 1.0, True

    def __init__(self, transformers: Any, folder: Path, exporting: Exporting) -> None:
        self.native = exporting.translator
        self.called = f"transformers {transformers.__version__}"
        model, told = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
        if wrong := {name: keys for name, keys in told.items() if keys}:
            raise RunError(f"this version of transformers has other weights in mind ({wrong}); pip install -U transformers")
        self.model = model.eval()
        auto, joint = transformers.AutoTokenizer, self.native.tokenizers.joint
        self.src, self.tgt = (auto.from_pretrained(folder, **({} if joint else {"subfolder": side})) for side in SIDES)
        self.translated: list[tuple[str, str]] = []
        """The newest lines, with what became of them."""
        self.to: str | None = None
        self.turned = 0
        """How many of them have the same pieces in another order."""
        self.files = exporting.run.tokenizer_files(joint=joint)
        for file, tokenizer in zip(self.files, (self.src, self.tgt), strict=True):
            model_bytes = file.read_bytes()
            refuse_other_ids(model_bytes, tokenizer.backend_tokenizer, odd_lines(model_bytes))

    def translate(self, lines: Sequence[str], search: Beam, *, to: str | None) -> list[str]:
        """One text a line; lines that are too long in parts, as mt cuts them."""
        src, most = self.native.tokenizers.src, self.native.config.data.max_pieces
        whole = [split(one_line(line), src, most=most) if line.strip() else [] for line in lines]
        parts = [[part for part in own if part.strip() and src.encode(part)] for own in whole]
        flat = [part for own in parts for part in own]
        self.turned = refuse_other_ids(self.files[0].read_bytes(), self.src.backend_tokenizer, flat)
        found = self.tgt.batch_decode(self.search(self.ids(flat, to), search), skip_special_tokens=True)
        rest, glue = iter(found), " " if spaced(self.native.target(to).lang) else ""
        texts = [one_line(glue.join(next(rest) for _ in own)) for own in parts]
        refuse_other_ids(self.files[1].read_bytes(), self.tgt.backend_tokenizer, texts)
        self.translated, self.to = [(line, text) for line, text, own in zip(lines, texts, parts, strict=True) if len(own) == 1], to
        return texts

    def ids(self, lines: Sequence[str], to: str | None) -> list[list[int]]:
        """Of sources: the tag of several languages, pieces, the end."""
        tokenizers = self.native.tokenizers
        before = self.native.target(to).prefix if several(tokenizers) else []
        return [[*before, *ids] for ids in self.src(list(lines)).input_ids] if lines else []

    def search(self, sources: Sequence[list[int]], search: Beam) -> list[list[int]]:
        """The best output of each source. Batches have one limit: what it might have changed is searched again, with its own."""
        limits = [self.native.limit(ids[: len(ids) - around(self.native.tokenizers)]) for ids in sources]
        found: dict[int, list[list[int]]] = {}

        def searched(places: Sequence[int]) -> None:
            for batch in batches([Given(sources[place], []) for place in places], budget=BATCH // search.width):
                own = [places[i] for i in batch]  # the longest first
                found.update(zip(own, self.generate([sources[place] for place in own], limits[own[0]], search), strict=True))

        searched(range(len(sources)))
        again = [place for place in found if any(len(one) > limits[place] for one in found[place])]
        for limit in dict.fromkeys(limits[place] for place in again):
            searched([place for place in again if limits[place] == limit])
        return [found[place][0] for place in range(len(sources))]

    @torch.inference_mode()
    def generate(self, sources: Sequence[list[int]], limit: int, search: Beam) -> list[list[list[int]]]:
        """All that a search finished for each source, best first, each with its end."""
        eos, pad = self.native.tokenizers.tgt.eos, self.native.tokenizers.src.pad
        src_BS = padded(sources, pad=pad)
        wide = {"early_stopping": True, "length_penalty": search.length_penalty, "num_return_sequences": search.width}
        options = {"num_beams": search.width, "max_new_tokens": limit, **(wide if search.width > 1 else {})}
        outputs = self.model.generate(input_ids=src_BS, attention_mask=(src_BS != pad).long(), **options).tolist()
        ended = [ids[1 : ids.index(eos) + 1] for ids in outputs]
        return [ended[start : start + search.width] for start in range(0, len(ended), search.width)]

    @torch.inference_mode()
    def logits(self, sources: Sequence[list[int]], inputs: Sequence[Sequence[int]]) -> torch.Tensor:
        """After each input, (B, T, V)."""
        src, tgt = self.native.tokenizers
        src_BS, inputs_BT = padded(sources, pad=src.pad), padded(inputs, pad=tgt.pad)
        found = self.model(input_ids=src_BS, attention_mask=(src_BS != src.pad).long(), decoder_input_ids=inputs_BT)
        logits_BTV: torch.Tensor = found.logits
        return logits_BTV

    def first_step(self, lines: Sequence[str], *, to: str | None) -> NDArray[np.float32]:
        """Log-probabilities (B, V) of the first piece."""
        start = self.model.generation_config.decoder_start_token_id
        logits_BV = self.logits(self.ids(lines, to), [[start]] * len(lines))[:, 0]
        found: NDArray[np.float32] = logits_BV.log_softmax(dim=-1).numpy()
        return found

    @torch.inference_mode()
    def loss(self, pairs: Sequence[tuple[str, str]]) -> float:
        """The mean of −log p over all pieces and ends of some translations, each after the true ones before it."""
        tgt = self.native.tokenizers.tgt
        sources = self.ids([line for line, _ in pairs], self.to)
        targets = self.tgt([text for _, text in pairs], add_special_tokens=False).input_ids
        total = 0.0
        for source, target in zip(sources, targets, strict=True):
            logp_TV = self.logits([source], [[tgt.bos, *target]])[0].log_softmax(dim=-1)
            total -= float(logp_TV.gather(1, torch.tensor([*target, tgt.eos])[:, None]).sum(dtype=torch.float64))
        return total / sum(len(target) + 1 for target in targets)


def proven_losses(native: Translator, other: HfOther) -> Iterator[str]:
    """What the newest translations cost by both, in a line. Raises RunError where that is not the same."""
    pairs, (src, tgt) = other.translated[:FORCED], native.tokenizers
    prefix = native.target(other.to).prefix
    given = [Given([*prefix, *src.encode(one_line(line))], tgt.encode(text)) for line, text in pairs]
    found = token_log_probs([native.model], given, native.tokenizers, device=native.engine.device, batch_tokens=BATCH)
    ours, theirs = -sum(map(sum, found)) / sum(map(len, found)), other.loss(pairs)
    if not abs(ours - theirs) <= CLOSE:
        raise RunError(f"the export does not compute what the run does: its loss is {theirs:.6f} a piece, that of the run {ours:.6f}")
    if other.turned:
        yield f"{counted(other.turned, 'line')} cut into the same pieces in another order, equally probable"
    yield f"loss of {counted(len(pairs), 'translation')}: {ours:.6f} a piece by the run, {theirs:.6f} by the export"
