"""Settings of the corpora: one model per kind of source, told apart by the key that only it has."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from mt.config.cleaning import AugmentConfig, FilterConfig, SplitConfig
from mt.config.stage import Auto, Contradiction, Count, Stage, auto_tag, clash, kind_tag

Weight = Annotated[float, Field(ge=1e-3, le=1000)]


class Langs(Stage):
    """Language codes, such as en or de; they choose the tokenizer of the scores."""

    src: str = Field(min_length=1)
    """Language of the source side."""
    tgt: str = Field(min_length=1)
    """Language of the target side."""


class CorpusSettings(Stage):
    """What every kind of corpus can have."""

    name: str | None = None
    """How messages call this corpus; the name of its (source) file or data set when left out."""
    weight: Weight = 1.0
    """Passes over this corpus in one epoch."""
    max_pairs: Count | None = None
    """The first pairs that are used; all when left out."""
    langs: Langs | None = None
    """Languages of this corpus, where one run has several directions; left out: those of the config, or those its file names end in."""

    synthetic: bool = False
    """Its sources were made by a model (`mt backtranslate`): a <bt> before each tells so; of training corpora only."""

    @abstractmethod
    def paths(self) -> list[Path]:
        """What is read, as configured: files, folders or patterns; nothing for a data set of the hub."""

    def called(self) -> str:
        """How messages call this corpus."""
        return self.name if self.name is not None else self.paths()[0].name


class TextFiles(CorpusSettings):
    """Plain text (also compressed), one sentence a line, line n of one file translates line n of the other."""

    src: Path
    """Source side: a file, or a folder or pattern (`part-*.en.gz`) of files, read in the order of their names."""
    tgt: Path
    """Target side, in as many files."""

    def paths(self) -> list[Path]:
        """Source, target."""
        return [self.src, self.tgt]


class TsvFile(CorpusSettings):
    """Tab-separated pairs; quotes are ordinary characters."""

    tsv: Path
    """A file (also compressed), a folder, or a pattern."""
    columns: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None = None
    """Source and target column, from 0. Left out: the file has exactly two columns."""

    def paths(self) -> list[Path]:
        """The file."""
        return [self.tsv]

    def contradictions(self) -> Iterator[Contradiction]:
        """One column cannot be both sides."""
        if self.columns and self.columns[0] == self.columns[1]:
            yield clash(f"column {self.columns[0]} is both source and target; name two different ones", "columns")


class CsvFile(CorpusSettings):
    """Comma-separated pairs, quoted as RFC 4180 says."""

    csv: Path
    """A file (also compressed), a folder, or a pattern."""
    columns: tuple[int, int] | tuple[str, str] | None = None
    """Source and target column: numbers from 0, or names that the first line holds. Left out: exactly two columns, no header."""
    separator: str = Field(default=",", min_length=1, max_length=1)
    """Between two fields."""

    def paths(self) -> list[Path]:
        """The file."""
        return [self.csv]

    def contradictions(self) -> Iterator[Contradiction]:
        """One column cannot be both sides, nor stand before the first; what quotes or ends lines cannot separate fields."""
        if self.separator in '"\r\n':
            yield clash("the separator cannot be a quote or a line end; a comma, a semicolon or a TAB can", "separator")
        if self.columns and any(isinstance(column, int) and column < 0 for column in self.columns):
            yield clash("columns are counted from 0", "columns")
        if self.columns and self.columns[0] == self.columns[1]:
            yield clash(f"column {self.columns[0]} is both source and target; name two different ones", "columns")


class Fields(Stage):
    """Where the two sides are found in a record; dots go down into nested objects, as in `translation.en`."""

    src: str
    """Field of the source side."""
    tgt: str
    """Field of the target side."""


class JsonlFile(CorpusSettings):
    """One JSON object a line."""

    jsonl: Path
    """A file (also compressed), a folder, or a pattern."""
    fields: Fields | None = None
    """Left out: `src` and `tgt`, or the two language codes, or the language codes under `translation`."""

    def paths(self) -> list[Path]:
        """The file."""
        return [self.jsonl]


class TmxFile(CorpusSettings):
    """A translation memory, TMX 1.4; the languages choose the variants of each unit."""

    tmx: Path
    """A file (also compressed), a folder, or a pattern."""

    def paths(self) -> list[Path]:
        """The file."""
        return [self.tmx]


class XliffFile(CorpusSettings):
    """XLIFF 1.2: the source and target of each translation unit."""

    xliff: Path
    """A file (also compressed), a folder, or a pattern."""

    def paths(self) -> list[Path]:
        """The file."""
        return [self.xliff]


class PoFile(CorpusSettings):
    """A gettext catalogue: msgid is the source, msgstr the target; fuzzy, obsolete and untranslated entries are not used."""

    po: Path
    """A file (also compressed), a folder, or a pattern."""

    def paths(self) -> list[Path]:
        """The file."""
        return [self.po]


class HubDataset(CorpusSettings):
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
    streaming: bool = False
    """Read it over the network as it comes, for one that is larger than the disk."""

    def paths(self) -> list[Path]:
        """The files for a loader."""
        return self.files

    def called(self) -> str:
        """How messages call this corpus."""
        return super().called() if self.name is not None or self.files else self.hub


KINDS = "tsv", "csv", "jsonl", "tmx", "xliff", "po", "hub"
"""The key that tells each kind of corpus from text files."""


def _corpus_kind(value: Any) -> str:
    keys = value if isinstance(value, dict) else type(value).model_fields if isinstance(value, Stage) else ()
    return next((kind_tag(kind) for kind in KINDS if kind in keys), kind_tag("src"))


def _dev_kind(value: Any) -> str:
    if isinstance(value, str):
        return kind_tag("none")
    by_name = isinstance(value, dict) and value and not value.keys() & CorpusSettings.model_fields.keys()
    return kind_tag("sets") if by_name and all(isinstance(one, dict | Stage) for one in value.values()) else _corpus_kind(value)


_Tagged = (
    Annotated[TextFiles, Tag(kind_tag("src"))]
    | Annotated[TsvFile, Tag(kind_tag("tsv"))]
    | Annotated[CsvFile, Tag(kind_tag("csv"))]
    | Annotated[JsonlFile, Tag(kind_tag("jsonl"))]
    | Annotated[TmxFile, Tag(kind_tag("tmx"))]
    | Annotated[XliffFile, Tag(kind_tag("xliff"))]
    | Annotated[PoFile, Tag(kind_tag("po"))]
    | Annotated[HubDataset, Tag(kind_tag("hub"))]
)
Corpus = Annotated[_Tagged, Discriminator(_corpus_kind)]
_Several = Annotated[dict[str, Corpus], Tag(kind_tag("sets"))]
DevSet = Annotated[_Tagged | _Several | Annotated[Literal["none"], Tag(kind_tag("none"))], Discriminator(_dev_kind)]


class DataConfig(Stage):
    """What is trained on, what is watched during training, what is scored at the end."""

    train: list[Corpus] = Field(min_length=1)
    """Training corpora, each in one of the formats below (docs/formats.md), as in {src: a.en, tgt: a.de}; so are dev and test sets."""
    dev: DevSet | None = None
    """Validation set, several by name (the means of their scores decide), or `none` to train without; left out: held out (data.split)."""
    test: dict[str, Corpus] = {}
    """Test sets by name, scored once at the end."""
    split: SplitConfig | None = None
    """What is held out where there is no dev set. In the config of a run: what was, which stays out of training."""
    max_pieces: int = Field(default=256, ge=1, le=100_000)
    """Longest side of a pair, in pieces, without end mark and tag; also where `translate` splits a line."""
    filters: FilterConfig = FilterConfig()
    """Pairs that are not trained on."""
    augment: AugmentConfig = AugmentConfig()
    """Noise on training pairs; off by default."""
    temperature: float | None = Field(default=None, ge=1, le=100)
    """Instead of weights: a corpus of n pairs is seen in proportion to n^(1/temperature), the epoch staying as long as all corpora."""
    tags: Literal["auto", True, False] = "auto"
    """Put the target language, as in <2de>, before each source; auto: when the training corpora have several target languages."""
    cache: Path | None = None
    """Where prepared corpora are kept and found again; left out: `mt` in the user's cache folder."""
    workers: Annotated[Auto | Annotated[int, Field(ge=0, le=64), Tag(kind_tag("number"))], Discriminator(auto_tag)] = "auto"
    """Processes that make batches beside the training process; auto: none on a CPU, two for a GPU."""

    def dev_sets(self) -> dict[str, Corpus]:
        """The validation sets by name."""
        if isinstance(self.dev, dict):
            return self.dev
        return {} if self.dev is None or self.dev == "none" else {self.dev.called(): self.dev}

    def contradictions(self) -> Iterator[Contradiction]:
        """Names tell corpora apart in messages and test sets apart in file names."""
        named = [(corpus.name, i) for i, corpus in enumerate(self.train) if corpus.name is not None]
        for name, count in Counter(name for name, _ in named).items():
            if count > 1:
                which = [("train", i, "name") for other, i in reversed(named) if other == name]
                yield Contradiction(f"{count} corpora are named {name!r}; give each its own name", tuple(which))
        weighted = [("train", i, "weight") for i, corpus in enumerate(self.train) if corpus.weight != 1]
        if self.temperature is not None and weighted:
            what = "temperature sets all weights; leave out the weights, or temperature"
            yield Contradiction(what, (("temperature",), *weighted))
        for name in self.test:
            if re.fullmatch(r"\.*|.*[/\\\0].*", name, re.DOTALL):
                what = f"the name {name!r} becomes a file name, which cannot be empty, only dots, or hold / or \\; choose another"
                yield Contradiction(what, (("test", name),))
