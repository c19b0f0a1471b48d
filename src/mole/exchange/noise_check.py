"""Whether the noise that a certificate speaks of is there, told from the rows alone, without the key.

Noise of standard deviation sigma in each of d numbers makes rows as long as sqrt(d) sigma, any two of them
as far apart as sqrt(2 d) sigma, and leaves no direction in which they spread less than sigma: features can
add to each of these, and take nothing away. (Where noise is limited, two rows of one image lie a little
nearer, and so do rows to their features, in one of d directions.) A row that was left without noise, or
noise that was used twice, does not pass; noise that somebody could draw again would.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mole.protection.certificate import Certificate
from mole.scheme.shapes import Array

DEVIATIONS = 6.0  # of what is measured: beyond, it is no chance
ROUNDING = 0.01  # what storing in 8 or 16 bits may change, as a share
WIDEST = 2048  # numbers in a row of which the directions are looked at
ENOUGH = 4  # rows for each number, before a direction tells anything


@dataclass
class NoiseCheck:
    """The rows of one split, added up; or their noise alone, where the features are known.

    >>> rng = np.random.default_rng(0)
    >>> check = NoiseCheck(Certificate(features=8, clip=1.0, sigma=2.0))
    >>> check.see(2.0 * rng.normal(size=(500, 8)))
    >>> check.problem() is None
    True
    >>> bare = NoiseCheck(Certificate(features=8, clip=1.0, sigma=2.0))
    >>> bare.see(rng.normal(size=(500, 8)))
    >>> bare.problem()
    'rows are 2.85 long and noise of 2 makes them 5.22 to 6.15'
    """

    certificate: Certificate
    is_bare: bool = False
    rows: int = 0
    squares: float = 0.0
    pairs: int = 0
    apart: float = 0.0

    def __post_init__(self) -> None:
        size = self.certificate.features if self.certificate.features <= WIDEST else 0
        self._moments: npt.NDArray[np.float64] = np.zeros((size, size))

    def see(self, rows: Array) -> None:
        """Add the rows of a shard, (n, d), or longer ones where zeros fill tiles."""
        wide = rows.astype(np.float64)
        self.rows += len(wide)
        self.squares += float(np.square(wide).sum())
        even = len(wide) // 2 * 2
        self.pairs += even // 2
        self.apart += float(np.square(wide[0:even:2] - wide[1:even:2]).sum())
        if rows.shape[1] != self.certificate.features:
            self._moments = np.zeros((0, 0))  # zeros have no noise, and their directions spread less
        if self._moments.size:
            self._moments += wide.T @ wide

    def problem(self) -> str | None:
        """What the rows cannot be, under their certificate; None if nothing speaks against it."""
        one, most = self.certificate, 0.0 if self.is_bare else self.certificate.clip
        cut = [] if one.limit is None else one.lengths
        missing = 1 - min([1.0, *(along.error for along in cut)]) if self.is_bare else 0.0
        nearer = 1 - min([1.0, *(along.variance for along in cut)])
        checks = (
            ("rows are", "long", self.squares, self.rows, 1.0, most, missing),
            ("rows are", "apart", self.apart, self.pairs, 2.0, 2 * most, nearer),
        )
        for head, tail, total, count, times, longest, lacking in checks:
            if count:
                variance = times * one.sigma**2
                low, high = _limits(one.features, variance, longest, count)
                low -= lacking * variance
                if not low <= total / count <= high:
                    found, least, largest = (
                        math.sqrt(max(value, 0)) for value in (total / count, low, high)
                    )
                    return (
                        f"{head} {found:.3g} {tail} and noise of {one.sigma:.3g} makes them {least:.3g} to "
                        f"{largest:.3g}"
                    )
        if (spread := self.least_spread()) is not None:
            least = math.sqrt(1 - missing)
            expected = least * one.sigma * _least_share(one.features, self.rows) * (1 - 10 * ROUNDING)
            if spread < expected:
                return (
                    f"rows spread by {spread:.3g} in some direction, and noise of {one.sigma:.3g} leaves "
                    f"{expected:.3g} or more in each"
                )
        return None

    def least_spread(self) -> float | None:
        """The spread of rows in the direction where it is least; None where that tells nothing."""
        if not self._moments.size or self.rows < ENOUGH * self.certificate.features:
            return None
        return math.sqrt(max(0.0, float(np.linalg.eigvalsh(self._moments / self.rows)[0])))


def _limits(features: int, variance: float, most: float, count: int) -> tuple[float, float]:
    """Between what the mean square of rows lies: noise of that variance, and features up to `most`."""
    noise = features * variance
    chance = DEVIATIONS * math.sqrt((2 * noise * variance + 4 * variance * most**2) / count)
    return (noise - chance) * (1 - ROUNDING), (noise + most**2 + chance) * (1 + ROUNDING)


def _least_share(features: int, rows: int) -> float:
    """The least share of the noise's spread that chance leaves in any direction of so many rows.

    The least eigenvalue of such a covariance follows the law of Tracy and Widom. Its unit is taken as a
    deviation here: beyond 6 of them lies less than one in a million. Where rows are few it is 0, and says
    nothing: lengths and distances of rows are checked all the same.

    >>> round(_least_share(12, 100), 2), round(_least_share(12, 10_000), 2), _least_share(4, 16)
    (0.45, 0.95, 0.0)
    """
    gap = math.sqrt(rows) - math.sqrt(features)
    unit = gap * (1 / math.sqrt(features) - 1 / math.sqrt(rows)) ** (1 / 3)
    return math.sqrt(max(0.0, gap**2 - DEVIATIONS * unit) / rows)
