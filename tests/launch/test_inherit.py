"""A run that starts from another: what it takes, what it refuses, and what stays frozen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from mt.checkpoint import read_weights
from mt.config.load import load
from mt.config.schema import Config
from mt.errors import ConfigError, RunError, TokenizerError
from mt.launch.prepare import prepare
from mt.rundir import RunDir
from tests import toy
from tests.launch.test_resume import KilledError, kill
from tests.model.untrained import small_transformer
from tests.runs import Done, Silent, contents, differences, four_updates, journal, mt, train

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def parent(finished: tuple[Path, Done]) -> RunDir:
    return RunDir(finished[0] / "run")


@pytest.fixture
def copy(copied: tuple[Path, str]) -> RunDir:
    """One that may be changed."""
    return RunDir(copied[1].removeprefix("run_dir="))


def child(folder: Path, parent: RunDir, *overrides: str) -> Config:
    """A config for another run on the corpus of the folder."""
    return four_updates(folder, f"train.init_from={parent.path}", f"run_dir={folder / 'child'}", *overrides)


def start(config: Config) -> tuple[dict[str, Tensor], list[str]]:
    """The weights before the first update, and what was said."""
    lines: list[str] = []
    RunDir(str(config.run_dir)).path.mkdir(exist_ok=True)
    prepared = prepare(config, device="cpu", say=lines.append)
    assert (prepared.state.progress.update, prepared.state.optimizer.state_dict()["state"]) == (0, {})
    return dict(prepared.state.model.named_parameters()), lines


def same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_it_starts_where_the_best_checkpoint_was_with_the_same_tokenizer(folder: Path, parent: RunDir) -> None:
    toy.write_corpus(folder, train=30, dev=4, test=3, seed=7)  # another text, from which another tokenizer would come
    weights, lines = start(child(folder, parent, "tokenizer.vocab_size=70", "model.dropout=0.2"))
    best = parent.find("best")
    assert same(weights, read_weights(best))
    assert f"starting from {best}" in lines
    assert (folder / "child" / "tokenizer.model").read_bytes() == (parent.path / "tokenizer.model").read_bytes()
    before, now = (load(run.config).config for run in (parent, RunDir(folder / "child")))
    assert now.tokenizer == before.tokenizer
    assert (now.model.dropout, now.train.init_from) == (0.2, parent.path)


def test_where_there_is_a_moving_average_it_starts_from_that(folder: Path, copy: RunDir) -> None:
    average = {name: torch.full_like(tensor, 0.25) for name, tensor in read_weights(copy.find("best")).items()}
    save_file(average, copy.find("best") / "ema.safetensors")
    weights, _ = start(child(folder, copy))
    assert same(weights, average)


def test_its_own_sampling_is_kept(folder: Path, parent: RunDir) -> None:
    config = child(folder, parent, "tokenizer.sample={bpe_dropout: 0.1}")
    start(config)
    assert load(folder / "child" / "config.yaml").config.tokenizer.sample == config.tokenizer.sample
    unigram = ("tokenizer.kind=unigram", "tokenizer.sample={unigram: {alpha: 0.1}}", f"run_dir={folder / 'other'}")
    with pytest.raises(ConfigError, match=r"tokenizer.sample: .*run has a tokenizer of kind bpe: unigram sampling needs kind: unigram"):
        start(child(folder, parent, *unigram))


def test_each_setting_of_another_model_is_a_line_with_both_values(folder: Path, parent: RunDir) -> None:
    with pytest.raises(ConfigError) as error:
        start(child(folder, parent, "model.dim=32", "model.positions=rope", "model.word_dropout=0.1"))
    assert str(error.value).splitlines() == [
        f"train.init_from: model.dim is 32, but 16 in {parent.path}; set model.dim=16",
        f"train.init_from: model.positions is rope, but sinusoidal in {parent.path}; set model.positions=sinusoidal",
    ]
    assert list((folder / "child").iterdir()) == []


def test_what_is_no_run_or_the_same_run_or_has_no_checkpoint_is_refused(folder: Path, copy: RunDir) -> None:
    with pytest.raises(RunError, match=r"nowhere: no such folder"):
        start(child(folder, RunDir(folder / "nowhere")))
    with pytest.raises(ConfigError, match=r"train.init_from: .*copy is the directory of this very run; give another --run-dir"):
        train(child(folder, copy, f"run_dir={copy.path}"), overwrite=True)
    assert copy.find("best").exists()
    shutil.rmtree(copy.checkpoints)
    with pytest.raises(RunError, match="no checkpoint 'best'"):
        start(child(folder, copy))


def test_tags_that_the_other_run_has_not_are_refused(folder: Path, parent: RunDir) -> None:
    tagged = ("langs={src: en, tgt: de}", "data.tags=true")
    with pytest.raises(ConfigError, match=r"the tags of this run are <2de>, those of .*run none; leave the others out"):
        start(child(folder, parent, *tagged))


def test_a_mark_that_the_other_run_has_not_is_refused(folder: Path, parent: RunDir) -> None:
    with pytest.raises(
        ConfigError, match=r"train.init_from: .*run has no <bt> for the sources of train.src; leave synthetic out, or train"
    ):
        start(child(folder, parent, "data.train.0.synthetic=true"))


def test_a_mark_that_the_other_run_has_need_not_be_used(folder: Path) -> None:
    assert train(four_updates(folder, "data.train.0.synthetic=true")).code == 0
    weights, _ = start(child(folder, RunDir(folder / "run")))
    assert same(weights, read_weights(RunDir(folder / "run").find("best")))


def test_a_tag_that_the_other_run_has_must_be_used(folder: Path) -> None:
    tagged = ("langs={src: en, tgt: de}", "data.tags=true")
    assert train(four_updates(folder, *tagged)).code == 0
    parent = RunDir(folder / "run")
    with pytest.raises(ConfigError, match=r"the tags of this run are none, those of .*run <2de>; set data.tags: true"):
        start(child(folder, parent))
    weights, _ = start(child(folder, parent, *tagged))
    assert same(weights, read_weights(parent.find("best")))


@pytest.mark.parametrize("number", [1, 3])
def test_resumed_equals_uninterrupted_and_the_other_run_is_needed_up_to_the_first_checkpoint_only(
    folder: Path, copy: RunDir, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Killed before the first checkpoint it starts again from the same weights; later nobody asks for them, nor for the option."""
    random = ("model.dropout=0.2", "train.ema=0.9", "train.freeze=[encoder]", "tokenizer.vocab_size=70")
    assert train(child(folder, copy, *random)).code == 0
    whole = RunDir((folder / "child").rename(folder / "whole"))
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent(lambda update: kill() if update == number else None))
    with pytest.raises(KilledError):
        train(child(folder, copy, *random))
    monkeypatch.setattr("mt.launch.run.Console", lambda **_: Silent())
    if number == 3:
        shutil.rmtree(copy.path)
        again = four_updates(folder, f"run_dir={folder / 'child'}", *random)
    else:
        again = child(folder, copy, *random)
    assert train(again, resume=True).code == 0
    run = RunDir(folder / "child")
    assert differences(contents(run.step(4)), contents(whole.step(4))) == []
    assert journal(run) == journal(whole)


@pytest.mark.parametrize(
    ("part", "names"),
    [("encoder", ("encoder.", "encoder_norm.")), ("decoder", ("decoder.", "decoder_norm.")), ("embeddings", ("src_embedding.",))],
)
def test_what_is_frozen_stays_to_the_last_bit_and_all_else_is_trained(
    folder: Path, parent: RunDir, part: str, names: tuple[str, ...]
) -> None:
    done = train(child(folder, parent, f"train.freeze=[{part}]", "train.ema=0.9", "train.optimizer.weight_decay=0.1"))
    run, before = RunDir(folder / "child"), read_weights(parent.find("best"))
    assert done.says(" of them trained")
    for which in ("raw", "ema"):
        after: dict[str, Any] = read_weights(run.step(4), which)  # type: ignore[arg-type]
        unchanged = {name for name in before if torch.equal(before[name], after[name])}
        assert unchanged == {name for name in before if name.startswith(names)}


def test_nothing_left_to_train_is_refused(folder: Path, parent: RunDir) -> None:
    everything = "train.freeze=[embeddings, encoder, decoder]"
    with pytest.raises(ConfigError, match="train.freeze.*: nothing is left to train without encoder, decoder, embeddings; leave one"):
        child(folder, parent, everything)
    assert child(folder, parent, everything, "model.tied_embeddings=false").train.freeze


@pytest.mark.parametrize("file", ["model.safetensors", "state.json", "tokenizer.model"])
def test_what_is_damaged_is_found_before_anything_is_prepared(folder: Path, copy: RunDir, file: str) -> None:
    broken = copy.path / file if file.startswith("tokenizer") else copy.find("best") / file
    broken.write_bytes(broken.read_bytes()[:20])
    with pytest.raises((RunError, TokenizerError), match=file):
        start(child(folder, copy, f"data.cache={folder / 'cache'}"))
    assert not (folder / "cache").exists()


def test_tokenizer_settings_that_are_not_used_are_told_in_one_line(folder: Path, parent: RunDir) -> None:
    _, lines = start(child(folder, parent, "tokenizer.vocab_size=70", "tokenizer.kind=bpe", "tokenizer.character_coverage=0.99"))
    told = [line for line in lines if "whatever" in line]
    which = "tokenizer.character_coverage (1.0 there), tokenizer.vocab_size (120 there)"
    assert told == [f"train.init_from: the tokenizer is that of {parent.path}, whatever this config says of {which}"]
    _, lines = start(child(folder, parent, f"run_dir={folder / 'other'}", "tokenizer.sample={bpe_dropout: 0.1}"))
    assert not any("whatever" in line for line in lines)


def test_an_untied_output_layer_is_none_of_the_parts() -> None:
    from mt.launch.inherit import freeze

    model = small_transformer(tied=False)
    freeze(model, ["encoder", "decoder", "embeddings"])
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["output.weight"]


def test_frozen_parts_of_a_model_that_starts_at_random_are_doubted(folder: Path) -> None:
    text = toy.config_text() + "  freeze: [encoder]\n"
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    (warning,) = load(folder / "x.yaml").warnings
    assert warning.endswith("train.freeze: without train.init_from they stay as random as they begin")


def test_the_option_and_the_setting_are_one(folder: Path, parent: RunDir, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    text = toy.config_text() + "  init_from: older\n"
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    assert load(folder / "x.yaml").config.train.init_from == folder / "older"
    monkeypatch.chdir(parent.path.parent)
    tiny = [word for override in toy.TINY for word in ("--set", override)]
    done = mt(
        "train", "--config", folder / "x.yaml", *tiny, "--init-from", "run", "--run-dir", folder / "child", "--dry-run", capsys=capsys
    )
    assert (done.code, done.says(f"starting from {parent.find('best')}")) == (0, True)
