"""The tokenizers that a run was trained with."""

from __future__ import annotations

from pathlib import Path

from mt.errors import RunError
from mt.rundir import RunDir
from mt.tokenizer.spm import Tokenizer, Tokenizers


def load_tokenizers(run: RunDir, *, joint: bool) -> Tokenizers:
    """The tokenizers of a run."""
    src, tgt = run.tokenizer_files(joint=joint)
    one = Tokenizer.load(src)
    return Tokenizers(one, one if joint else Tokenizer.load(tgt))


def check_fingerprints(state: dict[str, object], tokenizers: Tokenizers, *, source: Path) -> None:
    """Raise RunError if a checkpoint was trained with other tokenizers."""
    if state.get("tokenizers") != [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint]:
        raise RunError(f"{source}: was trained with another tokenizer than the one in the run directory; put the original model file back")
