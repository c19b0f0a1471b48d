"""How often, at most, rows of one image are told from rows of another.

Whatever the two images are, their features lie at most 2 C apart, so that of Gaussian noise the best test
has Phi(Phi^-1(false alarms) + mu) right alarms, mu = 2 C / sigma (Dong, Roth and Su, 2022). Limited noise
changes densities by factors that are known, and the bound by as much.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mole.protection.limited_noise import below

NORMAL = NormalDist()
STEPS = 2000  # of the curve whose area is added up
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Apart:
    """Any two images, as far apart as they can be.

    Attributes:
        mu: how far, with Gaussian noise.
        mass: of limited noise, the least that a density comes to before it is scaled.
        epsilon: by what factor, as a logarithm, no two densities differ by more; infinite without a limit.
    """

    mu: float
    mass: float = 1.0
    epsilon: float = math.inf

    def of_rows(self, count: int) -> "Apart":
        """The same for so many rows of each image, with independent noise.

        Of several rows with limited noise only epsilon is known to add up.
        """
        mu = math.sqrt(count) * self.mu if count == 1 or self._is_gaussian else math.inf
        return Apart(mu, self.mass, count * self.epsilon)

    def delta(self, epsilon: float) -> float:
        """The delta of (epsilon, delta) differential privacy.

        Exact for Gaussian noise (Balle and Wang, 2018). Under limited noise p becomes p' with
        p' <= p / A where it is not raised, p' >= p where it is not cut, A at most 1, and cutting two
        densities alike, or raising them, never drives them apart.
        """
        if epsilon >= self.epsilon:
            return 0.0
        if epsilon < self._slack:
            return 1.0
        return min(1.0, _gaussian_delta(self.mu, epsilon - self._slack) / self.mass)

    def detected(self, false_alarms: float) -> float:
        """Right alarms at so many false ones, both as shares."""
        if not 0 < false_alarms < 1:
            return float(false_alarms > 0)
        if self._is_gaussian or false_alarms <= below(-self.mu / 2):
            found = below(NORMAL.inv_cdf(false_alarms) + self.mu) / self.mass
        else:
            found = false_alarms / self.mass + self.delta(self._slack)
        return min(1.0, found, false_alarms * math.exp(min(self.epsilon, LARGEST_EXPONENT)))

    def ranked(self) -> float:
        """The area under the curve of right against false alarms: Phi(mu / sqrt(2)) of Gaussian noise.

        Otherwise the area below the bound on right alarms, and below the same bound with both images
        exchanged: a test that misses few gives many false alarms.
        """
        if self._is_gaussian:
            return below(self.mu / math.sqrt(2))
        alarms = np.linspace(0, 1, STEPS + 1)
        right = np.array([self.detected(float(share)) for share in alarms])
        fewest = np.searchsorted(right, 1 - alarms) - 1  # that may be missed at so many false alarms
        missed = alarms[np.maximum(fewest, 0)]
        bound = np.minimum(right, 1 - missed)
        return float(min(1.0, bound[1:].mean()))  # the curve rises: of each step, its upper end

    @property
    def _is_gaussian(self) -> bool:
        return math.isinf(self.epsilon)

    @property
    def _slack(self) -> float:
        return -math.log(self.mass)


def _gaussian_delta(mu: float, epsilon: float) -> float:
    right = below(-epsilon / mu + mu / 2)
    wrong = math.exp(epsilon) * below(-epsilon / mu - mu / 2) if epsilon < LARGEST_EXPONENT else 0.0
    return max(0.0, right - wrong)
