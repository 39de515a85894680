"""A run as a folder that the `transformers` library loads by itself, with a fast tokenizer, and its proof.

The folder has config.json, model.safetensors and generation_config.json; tokenizer.json and tokenizer_config.json, for two vocabularies
in a folder each; README.md for whoever gets it, and mt.json, which says what it was made from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from mt.checkpoint import Weights
from mt.config.exports import IMPATIENT, strange_to_hugging_face
from mt.config.schema import Config
from mt.data.batches import padded
from mt.decode.engine import Beam
from mt.decode.parts import spaced, split
from mt.errors import ConfigError, RunError
from mt.export.card import card
from mt.export.fast import fast_tokenizer, odd_lines, refuse_other_ids
from mt.export.folder import Exporting, load, losses, made_in, origin
from mt.export.hf_model import architecture, generation, tensors
from mt.export.proof import Say
from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.formats.pairs import counted, one_line
from mt.rundir import ExportDir
from mt.tokenizer.spm import Tokenizers
from mt.translator import Translator

EXPORT_EXTRA = "pip install 'mt-trainer[export]'"
"""The cure for an export without the library."""

PROGRAM = "transformers"
SIDES = "source", "target"
"""Folders of the tokenizers where each side has its own."""

BATCH = 2048
"""Rows of the decoder × longest source of a batch, in the proof."""
FORCED = 64
"""Translations whose loss is compared."""
CLOSE = 1e-4
"""How far apart the two losses, a piece, may be."""

Prove = Callable[[Translator, "HfOther"], dict[str, Any] | None]
"""What looks at an export before it has its name, and tells what it saw, if anything; it raises an error where that will not do."""


def export(
    run: str | Path,
    folder: str | Path,
    checkpoint: str = "best",
    *,
    average: int | None = None,
    weights: Weights | None = None,
    prove: Prove | None = None,
    say: Say = lambda _: None,
) -> None:
    """Write a checkpoint of a run, or the mean of its `average` newest, as a folder for `AutoModelForSeq2SeqLM` and `AutoTokenizer`.

    It appears whole or not at all, and only where tokenizers, losses and `prove` find nothing wrong. Raises ConfigError without the
    library, RunError for a model that it cannot hold, where there is something already, and for what the disk refuses.
    """
    transformers, folder = library(), Path(folder)
    with made_in(folder, run) as partial, quietly(transformers):
        exporting = load(run, checkpoint, average=average, weights=weights)
        translator = exporting.translator
        refuse_strange(translator.config)
        write(transformers, exporting, partial)
        for line in (*losses(translator.config), *lost(translator.config)):
            say(line)
        other = HfOther(transformers, partial, exporting)
        native = without_patience(translator)
        proof = prove(native, other) if prove else None
        if other.translated:
            for line in proven_losses(native, other):
                say(line)
        if proof:
            proof = {**proof, "sample": re.sub(r"\S*/", "", proof["sample"])}  # whoever gets the folder need not know where files lie
        write_json(ExportDir(partial).facts_file, {**origin(exporting, PROGRAM), "proof": proof})
        readme = describe(exporting, folder.absolute().name, proof)
        (partial / "README.md").write_text(readme, encoding="utf-8", newline="\n")
    say(f"written: {folder}; how to use it is in its README.md")


def library() -> Any:
    """The library. Raises ConfigError, with the cure, where it is not installed."""
    try:
        import tokenizers  # noqa: F401
        import transformers
    except ImportError:
        raise ConfigError(f"mt export hf needs an extra: {EXPORT_EXTRA}") from None
    return transformers


@contextmanager
def quietly(transformers: Any) -> Iterator[None]:
    """Without the library's bars, and without its remarks on settings that it has no need of."""
    logging = transformers.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def refuse_strange(config: Config) -> None:
    """Raise RunError, with all reasons, for a model that neither architecture can hold."""
    if reasons := list(strange_to_hugging_face(config)):
        raise RunError(f"transformers cannot hold this model: {'; '.join(reasons)}; `mt export ct2` can")


def lost(config: Config) -> Iterator[str]:
    """What the run asks for that only mt's searches and CTranslate2's can do, a line each."""
    if config.decode.patience != 1:
        yield f"decode.patience is not in the export: {IMPATIENT}"


def without_patience(translator: Translator) -> Translator:
    """The same model with a search that the library has."""
    config = translator.config
    config = config.model_copy(update={"decode": config.decode.model_copy(update={"patience": 1.0})})
    return Translator(translator.model, translator.tokenizers, config=config, device=translator.engine.device)


# ── the folder ──────────────────────────────────────────────────────────────────────────────────────────────────────


def write(transformers: Any, exporting: Exporting, folder: Path) -> None:
    """Model, search and tokenizers."""
    run, (translator, config) = exporting.run, (exporting.translator, exporting.translator.config)
    tokenizers = translator.tokenizers
    architecture(transformers, config, tokenizers).save_pretrained(folder)
    save_file(tensors(translator.model, config), folder / "model.safetensors", metadata={"format": "pt"})
    transformers.GenerationConfig(**generation(config, tokenizers)).save_pretrained(folder)
    tag = None if several(tokenizers) else next(iter(tokenizers.src.tags.values()), None)
    longest = config.data.max_pieces + around(tokenizers)
    sides = dict(zip(SIDES, run.tokenizer_files(joint=tokenizers.joint), strict=True))
    if tokenizers.joint:
        save_tokenizer(sides[SIDES[0]].read_bytes(), folder, longest=longest, tag=tag)
        return
    for side, path in sides.items():
        save_tokenizer(path.read_bytes(), folder / side, longest=longest, tag=tag if side == SIDES[0] else None)


def around(tokenizers: Tokenizers) -> int:
    """Ids of a source that are no pieces of its text: the end, and the tag."""
    return 1 + bool(tokenizers.src.tags)


def save_tokenizer(model: bytes, folder: Path, *, longest: int, tag: int | None) -> None:
    """Write tokenizer.json and tokenizer_config.json."""
    fast = fast_tokenizer(model, tag=tag)
    folder.mkdir(exist_ok=True)
    fast.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{name}_token": piece for name, piece in (("pad", "<pad>"), ("unk", "<unk>"), ("bos", "<s>"), ("eos", "</s>"))},
        "split_special_tokens": True,  # what looks like one in a text is text
        "clean_up_tokenization_spaces": False,
        "model_max_length": longest,
        "padding_side": "right",
        "model_input_names": ["input_ids", "attention_mask"],
    }
    write_json(folder / "tokenizer_config.json", settings)


def write_json(path: Path, value: Any) -> None:
    """Indented, as the library does."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")


def describe(exporting: Exporting, name: str, proof: dict[str, Any] | None) -> str:
    """README.md."""
    run, translator, checkpoints = exporting
    config, tokenizers, model = translator.config, translator.tokenizers, translator.config.model
    joint = f"{tokenizers.src.size} pieces for both sides"
    sizes = joint if tokenizers.joint else f"{tokenizers.src.size} pieces of the source, {tokenizers.tgt.size} of the target"
    facts = [
        ("architecture", f"{'Pegasus' if model.norm == 'pre' else 'Marian'}, {model.norm}-norm, {model.activation}"),
        ("layers", f"{model.encoder_layers} in the encoder, {model.decoder_layers} in the decoder"),
        ("width", f"{model.dim}, {model.ffn} within feed-forward layers, {model.heads} heads"),
        ("parameters", str(sum(one.numel() for one in translator.model.parameters()))),
        ("vocabulary", f"{config.tokenizer.kind}, {sizes}"),
        ("checkpoint", ", ".join(checkpoints) if len(checkpoints) == 1 else f"the mean of {', '.join(checkpoints)}"),
    ]
    return card(
        run,
        config,
        name=name,
        facts=facts,
        usage=usage(name, config, tokenizers),
        limits=[*LIMITS, *lost(config), *losses(config)],
        proof=proof,
        library=PROGRAM,
        best=checkpoints == [Path(run.names().get("best", "")).name],
    )


LIMITS = (
    "One limit of length is for all lines of a batch; where it ends a translation, this one is ranked without the end.",
    "mt translate cuts lines that are longer than the model was trained on into parts; here they are translated as they are.",
    "Of bytes in a row that are not UTF-8 as a whole each becomes U+FFFD.",
)


def usage(folder: str, config: Config, tokenizers: Tokenizers) -> str:
    """How a program of the reader's own asks the model."""
    joint, src = tokenizers.joint, tokenizers.src
    decode = config.decode
    where = "" if joint else f', subfolder="{SIDES[0]}"'
    lines = [
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
        "",
        f'model = AutoModelForSeq2SeqLM.from_pretrained("{folder}")',
        f'tokenizer = AutoTokenizer.from_pretrained("{folder}"{where})',
    ]
    if not joint:
        lines.append(f'target = AutoTokenizer.from_pretrained("{folder}", subfolder="{SIDES[1]}")')
    lines += ["", 'lines = ["…"]']
    if several(tokenizers):
        lines += [
            f'tag = tokenizer.convert_tokens_to_ids("{src.pieces([next(iter(src.tags.values()))])[0]}")  # the target language',
            'batch = tokenizer.pad({"input_ids": [[tag, *ids] for ids in tokenizer(lines).input_ids]}, return_tensors="pt")',
        ]
    else:
        lines.append('batch = tokenizer(lines, return_tensors="pt", padding=True)')
    around = 1 + bool(src.tags)
    longest = f"int({decode.max_length_factor:g} * (batch.input_ids.shape[1] - {around})) + {decode.max_length_extra}"
    lines += [
        f"outputs = model.generate(**batch, max_new_tokens={longest})",
        f"for text in {'tokenizer' if joint else 'target'}.batch_decode(outputs, skip_special_tokens=True):",
        "    print(text)",
    ]
    return "\n".join(lines)


def several(tokenizers: Tokenizers) -> bool:
    """Whether a caller has to say which target language."""
    return len(tokenizers.src.tags) > 1


# ── the proof ───────────────────────────────────────────────────────────────────────────────────────────────────────


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
        order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
        found: dict[int, list[list[int]]] = {}
        for batch in cut(order, sources, width=search.width):
            found |= zip(batch, self.generate([sources[place] for place in batch], limits[batch[0]], search), strict=True)
        again = [place for place in order if any(len(one) > limits[place] for one in found[place])]
        for limit in dict.fromkeys(limits[place] for place in again):
            for batch in cut([place for place in again if limits[place] == limit], sources, width=search.width):
                found |= zip(batch, self.generate([sources[place] for place in batch], limit, search), strict=True)
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


def cut(places: Sequence[int], sources: Sequence[Sequence[int]], *, width: int) -> Iterator[Sequence[int]]:
    """Places, from long to short, in batches."""
    start = 0
    while start < len(places):
        rows = max(1, BATCH // (width * len(sources[places[start]])))
        yield places[start : start + rows]
        start += rows
