"""The noisy channel as somebody knows it who has everything but the draws: clip, noise and its limit."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mole.protection.certificate import Certificate
from mole.protection.channel import release
from mole.protection.limited_noise import Source
from mole.scheme.shapes import Array

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class KnownChannel:
    """What a certificate says of the rows that it is about.

    >>> channel = KnownChannel(Certificate.for_bits(1.0, features=128))
    >>> channel.told(np.array([0.5, 9.0]), np.eye(2)).round(2)  # no row tells more than its limit
    array([0.52, 2.77])
    """

    certificate: Certificate

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise in each number."""
        return self.certificate.sigma

    def noisy(self, features: Array, draws: Source) -> Floats:
        """Features, (n, d), as they would have been delivered, by draws of somebody's own."""
        return release(np.asarray(features, np.float64), self.certificate, draws)

    def expected(self, features: Array) -> Floats:
        """What rows of these features, (n, d), are on average."""
        if self.certificate.limit is None:
            return np.asarray(features, np.float64)
        lengths, kept = self._table[0], self._table[1]
        own = np.linalg.norm(features, axis=-1, keepdims=True)
        return np.asarray(features * np.interp(own, lengths, kept))

    def unbiased(self, rows: Array) -> Floats:
        """Rows scaled to what features are on average, if these are as long as the clip."""
        return np.asarray(rows / self._kept, np.float64)

    @property
    def spread(self) -> float:
        """Standard deviation of the noise in each number of `unbiased` rows."""
        return self.sigma / self._kept

    def information(self, rows: Array, features: Array) -> Floats:
        """How much likelier rows, (n, d), would be of features, (m, d), than of none if noise had no limit.

        As logarithms, (n, m).
        """
        scaled = features / self.sigma
        return np.asarray(rows / self.sigma @ scaled.T - np.square(scaled).sum(axis=1) / 2)

    def own_information(self, rows: Array, features: Array) -> Floats:
        """The same of each row about features of its own: (..., d) and (..., d) to (...)."""
        return np.asarray(((rows - features / 2) * features).sum(axis=-1) / self.sigma**2)

    def without_limit(self, rows: Array, features: Array) -> float:
        """How much likelier rows, (n, d), would be of features of their own, (n, d), without the limit.

        As a logarithm: of rows with limited noise it exceeds x only once in exp(x) times.
        """
        own = self.own_information(rows, features)
        return float((own - self.told(own, features)).sum())

    def told(self, information: Array, features: Array) -> Floats:
        """How much likelier rows are of features, (..., d), than of none, as a logarithm.

        Args:
            information: what it would be if noise were not limited: as many dimensions, without the last,
                or any that fit to those.
            features: without noise.
        """
        if self.certificate.limit is None:
            return np.asarray(information, np.float64)
        lengths, masses = self._table[0], self._table[2]
        limit = self.certificate.limit * np.log(2)
        own = np.interp(np.linalg.norm(features, axis=-1), lengths, masses)
        return np.asarray(np.clip(information, -limit, limit) - own)

    @property
    def _kept(self) -> float:
        """What is left of the longest features on average: 1 where noise is not limited."""
        return 1.0 if self.certificate.limit is None else float(self._table[1][-1])

    @cached_property
    def _table(self) -> tuple[Floats, Floats, Floats]:
        """For lengths of features: what is left of them on average, and the logarithm of the mass."""
        along = self.certificate.lengths
        lengths = [0.0, *(one.rho * self.sigma for one in along)]
        kept = [1.0, *(one.mean / one.rho for one in along)]
        masses = [0.0, *(np.log(one.mass) for one in along)]
        return np.array(lengths), np.array(kept), np.array(masses)
