"""What a run is made from: kept in the cache and found again, made again when it is gone, refused when it would be another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mt.config.schema import Config
from mt.data.cachedir import CacheDir
from mt.data.store import Store
from mt.errors import ConfigError, DataError, RunError
from mt.launch import inputs
from mt.launch.inputs import open_store, training_data, weighted
from mt.launch.sources import facts_of, fingerprints
from mt.rundir import RunDir
from mt.tokenizer.of_run import load_tokenizers
from tests import toy
from tests.runs import Done, differences, four_updates, journal, train
from tests.runs import contents as contents_of

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus and an empty cache."""
    toy.write_corpus(tmp_path, train=40, dev=4, test=3)
    return tmp_path


def run(folder: Path, *overrides: str, name: str = "run", **flags: Any) -> tuple[RunDir, Done]:
    """Two updates on the corpus in the folder, with a cache of their own."""
    path = folder / name
    short = ("data.dev=none", "train.max_updates=2", f"run_dir={path}", f"data.cache={folder / 'cache'}")
    return RunDir(path), train(four_updates(folder, *short, *overrides), **flags)


# ── found again ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_run_finds_what_the_first_one_made(folder: Path, made: list[str]) -> None:
    (first, one), (second, two) = (run(folder, name=name) for name in ("first", "second"))
    assert made == ["tokenizer", "store"]
    assert open_store(first).path == open_store(second).path
    assert [line.replace(str(second.path), str(first.path)) for line in two.lines] == one.lines
    assert differences(contents_of(first.step(2)), contents_of(second.step(2))) == []
    assert journal(first) == journal(second)


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ("train.seed=2", ["tokenizer"]),  # which comes out the same, as all lines are trained on
        ("tokenizer.vocab_size=100", ["tokenizer", "store"]),
        ("data.filters.copies=true", ["tokenizer", "store"]),
        ("data.train.0.max_pairs=30", ["tokenizer", "store"]),
        ("data.train.0.name=other", ["tokenizer", "store"]),  # messages and origins tell it
        ("data.max_pieces=99", ["store"]),
        ("data.train.0.weight=2", []),
        ("train.batch_tokens=100", []),
        ("tokenizer.sample={bpe_dropout: 0.1}", []),
        ("tokenizer.joint=false", ["tokenizer", "tokenizer", "store"]),
    ],
)
def test_what_depends_on_a_setting_is_made_again_for_another_one(folder: Path, made: list[str], change: str, again: list[str]) -> None:
    run(folder, name="first")
    made.clear()
    run(folder, change, name="second")
    assert made == again


def test_files_that_moved_are_the_same_files(folder: Path, made: list[str]) -> None:
    """Their content counts, and their names, which stand in origins; not their folder."""
    run(folder, name="first")
    (folder / "new").mkdir()
    for name in ("train.src", "train.trg"):
        shutil.move(folder / name, folder / "new")
    moved = [f"data.train.0.{side}={folder}/new/train.{suffix}" for side, suffix in (("src", "src"), ("tgt", "trg"))]
    made.clear()
    run(folder, *moved, name="second")
    assert made == []
    (folder / "new" / "train.src").rename(folder / "new" / "other.src")
    second, _ = run(folder, f"data.train.0.src={folder}/new/other.src", moved[1], name="third")
    assert made == ["tokenizer", "store"]
    assert next(open_store(second).pairs()).origin == "other.src:1"


def test_a_changed_file_gives_another_store(folder: Path, made: list[str]) -> None:
    run(folder, name="first")
    made.clear()
    toy.write_corpus(folder, train=40, seed=7)
    second, _ = run(folder, name="second")
    assert made == ["tokenizer", "store"]
    assert [pair.src for pair in open_store(second).pairs()] == (folder / "train.src").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", ["pairs.arrow", "lengths.bin", "store.json"])
def test_a_damaged_store_is_made_again(folder: Path, made: list[str], name: str) -> None:
    first, _ = run(folder, name="first")
    file = open_store(first).path / name
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    made.clear()
    run(folder, name="second")
    assert made == ["store"]
    assert file.read_bytes() == whole


@pytest.mark.parametrize("name", ["tokenizer.model", "report.json"])
@pytest.mark.parametrize("damage", [None, b"", b"{}", b"\xff"])
def test_a_damaged_tokenizer_is_made_again(folder: Path, made: list[str], name: str, damage: bytes | None) -> None:
    first, _ = run(folder, name="first")
    (file,) = (folder / "cache" / "tokenizers").glob(f"*/{name}")
    whole = file.read_bytes()
    file.unlink() if damage is None else file.write_bytes(damage)
    made.clear()
    second, done = run(folder, name="second")
    assert (done.code, made) == (0, ["tokenizer"])
    assert file.read_bytes() == whole
    assert second.tokenizer_files(joint=True)[0].read_bytes() == first.tokenizer_files(joint=True)[0].read_bytes()


# ── going on ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_whose_store_is_gone_makes_it_again_and_goes_on(folder: Path, made: list[str]) -> None:
    whole, _ = run(folder, "train.max_updates=4", "train.schedule.warmup=9", name="whole")
    resumed, _ = run(folder, "train.schedule.warmup=9")
    shutil.rmtree(folder / "cache")
    made.clear()
    _, done = run(folder, "train.max_updates=4", "train.schedule.warmup=9", resume=True)
    assert done.code == 0
    assert done.says("the prepared pairs are no longer in")
    assert made == ["store"]
    assert differences(contents_of(whole.step(4)), contents_of(resumed.step(4))) == []


def test_a_run_whose_store_was_altered_makes_it_again_and_goes_on(folder: Path, made: list[str]) -> None:
    first, _ = run(folder)
    lengths = open_store(first).path / "lengths.bin"
    whole = lengths.read_bytes()
    lengths.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    made.clear()
    _, done = run(folder, "train.max_updates=4", resume=True)
    assert (done.code, made) == (0, ["store"])
    assert lengths.read_bytes() == whole


def test_cache_and_workers_may_change_on_resume(folder: Path, made: list[str]) -> None:
    run(folder)
    made.clear()
    _, done = run(folder, f"data.cache={folder / 'other'}", "data.workers=0", "train.max_updates=3", resume=True)
    assert (done.code, made) == (0, [])


def test_if_the_sources_are_gone_too_that_is_said(folder: Path) -> None:
    made, _ = run(folder)
    pointed = open_store(made).path
    shutil.rmtree(folder / "cache")
    (folder / "train.trg").unlink()
    with pytest.raises(RunError, match=f"no longer in {pointed}, nor is {folder / 'train.trg'} to make them again; put the file back"):
        run(folder, "train.max_updates=4", resume=True)


def test_if_the_sources_changed_that_is_said_whether_the_store_is_there_or_not(folder: Path) -> None:
    run(folder)
    with (folder / "train.src").open("a", encoding="utf-8") as file:
        file.write("bage .\n")
    for _ in range(2):
        with pytest.raises(RunError, match=f"cannot resume, the data changed: {folder / 'train.src'}"):
            run(folder, resume=True)
        shutil.rmtree(folder / "cache", ignore_errors=True)


def test_other_pairs_from_the_same_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an update of mt whose filters are others."""
    made, _ = run(folder)
    pointer = made.pointer.read_bytes()
    shutil.rmtree(folder / "cache")
    monkeypatch.setattr("mt.clean.filters._longer", lambda limit, reason, pair: reason if len(pair.src) > 30 else None)  # noqa: ARG005
    for _ in range(2):
        with pytest.raises(RunError, match="this version of mt prepares other pairs from the same files"):
            run(folder, "train.max_updates=4", resume=True)
        assert made.pointer.read_bytes() == pointer


# ── what is said and kept ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_dropped_is_a_line_a_table_and_a_file(folder: Path) -> None:
    with (folder / "train.src").open("a", encoding="utf-8") as src, (folder / "train.trg").open("a", encoding="utf-8") as tgt:
        src.write("\nbage .\nbage .\n")
        tgt.write("dirkan .\nbage .\n\n")
    filtered, done = run(folder, "data.filters.copies=true")
    assert done.says("train.src: kept 40 of 43 pairs (2 empty side, 1 source = target)")
    assert [line.split() for line in done.lines if line.startswith("  ")] == [
        ["corpus", "reason", "pairs", "share"],
        ["train.src", "kept", "40", "93.02%"],
        ["empty", "side", "2", "4.65%"],
        ["source", "=", "target", "1", "2.33%"],
    ]
    told = json.loads(filtered.filtered.read_text(encoding="utf-8"))["corpora"]["train.src"]
    assert (told["kept"], told["dropped"][0]["examples"][0]["origin"]) == (40, "train.src:41")


def test_where_nothing_was_dropped_of_one_corpus_there_is_no_table(folder: Path) -> None:
    _, done = run(folder)
    assert done.says("train.src: kept 40 of 40 pairs")
    assert not [line for line in done.lines if line.startswith("  ")]


def test_filters_that_miss_something_are_refused_before_anything_is_read(folder: Path, made: list[str]) -> None:
    with pytest.raises(ConfigError, match="data.filters.scripts needs to know the languages"):
        run(folder, "data.filters.scripts=true")
    assert made == []
    assert not (folder / "run").exists()


def test_the_tokenizer_is_not_trained_on_what_the_filters_drop(folder: Path) -> None:
    with (folder / "train.src").open("a", encoding="utf-8") as src, (folder / "train.trg").open("a", encoding="utf-8") as tgt:
        for file in (src, tgt):
            file.write("\u4e2d\u6587\n")
    for name, change in (("with", "data.filters.copies=false"), ("without", "data.filters.copies=true")):
        made, _ = run(folder, change, name=name)
        tokenizer = inputs.load_tokenizers(made, joint=True).src
        assert (tokenizer.unk in tokenizer.encode("\u4e2d")) == (name == "without")


# ── keys and weights ────────────────────────────────────────────────────────────────────────────────────────────────


def config_of(folder: Path, *overrides: str) -> Config:
    return toy.config(folder, *overrides)


def test_a_folder_of_shards_is_known_by_its_files(folder: Path) -> None:
    (folder / "shards").mkdir()
    for n in (1, 2):
        toy.write_lines(folder / "shards" / f"{n}.tsv", [f"bage .\tdirkan {n} ."])
    config = config_of(folder, f"data.train=[{{tsv: {folder}/shards}}]")
    cache = CacheDir(folder / "cache")
    facts = facts_of(config.data.train[0], config, fingerprints(config, cache))
    assert [name for name, _ in facts["files"]] == ["1.tsv", "2.tsv"]
    toy.write_lines(folder / "shards" / "2.tsv", ["bage .\tdirkan ."])
    assert facts_of(config.data.train[0], config, fingerprints(config, cache)) != facts
    assert str(folder) not in json.dumps(facts)


def test_a_missing_file_is_told_before_anything_is_made(folder: Path, made: list[str]) -> None:
    with pytest.raises(DataError, match="nowhere.src: no such file"):
        run(folder, f"data.train.0.src={folder}/nowhere.src")
    assert made == []


def test_duplicates_are_told_by_the_target_language_where_it_has_a_tag(folder: Path) -> None:
    """The model is shown the tag: the same two texts, in French as in German, are two things to learn."""
    texts = f"src: {folder}/train.src, tgt: {folder}/train.trg"
    german, french = (f"{{{texts}, name: {lang}, langs: {{src: en, tgt: {lang}}}}}" for lang in ("de", "fr"))
    corpora, drop = f"data.train=[{german}, {french}]", "data.filters.duplicates=exact"
    tagged, _ = run(folder, corpora, drop, "data.tags=auto")
    assert len(open_store(tagged)) == 2 * 40
    with pytest.raises(DataError, match="fr: kept 0 of 40 pairs .40 duplicate"):
        run(folder, corpora, drop, "data.tags=false", name="untagged")


@pytest.mark.parametrize("tags", ["false", "true"])
def test_synthetic_sources_are_marked_before_the_tag(folder: Path, tags: str) -> None:
    two = f"data.train=[{{src: {folder}/train.src, tgt: {folder}/train.trg}}, {{src: {folder}/valid.src, tgt: {folder}/valid.trg}}]"
    settings = (two, "data.train.1.synthetic=true", "langs={src: en, tgt: de}", f"data.tags={tags}")
    marked, done = run(folder, *settings)
    tokenizers = load_tokenizers(marked, joint=True)
    assert done.says(f"tokenizer.model: 120 pieces{', tags for de' if tags == 'true' else ''}, with <bt>")
    tag = (tokenizers.src.tag("de"),) if tags == "true" else ()
    data = training_data(config_of(folder, *settings), open_store(marked), tokenizers)
    assert data.prefixes == [tag, (tokenizers.src.mark, *tag)]


def test_a_pair_is_the_same_one_whether_it_is_marked_or_not(folder: Path) -> None:
    two = f"data.train=[{{src: {folder}/train.src, tgt: {folder}/train.trg}}, {{src: {folder}/train.src, tgt: {folder}/train.trg}}]"
    with pytest.raises(DataError, match="kept 0 of 40 pairs .40 duplicate"):
        run(folder, two, "data.train.1.synthetic=true", "data.train.1.name=made", "data.filters.duplicates=exact")
    config, marked = (config_of(folder, f"data.train.0.synthetic={synthetic}") for synthetic in ("false", "true"))
    prints = fingerprints(config, CacheDir(folder / "cache"))
    assert facts_of(config.data.train[0], config, prints) == facts_of(marked.data.train[0], marked, prints)


def test_weights_and_temperature_are_those_of_the_run(folder: Path) -> None:
    two = f"data.train.1={{src: {folder}/valid.src, tgt: {folder}/valid.trg}}"
    made, _ = run(folder, two, "data.train.1.weight=2.5")
    store: Store = open_store(made)
    assert [span.weight for span in weighted(store, config_of(folder, two, "data.train.1.weight=2.5"))] == [1.0, 2.5]
    large, small = weighted(store, config_of(folder, two, "data.temperature=100"))
    assert large.count * large.weight == pytest.approx(small.count * small.weight, rel=0.05)
