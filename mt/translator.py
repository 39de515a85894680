"""Text in, text out: the only module that knows text and tensors. Training's validation, `mt translate`, `mt eval` and the API all use it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import torch

from mt.checkpoint import Weights, load_weights, read_state, read_weights
from mt.config.load import load
from mt.config.schema import Config, Langs
from mt.data.pairs import one_line
from mt.decode.engine import Beam, Engine, Sampling
from mt.decode.step import Hypothesis
from mt.errors import RunError
from mt.model.device import choose_device
from mt.model.transformer import Transformer
from mt.rundir import RunDir
from mt.tokenizer.spm import Tokenizer, Tokenizers

WINDOW = 10_000  # lines sorted by length together
UNSPACED = {"zh", "ja", "th", "lo", "km", "my"}  # languages whose sentences are joined without a space
BREAKS = re.compile(r"[.!?…]\s+|[。！？]"), re.compile(r"\s+"), re.compile(r".", re.DOTALL)
"""What a line that is too long is split after: sentence ends, else spaces, else any character."""


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    source: str
    hypotheses: list[tuple[str, Hypothesis]]
    """Texts with what was searched, best first; empty for a blank line."""
    flags: list[str] = field(default_factory=list)
    """`truncated`: the length limit ended it; `split`: the line was too long and translated in parts."""

    @property
    def text(self) -> str:
        """The best translation; a blank line stays blank."""
        return self.hypotheses[0][0] if self.hypotheses else ""


class Translator:
    """A model with everything needed around it."""

    def __init__(self, model: Transformer, tokenizers: Tokenizers, *, config: Config, device: torch.device) -> None:
        self.model, self.tokenizers, self.config = model, tokenizers, config
        self.engine = Engine(model, tokenizers, device=device)

    @classmethod
    def load(
        cls, run: str | Path, checkpoint: str = "best", *, device: str = "auto", precision: str | None = None, weights: Weights | None = None
    ) -> Translator:
        """Read a run directory. `weights` None: the moving average where there is one. Raises RunError if something is missing or does not fit."""
        rundir = RunDir(run)
        path = rundir.find(checkpoint)
        config = load(rundir.config).config
        tokenizers = load_tokenizers(rundir, joint=config.tokenizer.joint)
        check_fingerprints(read_state(path), tokenizers, source=path)
        where = choose_device(device)
        model = Transformer.build(config.model, src_vocab=tokenizers.src.size, tgt_vocab=tokenizers.tgt.size, joint=tokenizers.joint)
        load_weights(model, read_weights(path, weights), source=path)
        dtype = {None: torch.float32, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
        if dtype is None:
            raise RunError(f"--precision {precision}: choose fp32, bf16 or fp16")
        return cls(model.to(where, dtype).eval(), tokenizers, config=config, device=where)

    @property
    def langs(self) -> Langs | None:
        """The languages of the run, if it knows them."""
        return self.config.langs

    def translate(
        self,
        lines: Iterable[str],
        *,
        beam: int | None = None,
        settings: Beam | Sampling | None = None,
        batch_tokens: int | None = None,
        seed: int = 1,
        first_line: int = 1,
    ) -> list[Translation]:
        """One translation a line, in order. `beam` alone changes the width; `settings` says everything about the search."""
        return list(self.stream(lines, beam=beam, settings=settings, batch_tokens=batch_tokens, seed=seed, first_line=first_line))

    def stream(
        self,
        lines: Iterable[str],
        *,
        beam: int | None = None,
        settings: Beam | Sampling | None = None,
        batch_tokens: int | None = None,
        seed: int = 1,
        first_line: int = 1,
        window: int = WINDOW,
    ) -> Iterator[Translation]:
        """As `translate`, but in bounded memory: windows of lines are sorted by length, translated in batches and given back in order."""
        search = settings or Beam.build(self.config.decode)
        if beam is not None and isinstance(search, Beam):
            search = replace(search, width=beam, n_best=min(search.n_best, beam), patience=search.patience if beam > 1 else 1.0)
        budget = batch_tokens or self.config.decode.batch_tokens
        rest = iter(lines)
        while chunk := list(islice(rest, window)):
            yield from self._window(chunk, search, budget=budget, seed=seed, first_line=first_line)
            first_line += len(chunk)

    def _window(self, lines: Sequence[str], search: Beam | Sampling, *, budget: int, seed: int, first_line: int) -> Iterator[Translation]:
        parts = [(number, ids) for number, line in enumerate(lines) for ids in self.pieces(line)]
        order = sorted(range(len(parts)), key=lambda i: -len(parts[i][1]))
        found: dict[int, list[Hypothesis]] = {}
        for batch in batches_of(order, [len(ids) for _, ids in parts], budget=budget):
            sources = [parts[i][1] for i in batch]
            # A part's seed is its line's, moved on by its place in the line, so that nothing depends on batches or windows.
            seeds = [(seed << 40) + ((first_line + parts[i][0]) << 8) + (i - first_part(parts, i)) for i in batch]
            for i, hypotheses in zip(batch, self.engine.search(sources, search, limits=[self.limit(ids) for ids in sources], seeds=seeds), strict=True):
                found[i] = hypotheses
        by_line: dict[int, list[list[Hypothesis]]] = {}
        for i, (number, _) in enumerate(parts):
            by_line.setdefault(number, []).append(found[i])
        for number, line in enumerate(lines):
            yield self.joined(line, by_line.get(number, []))

    def limit(self, ids: Sequence[int]) -> int:
        """Longest output for a source, EOS counted."""
        cfg = self.config.decode
        return int(cfg.max_length_factor * len(ids)) + cfg.max_length_extra

    def pieces(self, line: str) -> list[list[int]]:
        """The ids of a line: none if it is blank, several parts if it is longer than data.max_pieces."""
        parts = split(one_line(line), self.tokenizers.src, most=self.config.data.max_pieces)
        return [ids for part in parts if (ids := self.tokenizers.src.encode(part))]

    def joined(self, line: str, parts: Sequence[list[Hypothesis]]) -> Translation:
        """Hypotheses of a line from those of its parts: the n-th of each, or the best where a part has fewer."""
        flags = ["split"] if len(parts) > 1 else []
        if any(hypotheses[0].truncated for hypotheses in parts):
            flags.append("truncated")
        if not parts:
            return Translation(line, [], flags)
        glue = "" if self.langs and re.split("[-_]", self.langs.tgt)[0] in UNSPACED else " "
        combined = []
        for rank in range(max(map(len, parts))):
            chosen = [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in parts]
            text = glue.join(self.tokenizers.tgt.decode(h.ids) for h in chosen)
            whole = chosen[0]
            if len(chosen) > 1:
                ids = [i for h in chosen for i in h.ids]
                log_prob = sum(h.log_prob for h in chosen)
                score = sum(h.score for h in chosen) / len(chosen)
                whole = Hypothesis(ids, log_prob, score, any(h.truncated for h in chosen))
            combined.append((text, whole))
        return Translation(line, combined, flags)


def first_part(parts: Sequence[tuple[int, list[int]]], i: int) -> int:
    """Index of the first part of the line that part i belongs to."""
    while i and parts[i - 1][0] == parts[i][0]:
        i -= 1
    return i


def batches_of(order: Sequence[int], lengths: Sequence[int], *, budget: int) -> Iterator[list[int]]:
    """Cut places sorted from long to short into batches of rows × longest ≤ budget (with EOS); a longer one is a batch by itself."""
    start = 0
    while start < len(order):
        rows = max(1, budget // (lengths[order[start]] + 1))
        yield list(order[start : start + rows])
        start += rows


def split(line: str, tokenizer: Tokenizer, *, most: int, level: int = 0) -> list[str]:
    """Consecutive parts of a line, each as long as it can be with at most `most` pieces (the line itself, if it has no more)."""
    if len(tokenizer.encode(line)) <= most:
        return [line]
    parts, start, end = [], 0, 0
    for cut in [*(found.end() for found in BREAKS[level].finditer(line)), len(line)]:
        if end > start and len(tokenizer.encode(line[start:cut])) > most:
            parts.append(line[start:end])
            start = end
        end = cut
    parts.append(line[start:])
    if level + 1 == len(BREAKS):
        return parts
    return [part for whole in parts for part in split(whole, tokenizer, most=most, level=level + 1)]


def load_tokenizers(run: RunDir, *, joint: bool) -> Tokenizers:
    """The tokenizers of a run."""
    src, tgt = run.tokenizer_files(joint=joint)
    one = Tokenizer.load(src)
    return Tokenizers(one, one if joint else Tokenizer.load(tgt))


def check_fingerprints(state: dict[str, object], tokenizers: Tokenizers, *, source: Path) -> None:
    """Raise RunError if a checkpoint was trained with other tokenizers."""
    if state.get("tokenizers") != [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint]:
        raise RunError(f"{source}: was trained with another tokenizer than the one in the run directory; put the original model file back")
