"""What a protected row can tell about its image, at most: formulas of three numbers.

A row is d features of an image, scaled to a length of at most C (the *clip*), plus independent Gaussian
noise of standard deviation sigma in each of them. Whatever made the features, whatever the images are,
whoever looks, with whatever key and knowledge: what follows here holds, because it rests on clip and noise
alone.

What it does not say: bits are an average over images, and only the (epsilon, delta) figure is the worst
case. Labels, and how many rows there are, leave besides. Several rows of one image, or of one person, add
up (`composed`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import MissingExtraError, ParameterError

SMALLEST, LARGEST = 1e-60, 1e60  # of clip and noise: beyond, squares overflow
NORMS = 65  # lengths from 0 to C at which the identification bound is taken
THRESHOLDS = 400  # from which the best is chosen
MOST_FEATURES = 1024  # for which chi-squared variables are worked out: of more it takes long, or fails


@dataclass(frozen=True)
class Certificate:
    """The bound of one row.

    >>> certificate = Certificate.for_bits(1.0, features=128)
    >>> round(certificate.sigma, 3), round(certificate.bits, 6), round(certificate.most_bits, 3)
    (0.847, 1.0, 1.005)
    >>> round(certificate.mu, 2)
    2.36

    Attributes:
        features: how many numbers a row has: d.
        clip: the largest length that the features of an image can have: C.
        sigma: the standard deviation of the noise in each number.
    """

    features: int
    clip: float
    sigma: float

    def __post_init__(self) -> None:
        if self.features < 1:
            raise ParameterError(f"a protected row has at least one number, not {self.features}")
        for name in ("clip", "sigma"):
            value = getattr(self, name)
            if not SMALLEST <= value <= LARGEST:
                raise ParameterError(f"{name} is a number from {SMALLEST:g} to {LARGEST:g}, not {value}")

    @classmethod
    def for_bits(cls, bits: float, *, features: int, clip: float = 1.0) -> "Certificate":
        """The noise that keeps a row to so many bits: sigma = C / sqrt(d (2^(2 bits / d) - 1))."""
        if not 0 < bits < math.inf:
            raise ParameterError(f"a row tells a positive number of bits at most, not {bits}")
        growth = math.expm1(2 * bits * math.log(2) / features) if bits < 500 * features else math.inf
        return cls(features, clip, clip / math.sqrt(features * growth) if growth else math.inf)

    @classmethod
    def for_epsilon(
        cls, epsilon: float, delta: float, *, features: int, clip: float = 1.0
    ) -> "Certificate":
        """The noise that gives (epsilon, delta) differential privacy between any two images."""
        if not 0 < epsilon < math.inf or not 0 < delta < 1:
            raise ParameterError(
                f"epsilon is a positive number and delta between 0 and 1, not {epsilon} and {delta}"
            )
        return cls(features, clip, 2 * clip * float(_accounting().get_sigma_gaussian(epsilon, delta)))

    @property
    def bits(self) -> float:
        """Bits that a row tells about its image at most, on average: (d / 2) log2(1 + C^2 / (d sigma^2)).

        The capacity of d parallel Gaussian channels whose input has a mean square of at most C^2 in all: no
        distribution of images lets more through.
        """
        share = (self.clip / self.sigma) ** 2 / self.features
        return self.features / 2 * math.log1p(share) / math.log(2)

    @property
    def most_bits(self) -> float:
        """What `bits` grows to with more and more features: C^2 / (2 ln 2 sigma^2)."""
        return (self.clip / self.sigma) ** 2 / (2 * math.log(2))

    @property
    def mu(self) -> float:
        """How far any two images are apart: 2 C / sigma, in the sense of Gaussian differential privacy."""
        return 2 * self.clip / self.sigma

    def delta(self, epsilon: float) -> float:
        """The delta of (epsilon, delta) differential privacy between any two images.

        Exact for Gaussian noise (Balle and Wang, 2018).

        >>> round(Certificate(features=128, clip=1.0, sigma=2.0).delta(1.0), 4)
        0.1269
        """
        below = _normal_below(-epsilon / self.mu + self.mu / 2)
        above = math.exp(epsilon) * _normal_below(-epsilon / self.mu - self.mu / 2)
        return max(0.0, below - above)

    def epsilon(self, delta: float) -> float:
        """The epsilon of (epsilon, delta) differential privacy between any two images, by dp-accounting."""
        return float(_accounting().get_epsilon_gaussian(1 / self.mu, delta))

    def ranked(self) -> float:
        """How often, at most, a row of one image ranks before a row of another, by any figure of them.

        The area under the curve of right against false alarms, between any two images, or any two kinds of
        images: Phi(mu / sqrt(2)).

        >>> round(Certificate.for_bits(1.0, features=128).ranked(), 3)
        0.953
        """
        return _normal_below(self.mu / math.sqrt(2))

    def detected(self, false_alarms: float) -> float:
        """How often, at most, a row of one image is told from a row of another, at so many false alarms.

        Phi(Phi^-1(false alarms) + mu), by Gaussian differential privacy.

        >>> round(Certificate.for_bits(1.0, features=128).detected(0.01), 3)
        0.514
        """
        return _normal_below(NormalDist().inv_cdf(false_alarms) + self.mu)

    def identification(self, candidates: int) -> float:
        """How often, at most, anybody picks the image of a row out of equally likely candidates.

        A converse of coding theory: for any threshold t, P[right] <= P[i > t] + 2^t / N, where i is the
        information density of the row against the reference N(0, (sigma^2 + C^2 / d) I). For an image of
        length r, i is a number minus a multiple of a non-central chi-squared variable, so its distribution
        is known exactly; the worst length from 0 to C counts. (Of very many features, the reference is the
        noise alone: any reference gives a bound.) It assumes that beforehand all candidates are
        equally likely: who knows more already starts from more.

        >>> certificate = Certificate.for_bits(1.0, features=128)
        >>> round(certificate.identification(1_000), 3), round(certificate.identification(1_000_000), 4)
        (0.04, 0.0002)
        """
        if candidates < 1:
            raise ParameterError(f"there is at least one candidate, not {candidates}")
        top = math.log2(candidates)
        thresholds = np.linspace(top - 40, top, THRESHOLDS)
        bound = self._exceeds(thresholds) + np.exp2(thresholds - top)
        return float(min(1.0, bound.min()))

    def _exceeds(self, thresholds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """P[i > t] for each threshold, (n,), of the worst length; or what is above it."""
        least = self._exceeds_alone(thresholds)
        if self.features > MOST_FEATURES:
            return least
        try:
            from scipy.stats import chi2, ncx2  # noqa: PLC0415  (an extra)
        except ImportError:
            raise MissingExtraError("the bound on identification needs SciPy", "front") from None
        variance = self.sigma**2 + self.clip**2 / self.features
        slope = self.clip**2 / self.features / variance  # 1 - sigma^2 / variance
        worst = np.zeros_like(thresholds)
        for length in np.linspace(0, self.clip, NORMS):
            pull = length * self.sigma / variance / slope
            start = self.features * math.log(variance / self.sigma**2)
            start += length**2 / variance + slope * pull**2
            limit = (start - 2 * math.log(2) * thresholds) / slope
            below = ncx2.cdf(limit, self.features, pull**2) if pull else chi2.cdf(limit, self.features)
            worst = np.maximum(worst, below)
        return np.fmin(worst, least)  # what SciPy cannot work out is not a number

    def _exceeds_alone(self, thresholds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The same against another reference, N(0, sigma^2 I): the noise alone.

        For an image of length r, i is then normal, with a mean of r^2 / (2 sigma^2) and a variance of twice
        that: of the longest image more often above a positive threshold than of any other. It is what the
        other comes to with more and more features.
        """
        ratio = self.clip / self.sigma
        nats = math.log(2) * thresholds
        return np.array([_normal_below(ratio / 2 - one / ratio) if one > 0 else 1.0 for one in nats])


def bits_of_covariance(covariance: npt.NDArray[np.float64], sigma: float) -> float:
    """Bits at most if features have this covariance, (d, d): log2 det(I + covariance / sigma^2) / 2.

    Tighter than the certificate, but it leans on the data: it holds for images like those it is taken from.

    >>> round(bits_of_covariance(np.eye(2) / 2, sigma=1.0), 4)
    0.585
    """
    variances = np.maximum(np.linalg.eigvalsh(covariance), 0)
    return float(np.log1p(variances / sigma**2).sum() / (2 * math.log(2)))


@dataclass(frozen=True)
class Composed:
    """What several rows of one image, or of one person, tell together at most."""

    bits: float
    mu: float


def composed(certificates: Iterable[Certificate]) -> Composed:
    """Rows with independent noise, of the same image or of images that belong together: bits add up.

    >>> one = Certificate.for_bits(1.0, features=128)
    >>> both = composed([one, one])
    >>> round(both.bits, 3), round(both.mu / one.mu, 3)
    (2.0, 1.414)
    """
    parts = list(certificates)
    return Composed(sum(part.bits for part in parts), math.hypot(*(part.mu for part in parts)))


def _accounting() -> Any:
    """The package that works out epsilon.

    Raises:
        MissingExtraError: where it is not installed.
    """
    try:
        import dp_accounting  # noqa: PLC0415  (an extra)
    except ImportError:
        raise MissingExtraError("epsilon is worked out by dp-accounting", "front") from None
    return dp_accounting


def _normal_below(value: float) -> float:
    """P[Z < value] for a standard normal Z."""
    return math.erfc(-value / math.sqrt(2)) / 2
