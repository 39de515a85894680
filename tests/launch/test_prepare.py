"""From a config to a run: what is derived, what may change on resume, and how a directory is made whole or not at all."""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mt.config.derived import derive
from mt.config.load import dump, load
from mt.config.schema import Config
from mt.data.build import Source, build_store
from mt.data.cachedir import CacheDir
from mt.data.loader import TrainingData
from mt.data.store import Store
from mt.errors import ConfigError, DataError, RunError
from mt.formats.pairs import Pair
from mt.launch.derive import differing, make_plan, same_run
from mt.launch.inputs import pointer_of
from mt.launch.prepare import check_directions, fresh
from mt.launch.sources import check_sources, fingerprints
from mt.rundir import RunDir
from mt.tokenizer.spm import Tokenizers
from tests import toy

RUN = RunDir("run")


def config(**train: Any) -> Config:
    corpus = {"src": "a", "tgt": "b"}
    return Config.model_validate({"data": {"train": [corpus], "dev": corpus}, "train": train})


# ── what depends on the corpus ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("updates_per_epoch", "expected"), [(1, 2000), (100, 4000), (1_000_000, 100_000)])
def test_with_no_limit_given_there_is_one(updates_per_epoch: int, expected: int) -> None:
    assert derive(config(), updates_per_epoch=updates_per_epoch).train.max_updates == expected


@pytest.mark.parametrize("limit", [{"max_updates": 7}, {"max_epochs": 3}, {"max_minutes": 2.0}])
def test_a_limit_that_was_given_is_the_only_one(limit: dict[str, Any]) -> None:
    train = derive(config(**limit), updates_per_epoch=10).train
    assert {"max_updates": train.max_updates, "max_epochs": train.max_epochs, "max_minutes": train.max_minutes} == {
        "max_updates": None,
        "max_epochs": None,
        "max_minutes": None,
        **limit,
    }


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_updates": 5000}, 500),
        ({"max_updates": 10**6}, 1000),
        ({"max_updates": 5}, 1),
        ({"max_epochs": 20}, 200),
        ({"max_updates": 5000, "max_epochs": 20}, 200),
        ({"max_minutes": 3.0}, 1000),
    ],
)
def test_warm_up_is_a_tenth_of_the_run_at_most_1000(limits: dict[str, Any], expected: int) -> None:
    assert derive(config(**limits), updates_per_epoch=100).train.schedule.warmup == expected


@pytest.mark.parametrize(("updates_per_epoch", "expected"), [(5, 100), (700, 700), (9000, 2000)])
def test_validation_is_about_once_an_epoch_and_saving_with_it(updates_per_epoch: int, expected: int) -> None:
    train = derive(config(), updates_per_epoch=updates_per_epoch).train
    assert (train.validation.every, train.save_every) == (expected, expected)


def test_what_was_given_stays() -> None:
    given = {"max_updates": 900, "save_every": 13, "schedule": {"warmup": 77}, "validation": {"every": 31, "beam": 2}}
    train = derive(config(**given), updates_per_epoch=10).train
    assert (train.max_updates, train.save_every, train.schedule.warmup) == (900, 13, 77)
    assert (train.validation.every, train.validation.beam) == (31, 2)


def test_deriving_twice_changes_nothing() -> None:
    once = derive(config(), updates_per_epoch=321)
    assert derive(once, updates_per_epoch=99) == once


@pytest.mark.parametrize(
    ("limits", "last", "end"),
    [
        ({"max_updates": 50}, 50, 50),
        ({"max_epochs": 3}, None, 30),
        ({"max_updates": 50, "max_epochs": 3}, 50, 30),
        ({"max_minutes": 1.0}, None, None),
    ],
)
def test_the_curve_ends_where_the_run_does(limits: dict[str, Any], last: int | None, end: int | None) -> None:
    plan = make_plan(derive(config(**limits), updates_per_epoch=10), 10)
    assert (plan.last_update, plan.curve_end) == (last, end)


# ── the same run ────────────────────────────────────────────────────────────────────────────────────────────────────


def frozen_of(given: Config) -> Config:
    return derive(given.model_copy(update={"train": given.train.model_copy(update={"precision": "fp32"})}), updates_per_epoch=10)


def test_the_config_that_started_a_run_resumes_it() -> None:
    for given in (config(), config(max_epochs=3), config(max_updates=9, schedule={"kind": "noam"})):
        assert same_run(given, frozen_of(given), RUN) == frozen_of(given)


@pytest.mark.parametrize("limit", [{"max_updates": 7}, {"max_epochs": 3}, {"max_minutes": 2.0}])
def test_a_limit_that_is_no_longer_given_stays(limit: dict[str, Any]) -> None:
    """It may have been given with --set."""
    assert same_run(config(), frozen_of(config(**limit)), RUN) == frozen_of(config(**limit))


def test_the_frozen_config_resumes_its_own_run(tmp_path: Path) -> None:
    frozen = load(toy.config_file(tmp_path)).config
    frozen = frozen_of(frozen)
    (tmp_path / "frozen.yaml").write_text(dump(frozen), encoding="utf-8")
    assert same_run(load(tmp_path / "frozen.yaml").config, frozen, RUN) == frozen


@pytest.mark.parametrize(
    "change",
    [
        {"max_updates": 9000},
        {"max_epochs": 3},
        {"max_minutes": 5.0},
        {"save_every": 7},
        {"keep": 2},
        {"validation": {"every": 7, "beam": 3, "max_lines": 5, "samples": 0, "attention": 2}},
        {"early_stopping": {"metric": "chrf", "patience": 3}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_harmless_changes_are_taken(change: dict[str, Any]) -> None:
    taken = same_run(config(**change), frozen_of(config()), RUN)
    for name, value in change.items():
        found = getattr(taken.train, name)
        assert (found.model_dump() if isinstance(value, dict) else found) == value


def test_how_to_decode_may_change() -> None:
    changed = config().model_copy(update={"decode": config().decode.model_copy(update={"beam": 2, "length_penalty": 0.5})})
    assert same_run(changed, frozen_of(config()), RUN).decode == changed.decode


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"seed": 2}, ["train.seed"]),
        ({"accumulate": 2}, ["train.accumulate"]),
        ({"batch_tokens": 5}, ["train.batch_tokens"]),
        ({"precision": "bf16"}, ["train.precision"]),
        ({"ema": 0.9}, ["train.ema"]),
        ({"average": {"last": 2}}, ["train.average.last"]),
        ({"optimizer": {"lr": 0.5, "betas": [0.9, 0.99]}}, ["train.optimizer.betas.1", "train.optimizer.lr"]),
        ({"schedule": {"kind": "constant"}}, ["train.schedule.kind"]),
        ({"schedule": {"warmup": 3}, "seed": 9, "keep": 2}, ["train.schedule.warmup", "train.seed"]),
    ],
    ids=str,
)
def test_any_other_change_is_refused_by_name(change: dict[str, Any], keys: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        same_run(config(**change), frozen_of(config()), RUN)
    *changed, cure = caught.value.problems
    assert [line.split()[3] for line in changed] == keys
    assert all(line.startswith("run: cannot resume, ") and " before, " in line for line in changed)
    assert "--run-dir NEW" in cure


def test_model_data_and_tokenizer_may_not_change() -> None:
    values = config().model_dump(mode="json", exclude_none=True)
    values["model"]["dim"], values["tokenizer"]["vocab_size"], values["data"]["train"][0]["src"] = 128, 99, "c"
    values["data"]["test"] = {"new": {"src": "x", "tgt": "y"}}
    with pytest.raises(ConfigError) as caught:
        same_run(Config.model_validate(values), frozen_of(config()), RUN)
    changed = [line.split()[3] for line in caught.value.problems[:-1]]
    assert {"model.dim", "tokenizer.vocab_size", "data.train.0.src", "data.test.new"} <= set(changed)


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_the_end_may_not_move_where_it_shapes_the_curve(kind: str) -> None:
    given = {"schedule": {"kind": kind}, "max_updates": 100}
    frozen = frozen_of(config(**given))
    with pytest.raises(ConfigError, match="train.max_updates changed: 100 before, 200 now"):
        same_run(config(**{**given, "max_updates": 200}), frozen, RUN)
    assert same_run(config(**given, max_minutes=5.0), frozen, RUN).train.max_minutes == 5.0


def test_settings_differ_by_the_part_and_a_part_of_only_one_of_them_as_a_whole() -> None:
    old, new = {"a": 1, "b": [1, {"c": 2, "d": 3}], "e": 4}, {"a": 1, "b": [5, {"c": 6, "d": 3}, {"f": 7, "g": 8}]}
    found = {"b.0": (1, 5), "b.1.c": (2, 6), "b.2": (None, {"f": 7, "g": 8}), "e": (4, None)}
    assert dict(differing(old, new)) == found
    assert dict(differing(new, old)) == {name: values[::-1] for name, values in found.items()}
    assert not dict(differing(old, old))


# ── the files a run was made from ───────────────────────────────────────────────────────────────────────────────────


def test_changed_files_are_named_and_missing_ones_do_no_harm(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, train=3, dev=2, test=1)
    given = toy.config(tmp_path, f"data.train.1.jsonl={tmp_path / 'x.jsonl'}")
    (tmp_path / "x.jsonl").write_text('{"src": "bage", "tgt": "dirkan"}\n', encoding="utf-8")
    run = RunDir(tmp_path / "run")
    run.data.mkdir(parents=True)
    cache = CacheDir(tmp_path / "cache")
    prints = fingerprints(given, cache)
    assert set(prints) == {str(tmp_path / name) for name in ("train.src", "train.trg", "x.jsonl", "valid.src", "valid.trg")}
    (run.data / "sources.json").write_text(json.dumps(prints), encoding="utf-8")
    check_sources(run, cache)
    (tmp_path / "train.trg").unlink()
    check_sources(run, cache)
    toy.write_lines(tmp_path / "train.src", ["bage ."] * 3)
    toy.write_lines(tmp_path / "valid.src", ["bage ."] * 2)
    with pytest.raises(RunError, match="the data changed") as caught:
        check_sources(run, cache)
    assert str(tmp_path / "train.src") in str(caught.value)
    assert str(tmp_path / "valid.src") in str(caught.value)
    assert "valid.trg" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000], ids=["empty", "list", "deep"])
def test_damaged_sources_and_pointers_are_one_line_with_the_cure(tmp_path: Path, text: str) -> None:
    run = RunDir(tmp_path)
    run.data.mkdir()
    for file, read in ((run.sources, lambda: check_sources(run, CacheDir(tmp_path))), (run.pointer, lambda: pointer_of(run))):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(RunError, match=f"{file}: is damaged; copy it from a backup, or start over with --overwrite"):
            read()


# ── whole or not at all ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def old(tmp_path: Path) -> RunDir:
    """An older run, in use by this process."""
    run = RunDir(tmp_path / "run")
    run.step(5).mkdir(parents=True)
    for path in (run.config, run.step(5) / "state.json", run.lock_file, run.path / "notes of mine"):
        path.write_text("old", encoding="utf-8")
    return run


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}


def test_a_new_run_takes_the_place_of_the_old_one(old: RunDir) -> None:
    with fresh(old):
        assert tree(old.path).keys() == {"lock", "notes of mine", *(f"replaced.partial/{name}" for name in tree(old.replaced))}
        old.config.write_text("new", encoding="utf-8")
    assert tree(old.path) == {"config.yaml": "new", "lock": "old", "notes of mine": "old"}


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", range(12))
def test_killed_while_it_is_replaced_the_old_one_is_put_back(old: RunDir, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill at any rename or removal, and a second one while that is settled, nothing of the old run is lost."""
    before = tree(old.path)
    steps = iter(range(100))

    def killing(work: Callable[..., object]) -> Callable[..., object]:
        def killed(*args: object, **kwargs: object) -> object:
            if next(steps) == moment:
                raise Killed
            return work(*args, **kwargs)

        return killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killing(Path.rename))
        patch.setattr("mt.rundir.shutil.rmtree", killing(shutil.rmtree))
        for attempt in ("prepare", "settle"):
            with suppress(Killed):
                if attempt == "settle":
                    old.put_back()
                old.put_aside()
                old.data.mkdir()
                old.pointer.write_text("half", encoding="utf-8")
                old.put_back()
    old.put_back()
    assert tree(old.path) == before


def test_a_preparation_may_be_killed_again_and_again(tmp_path: Path) -> None:
    """What the killed ones made is put aside each time, and is gone with the one that comes to its end."""
    run = RunDir(tmp_path)
    for _ in range(4):
        run.put_aside()
        run.data.mkdir()
        run.pointer.write_text("half", encoding="utf-8")
    with fresh(run):
        assert not run.data.exists()
        run.config.write_text("new", encoding="utf-8")
    assert tree(run.path) == {"config.yaml": "new"}


REPLACING = (RunDir.put_aside, RunDir.put_back, RunDir.entries, RunDir.is_whole, inspect.unwrap(fresh))


@contextmanager
def interrupt(moment: int) -> Iterator[None]:
    """Within, Ctrl-C comes before the line with this number of those that replace a run."""
    lines, codes = iter(range(10**6)), {function.__code__ for function in REPLACING}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code not in codes:
            return None
        if event == "line" and next(lines) == moment:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("fails", [False, True], ids=["new", "old"])
def test_interrupted_at_any_line_the_old_run_or_the_new_one_is_found(old: RunDir, fails: bool) -> None:
    old.sources.parent.mkdir()
    old.sources.write_text("old", encoding="utf-8")
    old.set_names(best=old.step(5))
    old.lock_file.unlink()
    before, backup = tree(old.path), old.path.with_name("backup")
    shutil.copytree(old.path, backup)

    def replace() -> None:
        with fresh(old):
            old.data.mkdir()
            old.sources.write_text("new", encoding="utf-8")
            if fails:
                raise DataError("x")
            old.config.write_text("new", encoding="utf-8")

    interrupted = 0
    for moment in range(1000):
        try:
            with interrupt(moment), suppress(DataError):
                replace()
        except KeyboardInterrupt:
            interrupted += 1
        else:
            break
        old.require()
        found = tree(old.path)
        found.pop("lock", None)
        assert found == before or (found == {"config.yaml": "new", "data/sources.json": "new", "notes of mine": "old"} and not fails)
        shutil.rmtree(old.path)
        shutil.copytree(backup, old.path)
    assert interrupted > 20


@pytest.mark.parametrize("error", [DataError("x"), KeyboardInterrupt(), ZeroDivisionError()], ids=repr)
def test_if_that_fails_the_old_one_is_back(old: RunDir, error: BaseException) -> None:
    before = tree(old.path)

    def fail_half_way() -> None:
        with fresh(old):
            old.data.mkdir()
            old.pointer.write_text("new", encoding="utf-8")
            old.config.write_text("new", encoding="utf-8")
            raise error

    with pytest.raises(type(error)):
        fail_half_way()
    assert tree(old.path) == before
    assert not old.data.exists()
    assert not old.replaced.exists()


def test_what_lies_beside_the_run_is_left_alone(old: RunDir) -> None:
    backup = old.path.with_name("run.old")
    backup.mkdir()
    (backup / "model").write_text("precious", encoding="utf-8")
    with fresh(old):
        pass
    assert tree(backup) == {"model": "precious"}


# ── each side in its own ids ────────────────────────────────────────────────────────────────────────────────────────


def test_ids_of_the_other_sides_tokenizer_are_noticed(tmp_path: Path) -> None:
    separate = toy.tokenizers(joint=False)
    swapped = Tokenizers(separate.tgt, separate.src)
    pairs = [Pair(source, toy.translation(source), f"train.src:{n}") for n, source in enumerate(toy.sentences(3), 1)]
    build_store(tmp_path / "train", [Source("train", pairs)], separate, max_pieces=100)
    data = TrainingData(Store(tmp_path / "train"), separate, budget=100, seed=1)
    check_directions(data, separate)
    with pytest.raises(DataError, match="train.src:1: the stored source ids are not those of its tokenizer"):
        check_directions(data, swapped)
    with pytest.raises(DataError, match="train.src:1: the stored target ids"):
        check_directions(data, Tokenizers(separate.src, separate.src))
