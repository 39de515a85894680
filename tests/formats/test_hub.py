from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub.utils
import pytest
import zstandard
from datasets import Dataset, DatasetDict, Features, Translation, Value

from mt.config.schema import Fields, HubDataset, JsonlFile, Langs
from mt.errors import DataError
from mt.formats.hub import hub_fingerprint
from mt.formats.pairs import Pair
from mt.formats.readers import read_pairs

LANGS = Langs(src="en", tgt="de")
SIDES = [{"en": "a\nb", "de": "A"}, {"en": "c", "de": "C\tD"}]
PAIRS = [("a b", "A"), ("c", "C D")]


def translations() -> Dataset:
    """Shaped like the hub's translation corpora: both sides under `translation`."""
    columns = {"id": ["0", "1"], "translation": SIDES}
    return Dataset.from_dict(columns, features=Features({"id": Value("string"), "translation": Translation(languages=["en", "de"])}))


def sides(corpus: HubDataset | JsonlFile) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in read_pairs(corpus, langs=LANGS)]


def only_error(corpus: HubDataset, langs: Langs | None = LANGS) -> str:
    with pytest.raises(DataError) as caught:
        list(read_pairs(corpus, langs=langs))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def saved(data: Dataset | DatasetDict, folder: Path) -> str:
    data.save_to_disk(str(folder))
    return str(folder)


# ── a folder written by save_to_disk ────────────────────────────────────────────────────────────────────────────────


def test_saved_splits(tmp_path: Path) -> None:
    folder = saved(DatasetDict({"train": translations(), "test": translations().select([1])}), tmp_path / "saved")
    assert sides(HubDataset(hub=folder)) == PAIRS
    assert list(read_pairs(HubDataset(hub=folder, split="test", name="news"), langs=LANGS)) == [Pair("c", "C D", "news[test]:0")]
    assert "no split dev; there are: train, test" in only_error(HubDataset(hub=folder, split="dev"))


def test_another_data_set_has_another_fingerprint(tmp_path: Path) -> None:
    one, other = (saved(data, tmp_path / name) for name, data in (("one", translations()), ("other", translations().select([1]))))
    prints = [hub_fingerprint(HubDataset(hub=folder), name="x") for folder in (one, one, other)]
    assert prints[0] == prints[1] != prints[2]
    assert all(prints)
    with pytest.raises(DataError, match="no split dev"):
        hub_fingerprint(HubDataset(hub=one, split="dev"), name="x")


def test_saved_without_splits(tmp_path: Path) -> None:
    folder = saved(translations(), tmp_path / "saved")
    assert sides(HubDataset(hub=folder)) == PAIRS
    assert "no split dev; there are: train" in only_error(HubDataset(hub=folder, split="dev"))


def test_rows_are_numbered_through(tmp_path: Path) -> None:
    count = 2345  # more than two batches
    folder = saved(Dataset.from_dict({"src": [f"s{n}" for n in range(count)], "tgt": [f"t{n}" for n in range(count)]}), tmp_path / "saved")
    assert list(read_pairs(HubDataset(hub=folder))) == [Pair(f"s{n}", f"t{n}", f"{folder}[train]:{n}") for n in range(count)]


def test_null_is_an_empty_side(tmp_path: Path) -> None:
    folder = saved(Dataset.from_dict({"en": ["a", None], "de": ["A", "B"]}), tmp_path / "saved")
    assert sides(HubDataset(hub=folder)) == [("a", "A"), ("", "B")]


def test_fields_are_chosen_and_checked(tmp_path: Path) -> None:
    folder = saved(Dataset.from_dict({"x": [{"y": "a"}], "z": ["A"], "n": [1], "l": [["A"]]}), tmp_path / "saved")
    assert sides(HubDataset(hub=folder, fields=Fields(src="x.y", tgt="z"))) == [("a", "A")]
    assert sides(HubDataset(hub=folder, fields=Fields(src="z", tgt="z"))) == [("A", "A")]
    assert "there are: " in only_error(HubDataset(hub=folder))
    assert "field `n` is int64, expected text" in only_error(HubDataset(hub=folder, fields=Fields(src="n", tgt="z")))
    assert "field `l` is List, expected text" in only_error(HubDataset(hub=folder, fields=Fields(src="z", tgt="l")))
    missing = only_error(HubDataset(hub=folder, fields=Fields(src="x", tgt="z")))
    assert "no fields `x` and `z`; there are: x.y, z, n, l" in missing


def test_empty_split_is_named(tmp_path: Path) -> None:
    translations().select([]).to_parquet(str(tmp_path / "x.parquet"))
    message = only_error(HubDataset(hub="parquet", files=[tmp_path / "x.parquet"]))
    assert message.startswith("x.parquet[train]: cannot be loaded: ")
    assert "no data" in message


# ── local files through a loader ────────────────────────────────────────────────────────────────────────────────────


def test_loaders_agree_with_the_jsonl_reader(tmp_path: Path) -> None:
    lines, table = tmp_path / "x.jsonl", tmp_path / "x.parquet"
    lines.write_text("".join(json.dumps({"translation": record}) + "\n" for record in SIDES), encoding="utf-8")
    translations().to_parquet(str(table))
    assert sides(HubDataset(hub="json", files=[lines])) == sides(HubDataset(hub="parquet", files=[table])) == sides(JsonlFile(jsonl=lines))
    assert [pair.origin for pair in read_pairs(HubDataset(hub="parquet", files=[table, table]), langs=LANGS)] == [
        f"x.parquet[train]:{n}" for n in range(4)
    ]


def test_folder_of_data_files(tmp_path: Path) -> None:
    translations().to_parquet(str(tmp_path / "train.parquet"))
    assert sides(HubDataset(hub=str(tmp_path))) == PAIRS


def test_bad_files_and_splits_are_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.jsonl").write_text('{"src": "a", "tgt"\n', encoding="utf-8")
    (tmp_path / "x.jsonl").write_text('{"src": "a", "tgt": "A"}\n', encoding="utf-8")
    (tmp_path / "none").mkdir()
    assert "JSON parse error" in only_error(HubDataset(hub="json", files=[tmp_path / "broken.jsonl"]))
    assert "gone.jsonl" in only_error(HubDataset(hub="json", files=[tmp_path / "gone.jsonl"]))
    assert "['train']" in only_error(HubDataset(hub="json", files=[tmp_path / "x.jsonl"], split="dev"))
    assert "none" in only_error(HubDataset(hub=str(tmp_path / "none")))
    assert "needs files" in only_error(HubDataset(hub="json"))
    assert capfd.readouterr() == ("", "")  # neither bars nor the library's own messages


# ── streamed ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_gives_the_pairs_of_the_table(tmp_path: Path) -> None:
    translations().to_parquet(str(tmp_path / "x.parquet"))
    (tmp_path / "x.jsonl.zst").write_bytes(
        zstandard.ZstdCompressor().compress("".join(json.dumps({"translation": record}) + "\n" for record in SIDES).encode())
    )
    for loader, file in ("parquet", "x.parquet"), ("json", "x.jsonl.zst"):
        table = HubDataset(hub=loader, files=[tmp_path / file])
        stream = table.model_copy(update={"streaming": True})
        assert list(read_pairs(stream, langs=LANGS)) == list(read_pairs(table, langs=LANGS))
        assert sides(stream) == PAIRS


def test_a_stream_is_read_as_far_as_needed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"src": "a", "tgt": "A"}\n' * 1500, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("broken\n", encoding="utf-8")
    corpus = HubDataset(hub="json", files=[tmp_path / "?.jsonl"], streaming=True, max_pairs=5)
    assert [pair.origin for pair in read_pairs(corpus)] == [f"?.jsonl[train]:{n}" for n in range(5)]


def test_bad_rows_of_a_stream_are_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.jsonl"
    corpus = HubDataset(hub="json", files=[path], streaming=True)
    path.write_text('{"src": "a", "tgt": "A"}\n{"src": null, "tgt": "B"}\n', encoding="utf-8")
    assert sides(corpus) == [("a", "A"), ("", "B")]
    path.write_text('{"src": "a", "tgt": 1}\n', encoding="utf-8")
    assert only_error(corpus) == "x.jsonl[train]:0: field `tgt` is 1, expected a string"
    path.write_text('{"src": "a", "tgt"\n', encoding="utf-8")
    assert only_error(corpus).startswith("x.jsonl[train]: cannot be ")
    assert capfd.readouterr() == ("", "")
    assert "cannot be reached" in only_error(HubDataset(hub="opus_books", subset="de-en", streaming=True))


def test_loader_files_may_be_a_pattern(tmp_path: Path) -> None:
    for name in "ba":
        (tmp_path / f"{name}.jsonl").write_text(f'{{"src": "{name}", "tgt": "A"}}\n', encoding="utf-8")
    corpus = HubDataset(hub="json", files=[tmp_path / "*.jsonl"])
    assert sides(corpus) == sides(corpus.model_copy(update={"streaming": True})) == [("a", "A"), ("b", "A")]


# ── the hub itself, which no test can reach ─────────────────────────────────────────────────────────────────────────


def test_hub_out_of_reach_is_one_line_with_a_cure() -> None:
    message = only_error(HubDataset(hub="opus_books", subset="de-en"))
    assert message.startswith("opus_books[train]: ")
    assert "cannot be reached" in message
    assert "files: [pairs.jsonl]" in message


def test_no_answer_means_no_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the first question the library would try to connect for half a minute."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    asked: list[float] = []

    class Silent:
        def head(self, url: str, *, timeout: float) -> None:
            asked.append(timeout)
            raise TimeoutError(url)

    monkeypatch.setattr(huggingface_hub.utils, "get_session", Silent)
    assert "cannot be reached" in only_error(HubDataset(hub="opus_books"))
    assert len(asked) == 1
    assert asked[0] <= 10
    assert datasets.config.HF_HUB_OFFLINE is False


def test_hub_name_subset_and_split_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def load_dataset(path: str, name: str | None, *, split: str, data_files: list[str] | None, streaming: bool) -> Dataset:
        calls.append((path, name, split, data_files, streaming))
        return translations()

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    pairs = list(read_pairs(HubDataset(hub="opus_books", subset="de-en", split="train[:2]"), langs=LANGS))
    assert calls == [("opus_books", "de-en", "train[:2]", None, False)]
    assert [pair.origin for pair in pairs] == ["opus_books[train[:2]]:0", "opus_books[train[:2]]:1"]


def test_the_library_is_left_as_it_was(tmp_path: Path) -> None:
    before = datasets.logging.get_verbosity(), datasets.are_progress_bars_disabled(), datasets.config.HF_HUB_OFFLINE
    sides(HubDataset(hub=saved(translations(), tmp_path / "saved")))
    only_error(HubDataset(hub=str(tmp_path / "gone")))
    assert (datasets.logging.get_verbosity(), datasets.are_progress_bars_disabled(), datasets.config.HF_HUB_OFFLINE) == before


def test_importing_the_readers_imports_no_datasets() -> None:
    code = "import sys, mt.formats.readers; sys.exit('datasets' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
