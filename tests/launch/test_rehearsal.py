"""How fast training will be: what updates tell, and which batch is the largest."""

from __future__ import annotations

from pathlib import Path

from mt.launch.rehearsal import peak_memory, rehearse, speed_of, validation_seconds
from tests import toy
from tests.runs import four_updates, prepared
from tests.train import tiny
from tests.train.test_monitor import made


def test_the_first_updates_do_not_count() -> None:
    found = speed_of([*[made(1, seconds=9.0)] * 4, *[made(1, seconds=2.0)] * 3], micro_batches=1, peak=0)
    assert (found.seconds, found.per_second) == (2.0, 50.0)
    assert speed_of([made(1, seconds=9.0), made(1, seconds=2.0)], micro_batches=1, peak=0).seconds == 2.0
    assert speed_of([made(1, seconds=9.0)], micro_batches=1, peak=0).seconds == 9.0


def test_micro_batches_share_one_step_of_the_optimiser() -> None:
    found = speed_of([made(1, seconds=3.0, optimizing=1.0)], micro_batches=4, peak=0)
    assert (found.seconds, found.tokens) == (9.0, 400)


def test_a_rehearsal_is_of_real_updates_and_a_part_of_a_validation(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, train=200, dev=300, test=3)
    config = four_updates(tmp_path)
    one = prepared(config)
    assert one.validator is not None
    seconds = validation_seconds(one.validator, one.state, one.config)
    found = rehearse(one.state, one.data, one.config, one.plan, micro_batches=one.micro_batches)
    assert 0 < seconds < 60
    assert 1 <= one.state.progress.update == found.updates
    assert 0 < found.tokens < 200
    assert 0 < found.peak <= peak_memory(tiny.CPU)
