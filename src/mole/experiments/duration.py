"""How long many trainings will take, told after the first steps and after each of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mole.experiments.experiment import Say
from mole.progress import Progress

WARM, MEASURED = 2, 10  # steps that are not timed, and steps that are, before anything is said


def in_words(seconds: float) -> str:
    """A duration, for people.

    >>> in_words(40), in_words(400), in_words(7200), in_words(9e6)
    ('40 seconds', '7 minutes', '2 hours', '104 days')
    """
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}s"
    return f"{seconds:.0f} seconds"


@dataclass
class Duration:
    """Counts steps of several trainings, and the time that they take.

    Attributes:
        steps: of each training that is still to be done.
        batch: images of a step.
        say: told how long it will take.
        progress: told how far all of them are.
        clock: tells the time in seconds.
    """

    steps: Sequence[int]
    batch: int
    say: Say
    progress: Progress
    clock: Callable[[], float] = time.perf_counter
    _finished: int = field(default=0, init=False)  # trainings
    _timed: int = field(default=0, init=False)
    _spent: float = field(default=0.0, init=False)
    _last: tuple[int, float] | None = field(default=None, init=False)
    _told: bool = field(default=False, init=False)

    def step(self, done: int, total: int) -> None:
        """The training at hand has done so many of its steps."""
        now = self.clock()
        if self._last is not None and done == self._last[0] + 1 and done > WARM:
            self._timed += 1
            self._spent += now - self._last[1]
        self._last = (done, now)
        left = total - done + sum(self.steps[self._finished + 1 :])
        self.progress(sum(self.steps) - left, sum(self.steps))
        if self._timed == MEASURED and not self._told:
            self._told = True
            rate = self.batch * self._timed / self._spent
            count = len(self.steps) - self._finished
            self.say(
                f"about {in_words(left * self.rate)} on this machine, for {count} trainings at "
                f"{rate:,.0f} images a second"
            )

    def finish(self, text: str) -> None:
        """The training at hand is done, with a result."""
        self._finished, self._last = self._finished + 1, None
        left = sum(self.steps[self._finished :])
        rest = f"; about {in_words(left * self.rate)} left" if left and self._timed else ""
        self.say(f"{text}{rest}")

    @property
    def rate(self) -> float:
        """Seconds of a step, on average."""
        return self._spent / max(1, self._timed)
