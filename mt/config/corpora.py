"""Settings of the corpora: one model per kind of source, told apart by the key that only it has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from mt.config.stage import Contradiction, Stage, clash, kind_tag

Weight = Annotated[float, Field(ge=1e-3, le=1000)]


class Langs(Stage):
    """Language codes, such as en or de; they choose the tokenizer of the scores."""

    src: str = Field(min_length=1)
    """Language of the source side."""
    tgt: str = Field(min_length=1)
    """Language of the target side."""


class TextFiles(Stage):
    """Two plain text files (also compressed), one sentence a line, line n of one translates line n of the other."""

    src: Path
    """Source side."""
    tgt: Path
    """Target side."""
    name: str | None = None
    """How messages call this corpus; the source file's name when left out."""
    weight: Weight = 1.0
    """Passes over this corpus in one epoch."""


class TsvFile(Stage):
    """Tab-separated pairs; quotes are ordinary characters."""

    tsv: Path
    """The file (also compressed)."""
    columns: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None = None
    """Source and target column, from 0. Left out: the file has exactly two columns."""
    name: str | None = None
    """How messages call this corpus."""
    weight: Weight = 1.0
    """Passes over this corpus in one epoch."""

    def contradictions(self) -> Iterator[Contradiction]:
        """One column cannot be both sides."""
        if self.columns and self.columns[0] == self.columns[1]:
            yield clash(f"column {self.columns[0]} is both source and target; name two different ones", "columns")


class Fields(Stage):
    """Where the two sides are found in a record; dots go down into nested objects, as in `translation.en`."""

    src: str
    """Field of the source side."""
    tgt: str
    """Field of the target side."""


class JsonlFile(Stage):
    """One JSON object a line."""

    jsonl: Path
    """The file (also compressed)."""
    fields: Fields | None = None
    """Left out: `src` and `tgt`, or the two language codes, or the language codes under `translation`."""
    name: str | None = None
    """How messages call this corpus."""
    weight: Weight = 1.0
    """Passes over this corpus in one epoch."""


class HubDataset(Stage):
    """A data set of the Hugging Face `datasets` library: a hub name, a folder written by `save_to_disk`, or a loader with files."""

    hub: str = Field(min_length=1)
    """Hub name, folder, or loader (`json`, `parquet`, `csv`) together with `files`."""
    subset: str | None = None
    """The data set's configuration, such as `de-en`."""
    split: str = "train"
    """Which split."""
    files: list[Path] = []
    """Local files for a loader."""
    fields: Fields | None = None
    """Left out: `src` and `tgt`, or the two language codes, or the language codes under `translation`."""
    name: str | None = None
    """How messages call this corpus."""
    weight: Weight = 1.0
    """Passes over this corpus in one epoch."""


def _corpus_kind(value: Any) -> str:
    keys = value if isinstance(value, dict) else type(value).model_fields if isinstance(value, Stage) else ()
    return next((kind_tag(kind) for kind in ("tsv", "jsonl", "hub") if kind in keys), kind_tag("src"))


def _dev_kind(value: Any) -> str:
    return kind_tag("none") if isinstance(value, str) else _corpus_kind(value)


_Tagged = (
    Annotated[TextFiles, Tag(kind_tag("src"))]
    | Annotated[TsvFile, Tag(kind_tag("tsv"))]
    | Annotated[JsonlFile, Tag(kind_tag("jsonl"))]
    | Annotated[HubDataset, Tag(kind_tag("hub"))]
)
Corpus = Annotated[_Tagged, Discriminator(_corpus_kind)]
DevSet = Annotated[_Tagged | Annotated[Literal["none"], Tag(kind_tag("none"))], Discriminator(_dev_kind)]


class DataConfig(Stage):
    """What is trained on, what is watched during training, what is scored at the end."""

    train: list[Corpus] = Field(min_length=1)
    """Training corpora."""
    dev: DevSet
    """Validation set, or `none` to train without one."""
    test: dict[str, Corpus] = {}
    """Test sets by name, scored once at the end."""
    max_pieces: int = Field(default=256, ge=1)
    """Longest side of a pair, in pieces, without the end mark; also where `translate` splits a line."""

    def contradictions(self) -> Iterator[Contradiction]:
        """Names tell corpora apart in messages and test sets apart in file names."""
        named = [(corpus.name, i) for i, corpus in enumerate(self.train) if corpus.name is not None]
        for name, count in Counter(name for name, _ in named).items():
            if count > 1:
                which = [("train", i, "name") for other, i in reversed(named) if other == name]
                yield Contradiction(f"{count} corpora are named {name!r}; give each its own name", tuple(which))
        for name in self.test:
            if re.fullmatch(r"\.*|.*[/\\\0].*", name, re.DOTALL):
                what = f"the name {name!r} becomes a file name, which cannot be empty, only dots, or hold / or \\; choose another"
                yield Contradiction(what, (("test", name),))
