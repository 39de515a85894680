"""Pairs through the Hugging Face `datasets` library: from the hub, from a folder written by `save_to_disk`, or from files with a loader.

The library is imported on use (it takes about two seconds). No code of a data set is ever run: from version 4 on
the library has no loading scripts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt.config.schema import HubDataset, Langs
from mt.errors import DataError
from mt.files import shards
from mt.formats.pairs import Pair, choose_fields, flatten, one_line, text_of

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

LOADERS = "json", "csv", "parquet", "arrow", "text", "xml"
TEXT_TYPES = "string", "large_string", "string_view"
ROWS = 1000
HUB_SECONDS = 5.0


def read_hub(corpus: HubDataset, *, name: str, langs: Langs | None = None) -> Iterator[Pair]:
    """The pairs of one split, in its order; the origin is `name[split]:row`, rows counted from 0 as the library does.

    Fields as in `choose_fields`, nested ones with dots. A null is an empty side. With `streaming` rows are read as they come, and neither
    memory nor disk holds them. Raises DataError if the data set cannot be had, or has no such split or no such text fields.
    """
    from datasets import IterableDataset

    where = f"{name}[{corpus.split}]"
    rows = _load(corpus, where)
    streamed = isinstance(rows, IterableDataset)
    sides = _streamed(rows, corpus, langs, where) if streamed else _stored(rows, corpus, langs, where)
    for number, (src, tgt) in enumerate(sides):
        yield Pair(one_line(src or ""), one_line(tgt or ""), f"{where}:{number}")


def hub_fingerprint(corpus: HubDataset, *, name: str) -> str:
    """What tells this version of a data set from others; nothing for a stream. Raises DataError if it cannot be had."""
    return "" if corpus.streaming else str(_load(corpus, f"{name}[{corpus.split}]")._fingerprint)


def _stored(rows: Dataset, corpus: HubDataset, langs: Langs | None, where: str) -> Iterator[tuple[str | None, str | None]]:
    """Both sides of each row of a memory-mapped table."""
    rows = rows.flatten()
    fields = choose_fields(rows.column_names, fields=corpus.fields, langs=langs, where=where)
    for field in (fields.src, fields.tgt):
        kind = rows.features[field]
        if getattr(kind, "dtype", None) not in TEXT_TYPES:
            raise DataError(f"{where}: field `{field}` is {getattr(kind, 'dtype', type(kind).__name__)}, expected text")
    for batch in rows.select_columns(list(dict.fromkeys((fields.src, fields.tgt)))).iter(ROWS):
        yield from zip(batch[fields.src], batch[fields.tgt], strict=True)


def _streamed(rows: IterableDataset, corpus: HubDataset, langs: Langs | None, where: str) -> Iterator[tuple[str | None, str | None]]:
    """Both sides of each row as it arrives; the first one decides which fields are read if the corpus does not."""
    fields, number = corpus.fields, 0
    batches = iter(rows.iter(ROWS))
    while columns := _next(batches, where):
        for row in zip(*columns.values(), strict=True):
            place = f"{where}:{number}"
            record = {name: "" if value is None else value for name, value in flatten(dict(zip(columns, row, strict=True))).items()}
            fields = fields or choose_fields(record, fields=None, langs=langs, where=place)
            yield text_of(record, fields.src, where=place), text_of(record, fields.tgt, where=place)
            number += 1


def _next(batches: Iterator[dict[str, list[Any]]], where: str) -> dict[str, list[Any]] | None:
    """The columns of the next rows of a stream; None at its end."""
    try:
        with _quietly(offline=False):
            return next(batches, None)
    except Exception as error:  # of the library, of pyarrow, of the network: all about what the user named
        raise DataError(f"{where}: cannot be read on: {_reason(error)}") from error


def _load(corpus: HubDataset, where: str) -> Dataset | IterableDataset:
    """The split as a memory-mapped table, or as a stream if that is asked for; whatever the library raises becomes one line."""
    import datasets

    folder = Path(corpus.hub)
    remote = not corpus.files and not folder.is_dir()
    if remote and corpus.hub in LOADERS:  # the library would look through everything below the current folder
        raise DataError(f"{where}: the loader {corpus.hub} needs files: [pairs.{corpus.hub}]")
    try:
        with _quietly(offline=remote and not _hub_answers()):
            if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
                return _saved_split(datasets.load_from_disk(folder), corpus.split)
            files = [str(file) for path in corpus.files for file in shards(path)]
            return datasets.load_dataset(
                corpus.hub, corpus.subset, split=corpus.split, data_files=files or None, streaming=corpus.streaming
            )
    except DataError:
        raise
    except ConnectionError:
        tried = "no folder of this name, no copy in the cache, and the Hugging Face hub cannot be reached"
        raise DataError(f"{where}: {tried}; load it once with a network, or give files: {{hub: json, files: [pairs.jsonl]}}") from None
    # The library raises its own errors, ValueError, RuntimeError, pyarrow's, the network library's …, all about what the user named.
    except Exception as error:
        raise DataError(f"{where}: cannot be loaded: {_reason(error)}") from error


def _saved_split(saved: Dataset | dict[str, Dataset], split: str) -> Dataset:
    """The split of what `save_to_disk` wrote; a folder without splits is its own `train`."""
    splits = saved if isinstance(saved, dict) else {"train": saved, str(saved.split): saved}
    if split not in splits:
        raise ValueError(f"no split {split}; there are: {', '.join(name for name in splits if name != 'None')}")
    return splits[split]


def _hub_answers() -> bool:
    """Whether the hub can be reached; asked first because the library itself tries for half a minute."""
    from datasets import config
    from huggingface_hub.utils import get_session  # type: ignore[attr-defined]  # the place all versions have

    try:
        get_session().head(config.HF_ENDPOINT, timeout=HUB_SECONDS)
    except Exception:  # of whichever network library is in use this year
        return False
    return True


@contextmanager
def _quietly(*, offline: bool) -> Iterator[None]:
    """Without the library's own bars and messages, and without the network if `offline` (what is in its cache still loads)."""
    import datasets

    level, bars, network = datasets.logging.get_verbosity(), datasets.are_progress_bars_disabled(), datasets.config.HF_HUB_OFFLINE
    datasets.logging.set_verbosity(logging.CRITICAL)
    datasets.disable_progress_bars()
    datasets.config.HF_HUB_OFFLINE = network or offline
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = network
        datasets.logging.set_verbosity(level)
        if not bars:
            datasets.enable_progress_bars()


def _reason(error: BaseException) -> str:
    """The first line of the innermost error: the outer ones only say that something failed."""
    while error.__cause__:
        error = error.__cause__
    return str(error).strip().split("\n")[0] or type(error).__name__
