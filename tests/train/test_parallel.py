"""Several ranks are as good as one: real processes under torchrun, on the toy corpus, over gloo."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.data.plan import Cursor
from mt.errors import RunError
from mt.launch.inputs import open_store, training_data
from mt.rundir import RunDir
from mt.tokenizer.of_run import load_tokenizers
from mt.train.parallel import ALONE, Ranks
from tests import toy
from tests.runs import Done, contents, differences, journal, mt, torchrun, train

UPDATES = 30
SETTINGS = (
    *toy.TINY,
    f"train.max_updates={UPDATES}",
    "train.save_every=5",
    "train.keep=9",
    "train.ema=0.9",
    "train.schedule.warmup=15",
    "train.validation={every: 10, samples: 1, attention: 0}",
    "decode.max_length_factor=0.5",
)
RANDOM = ("model.dropout=0.2", "model.word_dropout=0.1", "tokenizer.sample={bpe_dropout: 0.1}")
SCRIPT = Path(__file__).parent / "two_ranks.py"
TRIED = str(Path(__file__).parent / "tried_ranks.py")

pytestmark = pytest.mark.usefixtures("quiet")


class Number(Ranks):
    """Stands in for one rank of several, as far as data are concerned."""

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count


def words(folder: Path, name: str, *overrides: str, mt: Sequence[str] = ("-m", "mt")) -> list[str]:
    """`-m mt train`, or that of another script, of a run in the folder."""
    changes = [word for change in (*SETTINGS, *overrides) for word in ("--set", change)]
    return [*mt, "train", "--config", f"{folder}/toy.yaml", "--run-dir", f"{folder}/{name}", "--device", "cpu", "--resume", *changes]


def signal_a_rank(process: subprocess.Popen[str], run: RunDir, *, rank: int, updates: int, number: int) -> str:
    """Send a signal to one rank once so many updates are in the journal; what all have said at the end."""
    while process.poll() is None and not (run.journal.exists() and len(run.journal.read_text(encoding="utf-8").splitlines()) >= updates):
        time.sleep(0.002)
    for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
        for child in children.read_text().split():
            if f"RANK={rank}" in Path(f"/proc/{child}/environ").read_text().split("\0"):
                os.kill(int(child), number)
    return process.communicate(timeout=300)[1]


def alone(folder: Path, name: str, *overrides: str, threads: int = 1) -> Done:
    """The run in this process, on as many threads as a rank has: their number decides the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return train(toy.config(folder, *SETTINGS, f"run_dir={folder / name}", *overrides), resume=True)
    finally:
        torch.set_num_threads(before)


def updates_of(run: RunDir) -> list[dict[str, Any]]:
    return [event for event in journal(run) if event["event"] == "update"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parallel")
    toy.write_corpus(folder, train=72, dev=3, test=1)
    toy.config_file(folder)
    return folder


@pytest.fixture(scope="module")
def stopped(folder: Path) -> tuple[RunDir, str]:
    """A run of two ranks, of which one was asked to end."""
    run = RunDir(folder / "stopped")
    with torchrun(*words(folder, "stopped")) as process:
        said = signal_a_rank(process, run, rank=1, updates=7, number=signal.SIGTERM)
    return run, said


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_each_pair_comes_once_an_epoch_on_one_of_the_ranks(stopped: tuple[RunDir, str], folder: Path, ranks: int) -> None:
    run, _ = stopped
    config = toy.config(folder, *SETTINGS)
    store, tokenizers = open_store(run), load_tokenizers(run, joint=True)
    data = [training_data(config, store, tokenizers, ranks=Number(rank, ranks)) for rank in range(ranks)]
    batches = len(data[0].order.batches(0, 0))
    assert batches % ranks, "the last update of the epoch should not have a batch for each rank"
    groups = [list(islice(one.groups(Cursor(), size=1), -(-batches // ranks))) for one in data]
    assert {after for rank in groups for _, after in rank[-1:]} == {Cursor(1)}
    assert len({tuple(len(micro) for micro, _ in rank) for rank in groups}) == 1
    origins = Counter(origin for rank in groups for micro, _ in rank for batch in micro for origin in batch.origins)
    assert len(origins) == 72
    assert set(origins.values()) == {1}


def test_a_signal_to_one_rank_ends_all_after_the_same_update(stopped: tuple[RunDir, str]) -> None:
    run, said = stopped
    made = updates_of(run)
    assert 7 <= len(made) < UPDATES
    assert journal(run)[-1]["reason"] == "interrupted"
    assert run.names()["last"] == run.step(len(made)).name
    assert len(run.steps()) == len({*range(5, len(made), 5), len(made)})
    assert said.count("saved at update") == 1
    assert "mt/train" not in said  # no traceback of ours
    assert "2 ranks" in said


@pytest.mark.usefixtures("stopped")
def test_another_number_of_micro_batches_is_refused(folder: Path) -> None:
    with pytest.raises(RunError, match=r"2 micro-batches.* 1 now; set train.accumulate=2, or start as many ranks"):
        alone(folder, "stopped")
    with pytest.raises(RunError, match=r"2 micro-batches.* 3 now"):
        alone(folder, "stopped", "train.accumulate=3")


def test_one_rank_goes_on_where_two_were_and_all_is_as_if_it_had_been_alone(stopped: tuple[RunDir, str], folder: Path) -> None:
    """With twice as many micro-batches an update; nothing is dropped out, as dropout is another one on each rank."""
    run, whole = stopped[0], RunDir(folder / "whole")
    assert alone(folder, "whole", "train.accumulate=2").code == 0
    done = alone(folder, "stopped", "train.accumulate=2")
    assert done.code == 0
    ours, theirs = updates_of(run), updates_of(whole)
    assert [event["update"] for event in ours] == list(range(1, UPDATES + 1))
    for one, other in zip(ours, theirs, strict=True):
        assert [one[name] for name in ("epoch", "lr", "tokens", "src_tokens")] == [
            other[name] for name in ("epoch", "lr", "tokens", "src_tokens")
        ]
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-5)
        assert one["norm"] == pytest.approx(other["norm"], rel=1e-4)
    found, expected = (contents(one.step(UPDATES)) for one in (run, whole))
    for name in (name for name in expected if name.startswith("model/")):
        torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-5)


def test_a_killed_rank_ends_the_job_and_resumed_it_is_the_uninterrupted_run(folder: Path) -> None:
    """To the last bit, with everything that is random, and although the largest batches were tried each time it was started."""
    whole, killed = RunDir(folder / "whole of two"), RunDir(folder / "killed")
    with torchrun(*words(folder, whole.path.name, *RANDOM)) as process:
        said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, said
    with torchrun(*words(folder, "killed", *RANDOM, mt=[TRIED])) as process:
        said = signal_a_rank(process, killed, rank=1, updates=12, number=signal.SIGKILL)
        assert process.returncode != 0
    assert re.search("^rank 1 of 2 is lost.*--resume$", said, re.MULTILINE), said
    assert "mt/train" not in said
    assert not (killed.path / "lock").exists()
    assert killed.names()["last"] in ("step-00000010", "step-00000015", "step-00000020", "step-00000025")
    with torchrun(*words(folder, "killed", *RANDOM, mt=[TRIED])) as process:
        said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, said
    assert "resuming at update" in said
    assert differences(contents(killed.step(UPDATES)), contents(whole.step(UPDATES))) == []
    assert journal(killed) == journal(whole)
    first, second = (contents(whole.step(10))[f"trainer/{name}cpu_generator"] for name in ("", "other_ranks/0/"))
    assert not torch.equal(first, second)


def test_what_ranks_say_to_each_other(tmp_path: Path) -> None:
    """The script has one rank go wrong in ways that a whole run cannot be made to."""
    with torchrun(SCRIPT, tmp_path) as process:
        said = process.communicate(timeout=300)[1]
        assert process.returncode != 0
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first["sums"] == second["sums"] == [3, 30]
    assert first["settled"] == second["settled"] == [10.0, 15]
    assert first["first"] == second["first"] == "of rank 0"
    assert first["collected"] == second["collected"] == [0, 1]
    assert first["loss"] == second["loss"] == 1.5 + 2.5
    assert first["broken"] == second["broken"] == "nan"
    assert first["norm"] == second["norm"] == "the ranks no longer have the same gradient, its norm is 1.0, 2.0"
    assert first["weights"] == second["weights"] == "the weights of rank 1 are no longer those of rank 0"
    assert first["seeded"] != second["seeded"]
    assert "rank 1: out of memory, 1.00 GiB more were needed; lower train.batch_tokens (4096)" in said
    assert "lost" not in said  # rank 0 has noticed, and knows that it has been told


def test_one_rank_alone_has_what_it_gives() -> None:
    state = torch.get_rng_state()
    ALONE.reseed(1, 2)
    assert torch.equal(state, torch.get_rng_state())
    ALONE.agree(2.0)
    assert (ALONE.leads, ALONE.sums(1, 2), ALONE.settle(3.0, None)) == (True, (1, 2), (3.0, None))
    assert ALONE.total(torch.tensor(1.5)) == 1.5
    assert (ALONE.first(lambda: 4), ALONE.collect(5), ALONE.place(torch.device("cpu"))) == (4, [5], torch.device("cpu"))


def test_ranks_that_do_not_know_each_other_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = mt(*words(folder, "unknown")[2:], capsys=capsys)
    assert done.code == 2
    assert done.says("WORLD_SIZE is 2, but ranks cannot be connected")
    assert done.says("torchrun")
