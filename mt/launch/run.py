"""One run from start to end: claim the directory, prepare or resume, train, average, score the test sets."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from mt.config.exports import holders
from mt.config.schema import Config
from mt.data.meter import Say
from mt.errors import RunError
from mt.formats.pairs import counted
from mt.launch.concerns import concerns
from mt.launch.derive import longer
from mt.launch.dry_run import foretell
from mt.launch.ending import finish, is_scored, report
from mt.launch.prepare import Prepared, join, prepare, run_path
from mt.launch.prepare import resume as resume_run
from mt.model.device import choose_device
from mt.model.process import TRAINED, keep_few_primitives, keep_freed_memory
from mt.report.environment import device_name, record
from mt.rundir import RunDir
from mt.train.board import TensorBoard
from mt.train.compiled import compile_layers
from mt.train.events import Event
from mt.train.forecast import Forecast
from mt.train.loop import fit, patience_lost, reason_to_end
from mt.train.memory import enough_memory, room_of
from mt.train.monitor import Console, Journal, naming
from mt.train.parallel import ALONE, Ranks
from mt.train.signals import Stop, stop_on
from mt.train.state import Progress
from mt.train.trial import try_largest


def train_run(config: Config, *, resume: bool, overwrite: bool, dry_run: bool, device: str, say: Say, ranks: Ranks = ALONE) -> int:
    """Do what `mt train` promises; returns the exit code. Raises MTError for what the user can cure.

    Of several ranks the first does everything that is not training.
    """
    run = RunDir(run_path(config))
    if dry_run and ranks.leads:
        with TemporaryDirectory() as folder, enough_memory(config.train):
            prepared = prepare(config.model_copy(update={"run_dir": Path(folder)}), device=device, ranks=ranks, say=say)
            prepared.run = run
            describe(prepared, say=say)
            foretell(prepared, asked=config, say=say)
        if run.is_whole() and not overwrite:
            say(f"warning: {run.path}: there is a run here; mt train will want --resume or --overwrite, or another --run-dir")
    if dry_run:
        return 0
    with claimed(run) if ranks.leads else nullcontext(), enough_memory(config.train):
        prepared = begin(config, run, resume=resume, overwrite=overwrite, device=device, ranks=ranks, say=say)
        describe(prepared, say=say)
        if not prepared.state.progress.update:
            warn(prepared, say=say)
        if why := finished(prepared):
            progress = prepared.state.progress
            how = longer(prepared.config, why, run, None if progress.ended else prepared.changed)  # had it not ended, a change has ended it
            say(f"{run.path}: is finished already ({why}); {how}")
            if ranks.leads:
                tell_end(run, progress, why)
            if is_scored(prepared):
                if ranks.leads and config.train.report and not run.page.exists():
                    report(prepared, device=device, say=say)
                return 0
        code = 0 if why else train(prepared, say=say)
        if code == 0 and ranks.leads:
            finish(prepared, device=device, say=say)
        return code


@contextmanager
def claimed(run: RunDir) -> Iterator[None]:
    """Within, the run directory is ours. Raises RunError where it cannot be."""
    if run.is_torn():  # a kill came while an older run was being replaced: it looks like no run
        with run.lock():
            run.put_back()
    refuse_strangers(run)
    with tidy(run), run.lock():
        run.clear_half_written()
        yield


def begin(config: Config, run: RunDir, *, resume: bool, overwrite: bool, device: str, ranks: Ranks, say: Say) -> Prepared:
    """A new run, or one that goes on: made ready by the first rank, then taken up by the others."""
    prepared, room = None, None
    if config.train.batch_tokens == "auto" and ranks.count > 1:
        room = min((free for free in ranks.collect(room_of(ranks.place(choose_device(device)))) if free is not None), default=None)
    if ranks.leads:
        if run.is_whole() and not (resume or overwrite):
            raise RunError(f"{run.path}: there is a run here; go on with --resume, start over with --overwrite, or give another --run-dir")
        go_on = run.is_whole() and resume
        if resume and not go_on:  # from another folder, `runs/my` is another one
            say(f"{run.path}: there is no run to go on with yet, starting one")
        make = resume_run if go_on else partial(prepare, room=room)
        prepared = make(config, device=device, ranks=ranks, say=say)
    effective = ranks.first(lambda: prepared.config if prepared else config)
    return prepared or join(effective, device=device, ranks=ranks, say=say)


def refuse_strangers(run: RunDir) -> None:
    """Raise RunError where a run would stand among, or in place of, what is not ours to touch."""
    try:
        if strangers := run.strangers():
            raise RunError(f"{run.path}: not a run, but not empty either (it holds {strangers[0]}); give another --run-dir")
    except NotADirectoryError:
        raise RunError(f"{run.path}: is a file; give another --run-dir") from None
    except OSError as error:
        raise RunError(f"{run.path}: cannot be used ({error.strerror}); give another --run-dir") from None


@contextmanager
def tidy(run: RunDir) -> Iterator[None]:
    """Afterwards, folders made within that stayed empty are gone: a run that could not start leaves nothing behind."""
    missing = [path for path in (run.path, *run.path.parents) if not path.exists()]
    try:
        yield
    finally:
        for path in missing:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def describe(prepared: Prepared, *, say: Say) -> None:
    """Say what the run is."""
    state, cfg, run = prepared.state, prepared.config.train, prepared.run
    parameters, trained = (sum(p.numel() for p in state.model.parameters() if p.requires_grad or whole) for whole in (True, False))
    limits = {"update": cfg.max_updates, "epoch": cfg.max_epochs, "minute": cfg.max_minutes}
    until = " or ".join(counted(value, name) for name, value in limits.items() if value)
    real = prepared.epoch.real / prepared.epoch.padded
    threads = f", {counted(torch.get_num_threads(), 'thread')}" if state.device.type == "cpu" else ""
    frozen = f", {trained} of them trained" if trained < parameters else ""
    ranks = f", {state.ranks.count} ranks" if state.ranks.count > 1 else ""
    say(f"model: {parameters} parameters{frozen}; device {state.device}{threads}, precision {state.precision}{ranks}")
    pairs = len(prepared.data.store)
    say(f"data: {pairs} pairs, {counted(prepared.updates_per_epoch, 'update')} an epoch, {100 * real:.1f} % of a batch are real tokens")
    say(f"run: {run.path}, until {until}; curves: tensorboard --logdir {run.tensorboard}")


def warn(prepared: Prepared, *, say: Say) -> None:
    """Say what the settings, with this corpus, will do that is hardly meant, and which programs will not take the model."""
    for line in concerns(prepared):
        say(f"warning: {line}")
    for holder in holders(prepared.config):
        if holder.obstacles or holder.without:
            say(holder.line())


def finished(prepared: Prepared) -> str | None:
    """Why a resumed run has nothing left to train, or None."""
    state, cfg = prepared.state, prepared.config.train
    return (reason_to_end(state, cfg, prepared.plan, Stop()) or patience_lost(state, cfg)) if state.progress.update else None


def rewind(run: RunDir, progress: Progress) -> None:
    """Take back what the journal tells of after the checkpoint: it will come again."""
    if run.journal.exists():
        with naming(run.journal), run.journal.open("r+b") as file:
            file.truncate(min(progress.journal_bytes, run.journal.stat().st_size))


def tell_end(run: RunDir, progress: Progress, why: str) -> None:
    """Have the end in the journal: whoever came to it may have been killed before it was written."""
    rewind(run, progress)
    with closing(Journal(run)) as journal:
        journal(progress.end(why))


def train(prepared: Prepared, *, say: Say) -> int:
    """Run the loop with its listeners; the exit code is 130 or 143 after a signal."""
    cfg, run, state = prepared.config.train, prepared.run, prepared.state
    progress = state.progress
    progress.ended = None
    if state.device.type == "cpu":
        keep_freed_memory()
        keep_few_primitives(TRAINED)
    state.share()
    if cfg.compile:
        compile_layers(state, cfg=cfg, say=say)
    try_largest(state, prepared.data, cfg=cfg, say=say)
    with (
        stop_on(signal.SIGINT, signal.SIGTERM, launched=state.ranks.count > 1) as stop,
        listening(prepared, say=say) if state.ranks.leads else nullcontext(()) as listeners,
        closing(fit(state, prepared.data, cfg=cfg, plan=prepared.plan, run=run, validator=prepared.validator, stop=stop)) as events,
    ):
        for event in events:
            for listener in listeners:
                listener(event)
    if stop.exit_code:
        say(f"saved at update {progress.update}; go on with the same command and --resume")
    return stop.exit_code


def about(prepared: Prepared) -> dict[str, Any]:
    """What is noted of a run each time it starts: where from, and on what."""
    state = prepared.state
    return {
        "update": state.progress.update,
        "device": device_name(state.device),
        "precision": state.precision,
        "threads": torch.get_num_threads() if state.device.type == "cpu" else None,
        "ranks": state.ranks.count,
        "parameters": sum(p.numel() for p in state.model.parameters()),
        "updates_per_epoch": prepared.updates_per_epoch,
    }


@contextmanager
def listening(prepared: Prepared, *, say: Say) -> Iterator[Sequence[Callable[[Event], None]]]:
    """Within, whoever listens to the events of the loop; they go on where the run does."""
    cfg, run, progress = prepared.config.train, prepared.run, prepared.state.progress
    if progress.update:
        say(f"resuming at update {progress.update}, epoch {progress.cursor.epoch + 1}")
    rewind(run, progress)
    with naming(run.starts):
        record(run, **about(prepared))
    if run.test_scores.is_file():  # it tells that the run is finished
        with naming(run.test_scores):
            run.test_scores.unlink()
    with (
        closing(Journal(run)) as journal,
        closing(TensorBoard(run, config=prepared.config, purge_from=progress.update + 1 if progress.update else None)) as board,
    ):
        console = Console(  # shows its bar, and TensorBoard's libraries take their time
            total=prepared.plan.curve_end,
            minutes=cfg.max_minutes,
            done=progress.update,
            seconds=progress.seconds,
            skipped=progress.skipped,
        )
        forecast = Forecast(
            end=prepared.plan.curve_end,
            minutes=cfg.max_minutes,
            per_epoch=prepared.updates_per_epoch,
            warmup=prepared.plan.warmup,
            every=prepared.plan.validate_every,
            seconds=progress.seconds,
            say=console.say,
        )
        yield journal, board, console, forecast
