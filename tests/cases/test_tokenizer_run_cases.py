"""Trouble with tokenizers that shows where a run is made or used: one test a row of the list of trouble cases, through the command line."""

from __future__ import annotations

import re
import shutil
from itertools import combinations
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor

from mt.checkpoint import read_state, read_weights
from mt.data.store import Example
from mt.launch.inputs import open_store
from mt.rundir import RunDir
from mt.tokenizer.of_run import load_tokenizers
from tests import toy
from tests.cases.conftest import tiny_run
from tests.runs import tree
from tests.translating import mt


def examples(run: RunDir) -> list[Example]:
    """What the run is trained on."""
    store = open_store(run)
    return store.take(range(len(store)))


def field(piece: bytes) -> bytes:
    """A piece as it lies in the file of a tokenizer, up to its score."""
    return b"\n%c%b\x15" % (len(piece), piece)


def test_15_long_lines(tmp_path: Path) -> None:
    long = " ".join(toy.sentences(1, seed=15, shortest=1200, longest=1200))[:5999]
    for side in ("src", "trg"):
        toy.write_lines(tmp_path / f"train.{side}", [long] * 3)
    done = tiny_run(tmp_path)
    assert done.code == 2
    assert "all 3 lines are longer than 4192 bytes" in done.err[-1]
    assert "raise tokenizer.max_line_bytes" in done.err[-1]
    assert not (tmp_path / "run").exists()
    for side, rest in zip(("src", "trg"), (toy.sentences(60), map(toy.translation, toy.sentences(60))), strict=True):
        toy.write_lines(tmp_path / f"train.{side}", [*rest, long])
    done = tiny_run(tmp_path)
    assert done.code == 0
    said = "1 of 61 lines left out of tokenizer training: longer than 4192 bytes (tokenizer.max_line_bytes)"
    assert [line for line in done.err if line.endswith(said)]


@pytest.mark.parametrize("joint", ["true", "false"])
@pytest.mark.parametrize(("asked", "verb"), [(8000, "lowered"), (16, "raised")])
def test_27_the_model_has_a_row_for_each_piece_there_is(tmp_path: Path, asked: int, verb: str, joint: str) -> None:
    toy.write_corpus(tmp_path, train=20, dev=1, test=1)
    done = tiny_run(tmp_path, f"tokenizer.vocab_size={asked}", f"tokenizer.joint={joint}", "model.tied_embeddings=false")
    assert done.code == 0
    run = RunDir(tmp_path / "run")
    sides = load_tokenizers(run, joint=joint == "true")
    for path, side in zip(run.tokenizer_files(joint=sides.joint), sides, strict=True):
        assert [line for line in done.err if line.startswith(f"{path.name}: tokenizer.vocab_size {asked} {verb} to {side.size}")]
    rows = {name: len(value) for name, value in read_weights(run.step(2)).items() if "embedding" in name or name.startswith("output")}
    assert sorted(rows.values()) == sorted([sides.src.size, sides.tgt.size, sides.tgt.size]), rows


def test_34_a_model_with_the_tokenizer_of_other_data_is_refused(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a", tmp_path / "b"
    for folder, seed in ((ours, 1), (theirs, 2)):
        toy.write_corpus(folder, train=20, dev=1, test=3, seed=seed)
        assert tiny_run(folder, "tokenizer.vocab_size=90").code == 0
    file = ours / "run" / "tokenizer.model"
    kept = file.read_bytes()
    file.write_bytes((theirs / "run" / "tokenizer.model").read_bytes())
    done = mt("translate", "--model", ours / "run", "--input", ours / "test.src", "--output", ours / "out")
    assert (done.code, done.out, len(done.err)) == (2, b"", 1)
    assert done.err[0].startswith(f"{ours / 'run/checkpoints/step-00000002'}: was trained with another tokenizer than the one in the run")
    assert done.err[0].endswith("put the original model file back")
    assert not (ours / "out").exists()
    file.write_bytes(kept)  # as it says
    assert mt("translate", "--model", ours / "run", "--input", ours / "test.src", "--output", ours / "out").code == 0
    assert len((ours / "out").read_bytes().splitlines()) == 3


def test_34_a_run_does_not_go_on_with_a_tokenizer_that_differs_in_little(tmp_path: Path) -> None:
    """Two pieces have changed places that no pair holds: neither the stored ids nor the size of the vocabulary show it."""
    toy.write_corpus(tmp_path, train=40, dev=1, test=3)
    assert tiny_run(tmp_path).code == 0
    run = RunDir(tmp_path / "run")
    file = run.tokenizer_files(joint=True)[0]
    kept, pieces = file.read_bytes(), SentencePieceProcessor(model_file=str(file))
    used = {i for example in examples(run) for i in (*example.src_ids, *example.tgt_ids)}
    unused = [pieces.id_to_piece(i).encode() for i in range(4, len(pieces)) if i not in used]
    one, another = next((a, b) for a, b in combinations(unused, 2) if len(a) == len(b))
    names = {field(one): field(another), field(another): field(one)}
    assert all(kept.count(name) == 1 for name in names)
    file.write_bytes(re.sub(b"|".join(map(re.escape, names)), lambda found: names[found[0]], kept))
    before = tree(run.path)
    for _ in ("with its pairs", "without"):
        done = tiny_run(tmp_path, "train.max_updates=3", more=["--resume"])
        assert done.code == 2
        cure = "was trained with another tokenizer than the one in the run directory; put the original model file back"
        assert done.err[-1] == f"{run.path}: {cure}"
        assert tree(run.path) == before
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    file.write_bytes(kept)
    assert tiny_run(tmp_path, "train.max_updates=3", more=["--resume"]).code == 0
    assert run.step(3).is_dir()


def test_36_characters_without_a_piece_are_counted_before_training(tmp_path: Path) -> None:
    sources = toy.sentences(400)
    toy.write_lines(tmp_path / "train.src", [*sources, "bage depe ."])
    toy.write_lines(tmp_path / "train.trg", [*map(toy.translation, sources), "őűzi ő ."])
    done = tiny_run(tmp_path, "tokenizer.character_coverage=0.9995", "tokenizer.byte_fallback=false")
    assert done.code == 0
    (said,) = [line for line in done.err if "character_coverage" in line and "unknown" in line]
    assert said.startswith("tokenizer.model: ")
    assert "ő U+0151 (2)" in said
    assert "ű U+0171 (1)" in said
    done = tiny_run(tmp_path, "tokenizer.character_coverage=1.0", "tokenizer.byte_fallback=false", more=["--overwrite"])
    assert done.code == 0
    assert not [line for line in done.err if "U+0151" in line]
    tgt = load_tokenizers(RunDir(tmp_path / "run"), joint=True).tgt
    assert [tgt.decode(one.tgt_ids) for one in examples(RunDir(tmp_path / "run"))[-1:]] == ["őűzi ő ."]


def test_37_each_side_is_stored_in_its_own_tokenizers_ids(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, train=40, dev=1, test=3)
    separate = "tokenizer.joint=false", "tokenizer.vocab_size=70"
    assert tiny_run(tmp_path, *separate).code == 0
    run = RunDir(tmp_path / "run")
    src, tgt = load_tokenizers(run, joint=False)
    stored = examples(run)
    assert [src.decode(one.src_ids) for one in stored] == [one.pair.src for one in stored] == toy.sentences(40)
    assert [tgt.decode(one.tgt_ids) for one in stored] == [one.pair.tgt for one in stored]
    assert all(src.decode(one.tgt_ids) != one.pair.tgt for one in stored)  # the other one would have shown
    assert read_state(run.step(2))["tokenizers"] == [src.fingerprint, tgt.fingerprint]

    files = run.tokenizer_files(joint=False)
    contents = [file.read_bytes() for file in files]
    for file, other in zip(files, reversed(contents), strict=True):
        file.write_bytes(other)
    before = tree(run.path)
    translated = mt("translate", "--model", run.path, "--input", tmp_path / "test.src")
    resumed = tiny_run(tmp_path, *separate, more=["--resume"])
    for done in (translated, resumed):
        assert (done.code, done.out) == (2, b"")
        assert "was trained with another tokenizer" in done.err[-1]
    assert tree(run.path) == before

    shutil.rmtree(run.checkpoints)  # stopped before its first checkpoint: only the stored pairs can tell
    before = tree(run.path)
    done = tiny_run(tmp_path, *separate, more=["--resume"])
    assert (done.code, done.out) == (2, b"")
    assert done.err[-1].startswith("train.src:1: the stored source ids are not those of its tokenizer; put the original model file back")
    assert tree(run.path) == before
    for file, content in zip(files, contents, strict=True):  # as it says
        file.write_bytes(content)
    assert tiny_run(tmp_path, *separate, more=["--resume"]).code == 0
