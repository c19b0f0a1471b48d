"""Noise under which no row fits its image too well: formulas of the one number along the image's features.

A row is features of length r with Gaussian noise: y = x + sigma z. Its *information* about x is how much
likelier it is of these features than of none,

    i = log p(y | x) / p(y | 0) = rho w - rho^2 / 2,    rho = r / sigma,

where w is the number along the features, in units of sigma: normal around rho. On average over rows that is
little, but i itself has no bound, and a few rows give their image away. *Limited* noise draws w from this
density instead:

    f(w) = phi(w) exp(i(w), between -T and T) / A

It is what it was where i lies within the limit T, and cut to it beyond. All other directions keep their
Gaussian noise. A, which is a little less than 1, makes the density add up to 1; so no row is more than
exp(T) / A times as likely of some features as of none. (PrivUnit limits rows of unit vectors in a similar
way: Bhowmick and others, 2018.)
"""

import functools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

DEVIATIONS = 1.65  # of the information of the longest features, above its mean: where it is cut
LONGEST = 35.0  # rho, beyond which exp(T) overflows: noise so small hides nothing, limited or not
SHORTEST = 1e-6  # rho, below which T would be lost in rounding, and stays what it is there
NOT_CUT = 1e-3  # rho, below which rows tell less than a millionth of a bit, and no more is worked out
NEVER = 1e-9  # rho, below which w never comes near the limit

Floats = npt.NDArray[np.float64]


class Source(Protocol):
    """Where chance comes from."""

    def normals(self, count: int) -> Floats:
        """Standard normal numbers."""

    def uniforms(self, count: int) -> Floats:
        """Numbers from 0 to 1."""


def usual_limit(longest: float) -> float | None:
    """Where the information of rows is cut, in nats; None where noise is too small for it.

    >>> round(usual_limit(1.22) / math.log(2), 2)
    3.98

    Args:
        longest: rho of the longest features.
    """
    if longest > LONGEST:
        return None
    rho = max(longest, SHORTEST)
    return rho**2 / 2 + DEVIATIONS * rho


@dataclass(frozen=True)
class Along:
    """The number of a row along its features, in units of the noise.

    Attributes:
        rho: length of the features.
        limit: T, in nats.
    """

    rho: float
    limit: float

    @property
    def ends(self) -> tuple[float, float]:
        """Between which w tells less than the limit."""
        return (self.rho**2 / 2 - self.limit) / self.rho, (self.rho**2 / 2 + self.limit) / self.rho

    @functools.cached_property
    def mass(self) -> float:
        """A: what the cut density comes to before it is scaled; at most 1, and less for longer features.

        A = 1 - (1 - exp(-T)) E[max(0, 1 - exp(T - i))], because a density and its mirror image are cut and
        raised alike: what is raised is exp(-T) times what is cut. That mean is the price of an option whose
        volatility is rho, which grows with it.
        """
        return math.fsum(self._masses)

    @functools.cached_property
    def mean(self) -> float:
        """Of w.

        >>> round(Along(rho=1.22, limit=50.0).mean, 6), round(Along(rho=1.22, limit=2.757).mean, 3)
        (1.22, 1.176)
        """
        low, high = self.ends
        a, b = low - self.rho, high - self.rho
        outside = _density(high) * math.exp(self.limit) - _density(low) * math.exp(-self.limit)
        return (outside + _density(a) - _density(b) + self.rho * self._masses[1]) / self.mass

    @functools.cached_property
    def square(self) -> float:
        """The mean of w^2; at least 1.

        >>> round(Along(rho=1.22, limit=50.0).square, 6)
        2.4884
        """
        low, high = self.ends
        a, b = low - self.rho, high - self.rho
        under, between, above = self._masses
        outside = under - math.exp(-self.limit) * low * _density(low)
        outside += above + math.exp(self.limit) * high * _density(high)
        inside = between - b * _density(b) + a * _density(a)
        inside += 2 * self.rho * (_density(a) - _density(b)) + self.rho**2 * between
        return (outside + inside) / self.mass

    @property
    def variance(self) -> float:
        """Of w: less than the 1 of Gaussian noise."""
        return self.square - self.mean**2

    @property
    def error(self) -> float:
        """The mean square of w - rho: of the noise, for whoever knows the features."""
        return self.square - 2 * self.rho * self.mean + self.rho**2

    @functools.cached_property
    def information(self) -> float:
        """What a row tells on average, in nats, against rows of no features: its divergence from them.

        >>> round(Along(rho=1.0, limit=50.0).information, 6)  # of Gaussian noise: rho^2 / 2
        0.5
        """
        low, high = self.ends
        under, between, above = self._masses
        inside = self.rho * (_density(low - self.rho) - _density(high - self.rho))
        inside += self.rho**2 / 2 * between
        return (inside + self.limit * (above - under)) / self.mass - math.log(self.mass)

    @property
    def raised(self) -> float:
        """What is added where the density is raised, before it is scaled."""
        under, _, _ = self._masses
        return max(0.0, under - below(self.ends[0] - self.rho))

    @property
    def most(self) -> float:
        """The information of any row at most, in nats."""
        return self.limit - math.log(self.mass)

    def exceeding(self, nats: float) -> float:
        """How often a row tells more than that.

        >>> one = Along(rho=1.22, limit=2.757)
        >>> round(one.exceeding(0.0), 3), one.exceeding(one.most)
        (0.728, 0.0)
        """
        if nats >= self.most:
            return 0.0
        information = nats + math.log(self.mass)
        if information < -self.limit:
            return 1.0
        start = (self.rho**2 / 2 + information) / self.rho - self.rho
        _, _, above = self._masses
        between = below(-start) - below(self.rho - self.ends[1])
        return min(1.0, max(0.0, between + above) / self.mass)

    @functools.cached_property
    def _masses(self) -> tuple[float, float, float]:
        """Of the density before it is scaled: below the ends, between them and above."""
        low, high = self.ends
        under, above = math.exp(-self.limit) * below(low), math.exp(self.limit) * below(-high)
        return under, _between(low - self.rho, high - self.rho), above


def limited(normal: Floats, rho: Floats, limit: float, source: Source) -> Floats:
    """Numbers along features, (n,), drawn anew until they have the density above.

    A number around rho is kept with the chance min(1, exp(T - i)); now and then one around 0 is drawn
    instead, and kept with the chance 1 - exp(i + T), which fills what is missing where i is below -T.

    Args:
        normal: standard normal numbers, (n,).
        rho: lengths of features, (n,), in units of the noise.
        limit: T, in nats.
        source: further chance.
    """
    found = rho + normal
    left = np.flatnonzero(rho > NEVER)
    proposed = normal[left]
    ordinary = 1 / (1 + math.exp(-limit))  # of proposals, the share that lies around rho
    while len(left):
        at = rho[left]
        is_ordinary = source.uniforms(len(left)) < ordinary
        w = proposed + np.where(is_ordinary, at, 0.0)
        information = at * w - at**2 / 2
        kept = np.where(
            is_ordinary,
            np.exp(np.minimum(0.0, limit - information)),
            -np.expm1(np.minimum(0.0, information + limit)),
        )
        is_kept = source.uniforms(len(left)) < kept
        found[left[is_kept]] = w[is_kept]
        left = left[~is_kept]
        proposed = source.normals(len(left))
    return found


def below(value: float) -> float:
    """P[Z < value] for a standard normal Z."""
    return math.erfc(-value / math.sqrt(2)) / 2


def _between(low: float, high: float) -> float:
    """P[low < Z < high], from the side where it is not lost in rounding."""
    return below(high) - below(low) if low + high < 0 else below(-low) - below(-high)


def _density(value: float) -> float:
    """Of a standard normal number."""
    return math.exp(-value * value / 2) / math.sqrt(2 * math.pi)
