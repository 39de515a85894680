"""Train the tokenizer: a bounded sample of the corpus in, a sentencepiece model and what there is to say about it out.

The alphabet is counted here and handed over, so that what gets a piece of its own, what is spelled as bytes and what becomes unknown is
decided, and can be told, before sentencepiece starts. The same text, settings and seed give the same model to the last byte.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import sentencepiece

from mt.config.schema import TokenizerConfig
from mt.errors import TokenizerError
from mt.files import write_atomic
from mt.tokenizer.excerpt import BLOCK, HOLE, Item, Line, Texts, excerpt
from mt.tokenizer.spm import BACK_TRANSLATED, SPACE, UNKNOWN, Tokenizer, plain, tag_piece

SPECIALS = "<pad>", "<unk>", "<s>", "</s>"
BYTES = 256
BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
RESERVED = "\u2585\x1f"  # sentencepiece's own marks, which it takes for no text: for a character left out, and for an end of pieces


@dataclass(frozen=True)
class FitReport:
    """What came out of training a tokenizer, and what the user should know about it."""

    model: Path
    """Where the model was written."""
    vocab_size: int
    """Its number of ids: the rows of the embedding."""
    byte_fallback: bool
    """Whether characters without a piece are spelled as bytes; else they are unknown."""
    lines: int
    """Corpus lines there were; of a large corpus, those that the sample was taken from."""
    left_out_lines: int
    """Those not trained on because of their length."""
    left_out_characters: dict[str, int]
    """Characters of the text that have no piece of their own, with their number, the most frequent first."""
    warnings: list[str]
    """What was adjusted or left out, a line each."""


def fit(texts: Iterable[Line], path: Path, cfg: TokenizerConfig, *, tags: Sequence[str] = (), marked: bool = False, seed: int) -> FitReport:
    """Train a tokenizer on raw text and write its model to `path`, whole or not at all.

    An item of `texts` is one line of the corpus: a string, or several (both sides of a pair, for a joint vocabulary), which are then
    left out or sampled together and counted as one line. `tags` are the language codes that get a `<2xx>`, `marked` asks for a `<bt>`.
    Sizes that do not fit the text are adjusted and reported. Raises TokenizerError where no text is left, or a symbol cannot be one.
    """
    return fit_items(texts, lambda line: line, path, cfg, tags=tags, marked=marked, seed=seed)


def fit_items(
    items: Iterable[Item],
    line_of: Callable[[Item], Line | None],
    path: Path,
    cfg: TokenizerConfig,
    *,
    tags: Sequence[str] = (),
    marked: bool = False,
    seed: int,
) -> FitReport:
    """`fit` on the lines that `line_of` makes of items, None where one has no line; it is not asked about all items of a large corpus."""
    controls = [*map(tag_piece, tags), *([BACK_TRANSLATED] if marked else [])]
    symbols = _checked(cfg.symbols, controls)
    corpus = excerpt(items, line_of, max_bytes=cfg.max_line_bytes, seed=seed)
    lines, warnings = corpus.texts, []
    if corpus.too_long:
        which = f"{corpus.too_long} of {corpus.lines} lines left out of tokenizer training"
        warnings.append(f"{which}: longer than {cfg.max_line_bytes} bytes (tokenizer.max_line_bytes)")
    if cfg.normalization != "identity":
        lines, note = _normalised(lines, cfg.normalization)
        warnings += note
        if not any(line.strip(" " + HOLE) for line in lines):
            raise TokenizerError(f"no text to train the tokenizer on: tokenizer.normalization {cfg.normalization} leaves nothing of it")

    counts = Counter[str]()
    for line in lines:
        counts.update(line)
    for symbol in symbols:
        del counts[symbol]  # one of a single character has its piece already
    covered, uncovered = _cover(counts, cfg.character_coverage)
    letters = [c for c in covered if c not in (" ", HOLE)]
    fixed = len((*SPECIALS, SPACE, *controls, *symbols))
    plan = layout(cfg.vocab_size, fixed=fixed, letters=len(letters), byte_fallback=cfg.byte_fallback)
    rare, letters = letters[plan.letters :], letters[: plan.letters]

    fate = "are spelled as bytes" if plan.byte_fallback else "become unknown"
    warnings += _left_out(uncovered, counts, f"{fate} (tokenizer.character_coverage {cfg.character_coverage})")
    warnings += _left_out(rare, counts, f"{fate} (no room for them in tokenizer.vocab_size {cfg.vocab_size})")
    if not plan.byte_fallback and cfg.byte_fallback == "auto":
        warnings.append(
            f"byte_fallback is off, as a vocabulary of {cfg.vocab_size} has little room for 256 bytes: characters that are not in the "
            "training text become unknown (raise tokenizer.vocab_size, or set tokenizer.byte_fallback: true)"
        )

    holes = {ord(c): HOLE for c in (*uncovered, *rare, *RESERVED)}
    model = _train((line.translate(holes) for line in lines), cfg, plan, letters=letters, symbols=symbols, controls=controls)
    size = Tokenizer(model).size
    if size > cfg.vocab_size:
        needs = f"{len(letters)} characters{', 256 bytes' if plan.byte_fallback else ''} and {fixed} special pieces need {size}"
        warnings.append(f"tokenizer.vocab_size {cfg.vocab_size} raised to {size}: {needs}")
    elif size < cfg.vocab_size:
        warnings.append(f"tokenizer.vocab_size {cfg.vocab_size} lowered to {size}: the training text gives no more pieces")
    with write_atomic(path, "wb") as file:
        file.write(model)
    left_out = {c: counts[c] for c in (*rare, *uncovered)}
    return FitReport(path, size, plan.byte_fallback, corpus.lines, corpus.too_long, left_out, warnings)


# ── what is trained on ──────────────────────────────────────────────────────────────────────────────────────────────


def _normalised(lines: Texts, rule: str) -> tuple[Texts, list[str]]:
    """The lines as the rule leaves them, and a remark that shows the first change, if there is one."""
    normalised, texts, changed, example = Texts(), 0, 0, ""
    rest = iter(lines)
    while block := list(islice(rest, BLOCK)):
        before, after = _apply("identity", block), _apply(rule, block)
        for old, new in zip(before, after, strict=True):
            normalised.append([new])
            if old != new:
                example = example or _difference(old, new)
                changed += 1
        texts += len(block)
    if not changed:
        return normalised, []
    return normalised, [f"normalization {rule} changes {changed} of {texts} texts for good: {example} (tokenizer.normalization)"]


def _difference(old: str, new: str) -> str:
    begin = max(0, len(os.path.commonprefix((old, new))) - 10)
    return f"{old[begin : begin + 40]!r} becomes {new[begin : begin + 40]!r}"


def _apply(rule: str, lines: list[str]) -> list[str]:
    """The lines after a normalisation rule and the collapse of spaces, as sentencepiece applies them before it looks for pieces."""
    return sentencepiece.SentencePieceNormalizer(
        rule_name=rule, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=True
    ).normalize(lines)


# ── what the vocabulary holds ───────────────────────────────────────────────────────────────────────────────────────


def _checked(symbols: Sequence[str], controls: Sequence[str]) -> list[str]:
    """The symbols, each once. Raises TokenizerError for one that sentencepiece could not keep whole, or that names another piece."""
    taken = {*SPECIALS, *controls}
    for symbol in symbols:
        if not symbol or plain(symbol) != symbol or {" ", HOLE} & set(symbol):
            raise TokenizerError(f"tokenizer.symbols: {symbol!r} cannot be one piece: it is empty, or holds white space or NUL")
        if symbol in taken or BYTE_PIECE.fullmatch(symbol):
            raise TokenizerError(f"tokenizer.symbols: {symbol!r} is the name of a special piece, choose another")
    return list(dict.fromkeys(symbols))


def _cover(counts: Counter[str], coverage: float) -> tuple[list[str], list[str]]:
    """Characters, the most frequent first, up to the share `coverage` of the text, and those beyond (sentencepiece's definition)."""
    ranked = sorted(counts, key=lambda c: (-counts[c], c))
    seen, total = 0, counts.total()
    for place, character in enumerate(ranked):
        if seen / total >= coverage:
            return ranked[:place], ranked[place:]
        seen += counts[character]
    return ranked, []


class Layout(NamedTuple):
    """What a vocabulary is made of; the rest of `size` goes to merges."""

    size: int
    """Number of ids to train."""
    letters: int
    """How many of the most frequent characters have a piece of their own."""
    byte_fallback: bool
    """Whether there are 256 pieces for bytes."""


def layout(asked: int, *, fixed: int, letters: int, byte_fallback: Literal["auto"] | bool) -> Layout:
    """Share out a vocabulary of `asked` ids among `fixed` special pieces, `letters` characters, bytes and merges.

    With bytes, rare characters give way, down to half of `asked`, so that merges keep a quarter of it and at least as many as the bytes
    take; without, every character stays. `auto` is bytes where all that fits, and where bytes keep the vocabulary nearer to `asked`
    than a large alphabet would. Where even this needs more than `asked`, the size is raised.
    """
    room = asked - fixed - BYTES - max(BYTES, asked // 4)
    common = min(letters, max(room, asked // 2))
    spelled = Layout(max(asked, fixed + BYTES + common), common, True)
    whole = Layout(max(asked, fixed + letters), letters, False)
    if byte_fallback == "auto":
        byte_fallback = common <= room or spelled.size < whole.size
    return spelled if byte_fallback else whole


def _left_out(characters: Sequence[str], counts: Counter[str], fate: str) -> list[str]:
    """A line on characters without a piece, if there are any: the first twenty, each with its number."""
    if not characters:
        return []
    named = ", ".join(f"{c + ' ' if c.isprintable() else ''}U+{ord(c):04X} ({counts[c]})" for c in characters[:20])
    more = f" and {len(characters) - 20} more" if len(characters) > 20 else ""
    plural = "characters have" if len(characters) > 1 else "character has"
    return [f"{len(characters)} {plural} no piece and {fate}: {named}{more}"]


# ── sentencepiece ───────────────────────────────────────────────────────────────────────────────────────────────────


def _train(
    lines: Iterator[str], cfg: TokenizerConfig, plan: Layout, *, letters: list[str], symbols: list[str], controls: list[str]
) -> bytes:
    """The serialised model for lines that are normalised. Holds at most `plan.size` pieces, fewer where the text gives no more."""
    model = io.BytesIO()
    reserved = [c for c in letters if c in RESERVED]  # each can be a symbol, though not a required character
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=model,
        model_type=cfg.kind,
        vocab_size=plan.size,
        hard_vocab_limit=False,
        character_coverage=1.0,
        # Needed in spite of full coverage: sentencepiece cuts out what looks like a special piece before it counts characters.
        required_chars="".join(c for c in letters if c not in RESERVED),
        byte_fallback=plan.byte_fallback,
        normalization_rule_name="identity",
        control_symbols=controls,
        user_defined_symbols=[*symbols, *reserved],
        unk_surface=UNKNOWN,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        max_sentence_length=2**30,  # lines that are too long are gone already
        num_threads=1,  # sums of floats depend on how they are shared out
        minloglevel=3,
    )
    if cfg.normalization == "identity":
        return model.getvalue()
    # Not left to the trainer: some text changes again when normalised again, and its alphabet would no longer be the one counted.
    # A protocol buffer appended to another takes the place of the fields they share, here the normaliser.
    return model.getvalue() + sentencepiece.SentencePieceNormalizer(rule_name=cfg.normalization).serialized_model_proto()
