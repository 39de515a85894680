"""A run as a folder that the `transformers` library loads by itself, with a fast tokenizer, and its proof.

The folder has config.json, model.safetensors and generation_config.json; tokenizer.json and tokenizer_config.json, for two vocabularies
in a folder each; README.md for whoever gets it, and mt.json, which says what it was made from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from mt.checkpoint import Weights
from mt.config.exports import IMPATIENT, strange_to_hugging_face
from mt.config.schema import Config
from mt.errors import ConfigError, RunError
from mt.export.card import card
from mt.export.fast import fast_tokenizer
from mt.export.folder import Exporting, load, losses, made_in, write_facts, write_json
from mt.export.hf_model import SIDES, architecture, around, generation, several, tensors
from mt.export.hf_other import HfOther, proven_losses
from mt.export.proof import Prove, Say
from mt.extras import install
from mt.tokenizer.spm import Tokenizers
from mt.translator import Translator

PROGRAM = "transformers"
"""As an export names it."""


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

    It appears whole or not at all, and only where its tokenizers cut as the run's do, `prove` finds nothing wrong, and what that has
    translated costs as much by both. Raises ConfigError without the
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
        write_facts(partial, exporting, PROGRAM, {"proof": proof})
        (partial / "README.md").write_text(readme(exporting, folder.absolute().name, proof), encoding="utf-8", newline="\n")
    say(f"written: {folder}; how to use it is in its README.md")


def library() -> Any:
    """The library. Raises ConfigError, with the cure, where it is not installed."""
    try:
        import tokenizers  # noqa: F401
        import transformers
    except ImportError:
        raise ConfigError(f"mt export hf needs an extra: {install('export')}") from None
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


def save_tokenizer(model: bytes, folder: Path, *, longest: int, tag: int | None) -> None:
    """Write tokenizer.json and tokenizer_config.json."""
    fast = fast_tokenizer(model, tag=tag)
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(fast.to_str(pretty=True), encoding="utf-8", newline="\n")
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


def readme(exporting: Exporting, name: str, proof: dict[str, Any] | None) -> str:
    """README.md."""
    run, translator, checkpoints = exporting
    config, tokenizers, model = translator.config, translator.tokenizers, translator.config.model
    src, tgt = (one.size for one in tokenizers)
    sizes = f"{src} pieces for both sides" if tokenizers.joint else f"{src} pieces of the source, {tgt} of the target"
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
    joint, src, called = tokenizers.joint, tokenizers.src, json.dumps(folder, ensure_ascii=False)
    decode = config.decode
    where = "" if joint else f', subfolder="{SIDES[0]}"'
    lines = [
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
        "",
        f"model = AutoModelForSeq2SeqLM.from_pretrained({called})",
        f"tokenizer = AutoTokenizer.from_pretrained({called}{where})",
    ]
    if not joint:
        lines.append(f'target = AutoTokenizer.from_pretrained({called}, subfolder="{SIDES[1]}")')
    lines += ["", 'lines = ["…"]']
    if several(tokenizers):
        lines += [
            f'tag = tokenizer.convert_tokens_to_ids("{src.pieces([next(iter(src.tags.values()))])[0]}")  # the target language',
            'batch = tokenizer.pad({"input_ids": [[tag, *ids] for ids in tokenizer(lines).input_ids]}, return_tensors="pt")',
        ]
    else:
        lines.append('batch = tokenizer(lines, return_tensors="pt", padding=True)')
    longest = f"int({decode.max_length_factor:g} * (batch.input_ids.shape[1] - {around(tokenizers)})) + {decode.max_length_extra}"
    lines += [
        f"outputs = model.generate(**batch, max_new_tokens={longest})",
        f"for text in {'tokenizer' if joint else 'target'}.batch_decode(outputs, skip_special_tokens=True):",
        "    print(text)",
    ]
    return "\n".join(lines)
