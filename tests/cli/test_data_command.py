"""`mt data show`: what is shown is what training sees; and what neither it nor `mt data prepare` can do."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from mt.config.load import load
from mt.data.plan import Cursor
from mt.launch.prepare import Prepared, prepare
from tests import toy
from tests.preparing import CORPORA, COUNT, data, sets, short
from tests.runs import train, tree
from tests.translating import Ended, mt

NOISE = (
    "data.augment={token_drop: 0.1, token_mask: 0.1, local_shuffle: {probability: 0.5}, upper_case: 0.2, strip_punctuation: 0.3}",
    "tokenizer.sample={bpe_dropout: 0.3}",
)


class Shown(NamedTuple):
    """A pair as it was printed."""

    origin: str
    place: str
    pieces: tuple[str, str]
    """Source and target, with tag and end mark."""


def shown(done: Ended) -> list[Shown]:
    assert done.code == 0, done.err
    pairs = re.split(r"^(?=\S)", done.out.decode(), flags=re.MULTILINE)[1:]
    return [shown_pair(*pair.splitlines()) for pair in pairs]


def shown_pair(head: str, src: str, tgt: str, *noise: str) -> Shown:
    origin, place = head.split("  ")
    assert len(noise) in (0, 3)
    sides = [re.fullmatch(rf"  {name}  (\d+) pieces?  +(.*)", line) for name, line in (("source", src), ("target", tgt))]
    assert sides[0]
    assert sides[1]
    for side in sides:
        assert int(side[1]) == len([piece for piece in side[2].split(" ") if piece != "</s>" and not piece.startswith("<2")])  # type: ignore[index]
    return Shown(origin, place, (sides[0][2], sides[1][2]))


def seen(prepared: Prepared, *, epoch: int, count: int) -> list[Shown]:
    """The first pairs of an epoch (from 1) in the batches that training takes, by their ids."""
    data, found = prepared.data, []
    groups = data.groups(Cursor(epoch - 1), size=1)
    for number, ((batch,), after) in enumerate(groups, 1):
        for row, origin in enumerate(batch.origins):
            ids = [batch.src_BS[row].tolist(), batch.gold_BT[row].tolist()]
            pieces = [" ".join(of.pieces(i for i in own if i != of.pad)) for of, own in zip(data.tokenizers, ids, strict=True)]
            found.append(Shown(origin, f"epoch {epoch}, batch {number}", (pieces[0], pieces[1])))
        if len(found) >= count or after.epoch >= epoch:
            groups.close()
    return found[:count]


def show(folder: Path, *words: str | Path, overrides: tuple[str, ...] = ()) -> Ended:
    return data("show", folder, *words, overrides=overrides)


def started(folder: Path, *overrides: str) -> Prepared:
    """The run of these settings, up to its first update."""
    (folder / "run").mkdir()
    return prepare(load(folder / "toy.yaml", short(folder, *overrides)).config, device="cpu", say=lambda _: None)


# ── show ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("overrides", [(), NOISE, CORPORA, (*CORPORA, *NOISE)], ids=["plain", "noise", "tags", "tags and noise"])
def test_what_is_shown_is_what_training_sees(folder: Path, overrides: tuple[str, ...]) -> None:
    prepared = started(folder, *overrides)
    passes = 3 if overrides[:1] == CORPORA[:1] else 1
    first, second = (seen(prepared, epoch=epoch, count=1000) for epoch in (1, 2))
    assert len(first) == passes * COUNT
    assert first != second
    assert shown(show(folder, "--n", str(len(first)), overrides=overrides)) == first
    assert shown(show(folder, "--epoch", "2", "--n", "17", overrides=overrides)) == second[:17]


def test_five_of_the_first_epoch_unless_told_otherwise(folder: Path) -> None:
    assert shown(show(folder)) == seen(started(folder), epoch=1, count=5)


def test_more_than_an_epoch_goes_on_with_the_next(folder: Path) -> None:
    found = shown(show(folder, "--n", str(COUNT + 3), overrides=NOISE))
    assert [one.place for one in found] == [one.place for one in found[:COUNT]] + ["epoch 2, batch 1"] * 3
    assert shown(show(folder, "--epoch", "2", "--n", "3", overrides=NOISE)) == found[COUNT:]


def test_noise_is_named_with_the_text_it_was_put_on(folder: Path) -> None:
    done = show(folder, "--n", "1", overrides=("data.augment.upper_case=1", "tokenizer.byte_fallback=true"))
    head, src, _, noise, *texts = done.lines
    number = int(head.split("  ")[0].removeprefix("train.src:"))
    assert noise == "  noise   upper_case"
    assert [line.strip().removeprefix("text    ") for line in texts] == [
        (folder / f"train.{side}").read_text(encoding="utf-8").splitlines()[number - 1] for side in ("src", "trg")
    ]
    assert src.endswith("</s>")


def test_several_target_languages_show_their_tags(folder: Path) -> None:
    found = shown(show(folder, "--n", str(3 * COUNT), overrides=CORPORA))
    tags = Counter((one.origin.split(":")[0], one.pieces[0].split(" ")[0]) for one in found)
    assert tags == {("train.src", "<2de>"): COUNT, ("train.trg", "<2en>"): 2 * COUNT}
    assert not any(one.pieces[1].startswith("<2") for one in found)


# ── a run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(folder: Path) -> Path:
    """A run with noise, two updates long."""
    assert train(load(folder / "toy.yaml", short(folder, *NOISE)).config).code == 0
    return folder / "run"


def test_a_run_shows_what_its_config_shows(folder: Path, run: Path) -> None:
    words = ("--epoch", "2", "--n", "9")
    of_run = mt("data", "show", "--run", run, *words)
    of_config = show(folder, *words, overrides=NOISE)
    assert of_run.out == of_config.out
    assert mt("data", "show", "--config", run / "config.yaml", *words).out == of_run.out
    assert "</s>" in of_run.out.decode()


def test_a_run_whose_store_is_gone_makes_it_again(folder: Path, run: Path) -> None:
    before = mt("data", "show", "--run", run)
    shutil.rmtree(folder / "cache")
    after = mt("data", "show", "--run", run)
    assert (after.code, after.out) == (0, before.out)
    assert any("the prepared pairs are no longer in" in line for line in after.err)


def test_a_run_whose_store_is_gone_and_whose_files_changed_says_so(folder: Path, run: Path) -> None:
    shutil.rmtree(folder / "cache")
    toy.write_corpus(folder, train=COUNT, seed=7)
    done = mt("data", "show", "--run", run)
    assert (done.code, done.out) == (2, b"")
    assert f"the data changed: {folder / 'train.src'}" in done.err[-1]


def test_settings_that_leave_the_pairs_alone_can_be_changed_for_a_run(folder: Path, run: Path) -> None:
    """Noise, seed and the size of batches: what is shown is then what a config with them shows."""
    change = ("data.augment.token_drop=0.5", "train.batch_tokens=90", "tokenizer.sample={bpe_dropout: 0.1}")
    found = mt("data", "show", "--run", run, *sets(change))
    assert found.out == show(folder, overrides=(*NOISE, *change)).out
    assert found.out != mt("data", "show", "--run", run).out


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("data.train.0.max_pairs=30", "data.train"),
        ("data.filters.copies=true", "data.filters"),
        ("data.max_pieces=40", "data.max_pieces"),
        ("data.tags=true", "data.tags"),
        ("langs={src: en, tgt: fr}", "langs"),
        ("tokenizer.vocab_size=100", "tokenizer"),
    ],
)
def test_settings_that_ask_for_other_pairs_are_refused_for_a_run(folder: Path, run: Path, change: str, named: str) -> None:
    before = tree(folder)
    extra = ("--set", "langs={src: en, tgt: de}") if named == "data.tags" else ()
    done = mt("data", "show", "--run", run, "--set", change, *extra)
    assert (done.code, done.out) == (2, b"")
    assert done.err == [f"{run}: was prepared with another {named}; to see pairs of other settings give --config FILE"]
    assert tree(folder) == before


# ── what makes no sense ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("show", "nothing to show: give --config FILE, or --run DIR"),
        ("show --config toy.yaml --run run", "--config and --run: give one of the two"),
        ("show --run nowhere", "nowhere: no such folder; give the directory that `mt train` wrote"),
        ("show --run .", ".: not a run (it has no config.yaml)"),
        ("show --config nowhere.yaml", "nowhere.yaml: there is no such file; check the path of the config"),
        ("show --config toy.yaml --set train.sed=2", "train.sed"),
        ("show --config toy.yaml --set data.train.0.src=nowhere.src", "nowhere.src: no such file"),
        ("prepare --config nowhere.yaml", "nowhere.yaml: there is no such file"),
        ("prepare --config toy.yaml --set data.train.0.tgt=test.trg", "train.src has 60 lines"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_shown_or_prepared_is_one_line(words: str, what: str) -> None:
    done = mt("data", *words.split())
    assert (done.code, done.out, len(done.err)) == (2, b"", 1)
    assert what in done.err[0]


@pytest.mark.parametrize("words", ["--epoch 0", "--epoch -1", "--epoch x", "--epoch 1.5", "--n 0", "--n -3", "--n many"])
def test_a_wrong_number_is_wrong_usage(folder: Path, words: str) -> None:
    done = show(folder, *words.split())
    assert (done.code, done.out) == (2, b"")
    text = " ".join(done.err)
    assert words.split()[0] in text
    assert "Traceback" not in text
    assert not (folder / "cache").exists()
