"""More data for one model from another: back-translated text that is marked, and a student that learns from its teacher's translations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mt.config.load import load
from mt.launch.inputs import open_store
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.runs import train
from tests.translating import mt, text_lines

WORDS = {*list(toy.lexicon())[:12], "."}
LEARNING = ("train.max_updates=400", "train.optimizer.lr=4e-3", "train.schedule={kind: cosine, warmup: 50}", "train.validation.every=200")
BACK = {toy.translation(word): word for word in WORDS}


def short(count: int, seed: int) -> list[str]:
    """Sentences of few words, of twelve in all."""
    return [line for line in toy.sentences(20 * count, seed=seed, shortest=1, longest=4) if set(line.split()) <= WORDS][:count]


def lines_of(path: Path) -> list[str]:
    return text_lines(path.read_bytes())


def run_of(folder: Path, name: str, *overrides: str) -> RunDir:
    """A model of the toy language, trained on this."""
    assert train(load(toy.config_file(folder), [f"run_dir={folder / name}", *LEARNING, *overrides]).config).code == 0
    return RunDir(folder / name)


def corpus(folder: Path, src: str, tgt: str, more: str = "") -> str:
    """Two files of the folder."""
    return f"{{src: {folder / src}, tgt: {folder / tgt}{more}}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs, and text in the target language, whose last two lines are none."""
    folder = tmp_path_factory.mktemp("more")
    for seed, (name, count) in enumerate({"train": 1500, "few": 100, "mono": 800, "valid": 30}.items()):
        sources = short(count, seed)
        toy.write_lines(folder / f"{name}.src", sources)
        toy.write_lines(folder / f"{name}.trg", [*map(toy.translation, sources), *(["", ". " * 40] if name == "mono" else [])])
    return folder


@pytest.fixture(scope="module")
def reverse(folder: Path) -> RunDir:
    return run_of(
        folder,
        "reverse",
        f"data.train=[{corpus(folder, 'train.trg', 'train.src')}]",
        f"data.dev={corpus(folder, 'valid.trg', 'valid.src')}",
    )


def right(made: list[str], given: list[str]) -> int:
    """How many sources are those of their targets, to the letter."""
    return sum(
        set(line.split()) <= BACK.keys() and one == " ".join(map(BACK.__getitem__, line.split()))
        for one, line in zip(made, given, strict=True)
    )


def test_a_model_is_trained_on_back_translated_text_and_translates_what_is_not_marked(folder: Path, reverse: RunDir) -> None:
    done = mt("backtranslate", "--model", reverse.path, "--input", folder / "mono.trg", "--output", folder / "back.src", "--beam", "1")
    assert done.code == 0
    assert done.err[0].startswith("back.src: kept ")
    made, mono = lines_of(folder / "back.src"), lines_of(folder / "mono.trg")
    assert right(made, mono) >= 700
    assert made[-2:] == ["", ""]

    corpora = [corpus(folder, "few.src", "few.trg"), corpus(folder, "back.src", "mono.trg", ", synthetic: true")]
    run = run_of(folder, "tagged", f"data.train=[{', '.join(corpora)}]")
    tally = json.loads(run.filtered.read_text("utf-8"))["corpora"]["back.src"]
    assert [entry["reason"] for entry in tally["dropped"]] == ["empty side"]
    assert (len(open_store(run)), tally["kept"]) == (100 + tally["kept"], sum(map(bool, made)))
    shown = mt("data", "show", "--run", run.path, "--n", "60").lines
    marked = {
        (line.partition(":")[0], "<bt>" in after.split()) for line, after in zip(shown, shown[1:], strict=False) if "  epoch " in line
    }
    assert marked == {("few.src", False), ("back.src", True)}

    translator = Translator.load(run.path)
    assert (translator.targets, translator.tokenizers.src.mark is None) == ((), False)
    lines = short(40, 77)
    found = [one.text for one in translator.translate(lines)]
    assert sum(one == toy.translation(line) for one, line in zip(found, lines, strict=True)) >= 32, list(zip(found, lines, strict=True))[:5]


def test_a_student_learns_from_its_teacher(folder: Path, reverse: RunDir) -> None:
    given, references = folder / "train.trg", folder / "train.src"
    for name, words in ("plain.src", ("--beam", "1")), ("near.src", ("--tgt", references, "--beam", "3")):
        assert mt("distill", "--model", reverse.path, "--src", given, "--output", folder / name, *words).code == 0
    plain, near = (right(lines_of(folder / name), lines_of(given)) for name in ("plain.src", "near.src"))
    assert min(plain, near) >= 1300
    corpora = (f"data.train=[{corpus(folder, 'train.trg', 'plain.src')}]", f"data.dev={corpus(folder, 'valid.trg', 'valid.src')}")
    student = run_of(folder, "student", *corpora, "model.decoder_layers=1")
    lines = lines_of(folder / "valid.trg")
    assert right([one.text for one in Translator.load(student.path).translate(lines)], lines) >= 24
