"""A measured figure beside what chance gives and what a certificate allows."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from mole.audit.intervals import Measurement, share

Unit = Literal["share", "area", "dB"]


@dataclass(frozen=True)
class Bounded:
    r"""One figure.

    >>> figure = Bounded("Picked out of 10", Measurement(0.25, 0.2, 0.31), chance=0.1, bound=0.35)
    >>> figure.exceeds, figure.is_better_than_chance
    (False, True)
    >>> str(figure).replace("\u00a0", " ")
    'picked out of 10: 25 % (by chance 10 %, allowed 35 %)'

    Attributes:
        name: what it is called.
        measured: what was measured, and between what the true figure lies.
        chance: what somebody gets who does not look at the rows.
        bound: what anybody can get at most; None where there is no bound.
        unit: a share, an area under a curve, or decibels.
        margin: what more than chance is taken for nothing.
        meaning: what it says, for the page.
        candidates: out of how many the image of a row was picked; None for every other figure.
    """

    name: str
    measured: Measurement
    chance: float
    bound: float | None = None
    unit: Unit = "share"
    margin: float = 0.0
    meaning: str = ""
    candidates: int | None = None

    @property
    def exceeds(self) -> bool:
        """Whether it is more than anybody can get, and not by chance."""
        return self.bound is not None and self.measured.low > self.bound

    @property
    def is_better_than_chance(self) -> bool:
        """Whether it is more than chance gives, and not by chance."""
        return self.measured.low > self.chance and self.measured.value > self.chance + self.margin

    @property
    def value(self) -> str:
        """What was measured, in words."""
        return self._text(self.measured.value)

    @property
    def between(self) -> str:
        """Between what the true figure lies, in words."""
        low, high = (self._text(end) for end in (self.measured.low, self.measured.high))
        for unit in ("\u00a0%", " dB"):
            low = low.removesuffix(unit)
        return f"{low} to {high}"

    @property
    def by_chance(self) -> str:
        """What chance gives, in words."""
        return self._text(self.chance)

    @property
    def at_most(self) -> str | None:
        """What the certificate allows, in words; None where it says nothing."""
        return None if self.bound is None else self._text(self.bound)

    def __str__(self) -> str:
        allowed = "" if self.bound is None else f", allowed {self.at_most}"
        luck = "the mean image" if self.unit == "dB" else "by chance"
        name = f"{self.name[:1].lower()}{self.name[1:]}"
        return f"{name}: {self.value} ({luck} {self.by_chance}{allowed})"

    def _text(self, value: float) -> str:
        if self.unit == "share":
            return share(value)
        return f"{value:.3f}" if self.unit == "area" else f"{value:.2f} dB"

    def fields(self) -> dict[str, Any]:
        """As it stands in audit.json."""
        told = asdict(self) | {"measured": self.measured.value, "low": self.measured.low}
        return told | {"high": self.measured.high, "exceeds": self.exceeds}
