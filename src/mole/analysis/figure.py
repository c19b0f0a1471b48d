"""A figure, as the paper prints it, as its formula gives it, and as counted."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from mole.quantities import size_text

Unit = Literal["log2", "log10", "count", "share", "bytes"]
Version = Literal["published", "by_formula", "counted"]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure in up to three versions, side by side.

    >>> figure = Figure(name="pairs", what="known pairs", unit="count", by_formula=3072, counted=342)
    >>> figure.words("by_formula"), figure.words("counted"), figure.words("published")
    ('3,072', '342', '-')

    Attributes:
        name: a short name, the same in every version of this program.
        what: the figure in words.
        unit: 'log2' or 'log10' of a probability, a 'count', a 'share' or 'bytes'.
        equation: where the paper has it; '-' if nowhere.
        published: the number printed in the paper for this setting, if there is one.
        by_formula: what the paper's formula gives for this setting, if there is one.
        counted: what counting gives, if counting says anything.
        remark: why they differ, or what the figure leaves out.
    """

    name: str
    what: str
    unit: Unit
    equation: str = "-"
    published: float | None = None
    by_formula: float | None = None
    counted: float | None = None
    remark: str = ""

    def printed_as(self, published: float, remark: str = "") -> "Figure":
        """The same figure with the paper's printed number, and a further remark."""
        return replace(self, published=published, remark="; ".join(filter(None, (self.remark, remark))))

    def words(self, version: Version) -> str:
        """One of the three numbers, for a table."""
        return in_words(getattr(self, version), self.unit)


def in_words(value: float | None, unit: Unit) -> str:
    """A number in its unit.

    >>> in_words(-9437184, "log2"), in_words(0, "log2"), in_words(-89.1034, "log10")
    ('2^-9,437,184', '1', '7.9e-90')
    >>> in_words(0.0512, "share"), in_words(1.092, "share"), in_words(10.49, "share")
    ('5.12 %', '109 %', '10.5 times')
    >>> in_words(201326592, "count"), in_words(1542586368, "bytes"), in_words(None, "count")
    ('201,326,592', '1.5 GB', '-')
    """
    if value is None:
        return "-"
    if unit == "log2":
        return f"2^{value:,.0f}" if value else "1"
    if unit == "log10":  # not 10 ** value, which underflows
        power = math.floor(value)
        return f"{10 ** (value - power):.1f}e{power}" if value else "1"
    if unit == "share":
        return f"{100 * value:.3g} %" if value < 2 else f"{value:.3g} times"
    if unit == "bytes":
        return size_text(round(value))
    return f"{value:,.0f}"
