"""sacreBLEU's own test sets, where its cache (`~/.sacrebleu`, or $SACREBLEU) holds them. Nothing is ever fetched."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mt.errors import DataError

LABELS = ("docid", "origlang")


class KnownSet(NamedTuple):
    """The files of a test set: the references that sacreBLEU scores with, and labels of its lines by what they are."""

    src: Path
    refs: list[Path]
    labels: dict[str, Path]


def known_set(name: str, pair: str) -> KnownSet:
    """The set called `name`, such as wmt20, in the direction `pair`, such as en-de.

    Raises DataError, with the cure, for a name or direction that sacreBLEU does not know, and for a set that is not in its cache.
    """
    from sacrebleu.dataset import DATASETS

    dataset = DATASETS.get(name)
    if dataset is None:
        ways = "expected NAME:SRC:REF, or a test set of sacreBLEU's with its direction, such as wmt20:en-de"
        raise DataError(f"--test {name}{':' if pair else ''}{pair}: {ways} (`sacrebleu --list` names all)")
    if pair not in dataset.langpairs:
        where = f"--test {name}:{pair}: it has no such direction" if pair else f"--test {name}: add the direction"
        raise DataError(f"{where}; choose from {', '.join(f'{name}:{one}' for one in dataset.langpairs)}")
    src = Path(dataset._get_txt_file_path(pair, "src"))  # type: ignore[no-untyped-call]
    before = src.name.removesuffix("src")
    fields = {path.name.removeprefix(before): path for path in sorted(src.parent.glob(f"{before}*"))} if src.exists() else {}
    refs = [path for field, path in fields.items() if field.startswith("ref")]
    if hasattr(dataset, "_get_langpair_allowed_refs"):  # of several translators some only count if they are asked for
        allowed = {field.replace(":", "-") for field in dataset._get_langpair_allowed_refs(pair)}
        refs = [path for field, path in fields.items() if field in allowed]
    if not refs:
        fetch = f"sacrebleu -t {name} -l {pair} --echo src > /dev/null"
        raise DataError(f"--test {name}:{pair}: is not in sacreBLEU's cache ({src.parent}); with a network, `{fetch}` puts it there")
    return KnownSet(src, refs, {label: fields[label] for label in LABELS if label in fields})
