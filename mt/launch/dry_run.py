"""What `mt train --dry-run` tells of a run: what it would take of memory, time and disk, and what is doubtful about it."""

from __future__ import annotations

from collections.abc import Iterator

from mt.config.exports import holders
from mt.config.schema import Config
from mt.data.cachedir import CacheDir
from mt.data.meter import Say
from mt.formats.pairs import counted
from mt.launch.concerns import advice, concerns, free_disk, size
from mt.launch.footprint import checkpoint_size, checkpoints_size, memory, parameters
from mt.launch.prepare import Prepared
from mt.launch.rehearsal import Speed, rehearse, validation_seconds
from mt.train.forecast import duration, short_of_warmup, too_much_validation
from mt.train.memory import memory_of
from mt.train.trial import largest


def foretell(prepared: Prepared, *, asked: Config, say: Say) -> None:
    """Say it; the weights are of no use afterwards. `asked` is the config before anything was derived."""
    config = prepared.config
    say(f"dry run: leaves nothing but tokenizer and prepared pairs in the cache, {CacheDir(config.data.cache).path}")
    say(f"parameters: {parameters_line(prepared)}")
    say(f"pairs: {pairs_line(prepared)}")
    say("measuring: some updates, and a part of a validation, whose weights are thrown away")
    ranks = prepared.state.ranks.count  # the rehearsal is of this one alone
    warnings: list[str] = []
    validation = validation_seconds(prepared.validator, prepared.state, config) if prepared.validator else 0.0
    shape = largest(prepared.data)[0]
    found, vocab = parameters(prepared.state.model), prepared.data.tokenizers.tgt.size
    device = prepared.state.device
    needed = memory(config, found, shape, vocab=vocab, precision=prepared.state.precision, on_cpu=device.type == "cpu")
    measured = rehearse(prepared.state, prepared.data, config, prepared.plan, micro_batches=prepared.micro_batches)
    say(
        f"memory: {size(needed.total)} by arithmetic: weights {size(needed.weights)}, gradients and optimiser {size(needed.training)}, "
        f"activations {size(needed.activations)} for the largest batch ({counted(shape.rows, 'pair')} of {shape.src} × {shape.tgt} pieces)"
    )
    whose = "of the device" if device.type == "cuda" else "of the process, its libraries and the preparation included"
    say(f"memory: {size(measured.peak)} at most as measured, {whose}")
    room = memory_of(device)
    if room is not None and needed.total > room:
        warnings.append(f"memory: {device} has {size(room)}; lower train.batch_tokens and raise train.accumulate instead")
    for line in [*speed_lines(prepared, measured, validation, ranks=ranks), disk_line(prepared)]:
        say(line)
    for holder in holders(config):
        say(holder.line())
    for line in [*warnings, *concerns(prepared), *time_warnings(prepared, asked, measured, validation), *advice(prepared)]:
        say(f"warning: {line}")


def parameters_line(prepared: Prepared) -> str:
    """How many there are, by part."""
    found = parameters(prepared.state.model)
    output = f"output {found.output}" if found.output else "the output layer is that of the embeddings"
    frozen = f", {found.trained} of them trained" if found.trained < found.total else ""
    return f"{found.total}{frozen}: embeddings {found.embeddings}, encoder {found.encoder}, decoder {found.decoder}, {output}"


def pairs_line(prepared: Prepared) -> str:
    """How many are trained on, and what an epoch comes to."""
    tallies = prepared.data.store.tallies.values()
    kept, total = (sum(getattr(tally, name) for tally in tallies) for name in ("kept", "total"))
    limits = [f"{counted(prepared.plan.curve_end, 'update')} in the run"] if prepared.plan.curve_end else []
    return ", ".join([f"{kept} kept, {total - kept} dropped", f"{counted(prepared.updates_per_epoch, 'update')} an epoch", *limits])


def end_of(prepared: Prepared, measured: Speed, validation: float) -> int | None:
    """The update at which the first limit ends the run; None if none does."""
    minutes, plan = prepared.config.train.max_minutes, prepared.plan
    limits = [plan.curve_end] if plan.curve_end else []
    limits += [int(60 * minutes / (measured.seconds + validation / plan.validate_every))] if minutes else []
    return max(1, min(limits)) if limits else None


def speed_lines(prepared: Prepared, measured: Speed, validation: float, *, ranks: int) -> Iterator[str]:
    """How fast it is, and how long the run takes."""
    train, plan, per_epoch = prepared.config.train, prepared.plan, prepared.updates_per_epoch
    alone = ", of one rank by itself" if ranks > 1 else ""
    yield f"speed: {measured.per_second:.0f} target tokens/s, measured over {counted(measured.updates, 'update')}{alone}"
    last = end_of(prepared, measured, validation)
    epoch = f"an epoch takes {duration(measured.seconds * per_epoch)}"
    if last is None:
        yield f"time: {epoch}; nothing but early stopping ends the run"
        return
    validations = -(-last // plan.validate_every)
    total = last * measured.seconds + validations * validation
    judged = f", {counted(validations, 'validation')} of {duration(validation)} among it" if prepared.validator else ""
    sooner = ", if early stopping does not end it sooner" if prepared.validator and train.early_stopping.patience else ""
    yield f"time: {epoch}, the run until update {last} {duration(total)}{judged}{sooner}"


def disk_line(prepared: Prepared) -> str:
    """What the run leaves on the disk, and what there is."""
    config, found = prepared.config, parameters(prepared.state.model)
    one, all_ = checkpoint_size(found, ema=bool(config.train.ema)), checkpoints_size(config, found)
    store = sum(file.stat().st_size for file in prepared.data.store.path.iterdir())
    kept = f"checkpoints of {size(one)} each, up to {size(all_)}; prepared pairs {size(store)} in the cache"
    return f"disk: {kept}; {size(free_disk(prepared.run.path))} are free"


def time_warnings(prepared: Prepared, asked: Config, measured: Speed, validation: float) -> Iterator[str]:
    """What the measured speed says against the settings."""
    plan, last = prepared.plan, end_of(prepared, measured, validation)
    told = asked.train.schedule.warmup and asked.train.max_updates and asked.train.schedule.warmup > asked.train.max_updates
    if last is not None and last < plan.warmup and not told:  # else the settings alone tell it
        yield short_of_warmup(plan.warmup, last)
    line = too_much_validation(validation, between=measured.seconds * plan.validate_every, every=plan.validate_every)
    if line and prepared.validator:
        yield line
