"""How long a run will take, as soon as its speed is known."""

from __future__ import annotations

from mt.data.meter import Say
from mt.formats.pairs import counted
from mt.train.events import Event, Update, Validated
from mt.train.monitor import speed

AFTER = 20
"""Updates after which the speed is known."""
COLD = 5
"""Updates at the beginning that are slower than the rest."""
DOMINATES = 0.2
"""Part of a run's time that validation should not exceed."""


class Forecast:
    """A listener that says one line after some updates, and warns of a warm-up it will not get out of, and of slow validations."""

    def __init__(
        self, *, end: int | None, minutes: float | None, per_epoch: int, warmup: int, every: int, seconds: float = 0.0, say: Say
    ) -> None:
        """`end` (an update) and `minutes` are the limits of the run, `seconds` are behind it; it validates after `every` updates."""
        self.end, self.minutes, self.per_epoch, self.warmup, self.seconds, self.say = end, minutes, per_epoch, warmup, seconds, say
        self.made: list[Update] = []
        self.every, self.judged = every, False

    def __call__(self, event: Event) -> None:
        """Take in an event; the line comes with one of the first updates, once."""
        if isinstance(event, Update | Validated):
            self.seconds += event.seconds
        if isinstance(event, Update) and not event.skipped and len(self.made) < AFTER:
            self.made.append(event)
            if len(self.made) == AFTER:
                self.tell(event.update)
        if isinstance(event, Validated) and len(self.made) == AFTER and not self.judged:
            self.judged = True
            if line := too_much_validation(event.seconds, between=self.each * self.every, every=self.every):
                self.say(f"warning: {line}")

    @property
    def each(self) -> float:
        """Seconds of an update."""
        warm = self.made[COLD:]
        return sum(one.seconds for one in warm) / len(warm)

    def tell(self, update: int) -> None:
        """The line, and the warning if there is cause for one."""
        warm, each = self.made[COLD:], self.each
        left = [float(self.end - update)] if self.end else []
        left += [(60 * self.minutes - self.seconds) / each] if self.minutes else []
        line = f"speed: {speed(warm):.0f} tokens/s; an epoch of {self.per_epoch} updates takes {duration(each * self.per_epoch)}"
        if not left:
            self.say(line)
            return
        last = update + max(0, int(min(left)))
        self.say(f"{line}, the end at update {last} is {duration(each * (last - update))} away, validations not counted")
        if last < self.warmup:
            self.say(f"warning: {short_of_warmup(self.warmup, last)}")


def short_of_warmup(warmup: int, last: int) -> str:
    """What to say of a warm-up that a run of so many updates does not get out of."""
    what = f"at this speed the warm-up of {warmup} updates will not be over at update {last}, the end"
    cure = f"give it more time, or start again: --overwrite --set train.schedule.warmup={max(1, last // 10)}"
    return f"{what}: the learning rate never reaches its peak; {cure}"


def too_much_validation(seconds: float, *, between: float, every: int) -> str | None:
    """What to say where validations of so many seconds each come after so many of training; None if they are few enough."""
    share = seconds / max(seconds + between, 1e-9)
    if share <= DOMINATES:
        return None
    rarer = int(every * seconds / between * (1 - DOMINATES) / DOMINATES)
    return f"validation takes {share:.0%} of the time; set train.validation.every={rarer} or so, or lower train.validation.max_lines"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 90:
        return counted(round(seconds), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
