"""What a protected row can tell about its image, at most: formulas of a few numbers.

A row is d features of an image, scaled to a length of at most C (the *clip*), plus noise of standard
deviation sigma in each of them. Along the features the noise is *limited* (`limited_noise`), so that no row
fits its own image much better than it fits others. Whatever made the features, whatever the images are,
whoever looks, with whatever key and knowledge: what follows here holds, because it rests on clip and noise
alone.

What it does not say: labels, and how many rows there are, leave besides. Several rows of one image, or of
one person, add up (`composed`).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mole.errors import MissingExtraError, ParameterError
from mole.protection.limited_noise import NOT_CUT, Along, usual_limit
from mole.protection.picking import NORMS, picked_from_gaussian, picked_from_limited
from mole.protection.telling_apart import Apart

SMALLEST, LARGEST = 1e-60, 1e60  # of clip and noise: beyond, squares overflow
HIGHEST_LIMIT = 1000.0  # bits: more is no limit, and its powers overflow
ROUNDING = 1e-9  # of a limit, as a share
LEAST_EPSILON = 1e-5  # that a limit is worked out for
HALVINGS = 100  # until sigma is as exact as floating point


@dataclass(frozen=True)
class Certificate:
    """The bound of one row.

    >>> certificate = Certificate.for_bits(1.0, features=128)
    >>> round(certificate.sigma, 3), round(certificate.bits, 6), round(certificate.maximal_leakage, 3)
    (0.82, 1.0, 4.001)
    >>> round(certificate.epsilon(), 2)
    5.53

    Attributes:
        features: how many numbers a row has: d.
        clip: the largest length that the features of an image can have: C.
        sigma: the standard deviation of the noise in each number.
        limit: where the information of a row is cut, in bits; None for Gaussian noise, which has no limit
            (deliveries before version 0.10).
    """

    features: int
    clip: float
    sigma: float
    limit: float | None = None

    def __post_init__(self) -> None:
        if self.features < 1:
            raise ParameterError(f"a protected row has at least one number, not {self.features}")
        for name in ("clip", "sigma"):
            value = getattr(self, name)
            if not SMALLEST <= value <= LARGEST:
                raise ParameterError(f"{name} is a number from {SMALLEST:g} to {LARGEST:g}, not {value}")
        if self.limit is not None:
            self._check_limit(self.limit)

    @classmethod
    def for_sigma(cls, sigma: float, *, features: int, clip: float = 1.0) -> "Certificate":
        """Noise of that size, with the usual limit."""
        nats = usual_limit(cls(features, clip, sigma).ratio)
        return cls(features, clip, sigma, None if nats is None else nats / math.log(2))

    @classmethod
    def for_bits(cls, bits: float, *, features: int, clip: float = 1.0) -> "Certificate":
        """The noise that keeps a row to so many bits on average."""
        if not 0 < bits < math.inf:
            raise ParameterError(f"bits must be a positive number, not {bits:g}")
        growth = math.expm1(2 * bits * math.log(2) / features) if bits < 500 * features else math.inf
        gaussian = clip / math.sqrt(features * growth) if growth else math.inf
        if gaussian < SMALLEST:
            raise ParameterError(f"{bits:g} bits a row leave no noise: ask for fewer")
        start = cls.for_sigma(gaussian, features=features, clip=clip)
        return start if start.limit is None else _enough(start, lambda one: one.bits <= bits)

    @classmethod
    def for_epsilon(cls, epsilon: float, *, features: int, clip: float = 1.0) -> "Certificate":
        """The noise that gives epsilon differential privacy between any two images."""
        if not LEAST_EPSILON <= epsilon < math.inf:
            raise ParameterError(f"epsilon is a number of at least {LEAST_EPSILON:g}, not {epsilon}")
        return _enough(
            cls.for_sigma(clip, features=features, clip=clip), lambda one: one.epsilon() <= epsilon
        )

    @property
    def bits(self) -> float:
        """Bits that a row tells about its image at most, on average over rows.

        Of Gaussian noise (d / 2) log2(1 + C^2 / (d sigma^2)): the capacity of d parallel channels whose
        input has a mean square of at most C^2 in all. Of limited noise the divergence from a normal
        distribution of about the rows' own size, the worst over lengths from 0 to C; never more than
        `bits_of_many`, which Gaussian noise tells against rows of no features, because limiting brings the
        two nearer. In both cases no distribution of images lets more through.
        """
        if self.limit is None:
            return self.features / 2 * math.log1p(self.ratio**2 / self.features) / math.log(2)
        if self.ratio < NOT_CUT:
            return self.bits_of_many
        wider = max(0.0, self._along.square - 1) / self.features
        told = max(_against_wider(one, wider, self.features) for one in self.lengths)
        return min(max(0.0, told) / math.log(2), self.bits_of_many)

    @property
    def maximal_leakage(self) -> float:
        """Maximal leakage, in bits: guesses are right at most 2 to this power times as often with a row.

        Whatever is guessed about an image, whatever was known of it before: the best guess with its row is
        right at most that many times as often as the best without, because no density of rows is more than
        so many times that of rows of no features (Issa, Wagner and Kamath, 2020). The longest features
        have the largest such factor. It is not worked out for Gaussian noise: infinite.
        """
        return math.inf if self.limit is None else self._along.most / math.log(2)

    @property
    def bits_of_many(self) -> float:
        """What `bits` of Gaussian noise grows to with more and more features: C^2 / (2 ln 2 sigma^2)."""
        return self.ratio**2 / (2 * math.log(2))

    @property
    def mu(self) -> float:
        """How far any two images are apart: 2 C / sigma.

        In the sense of Gaussian differential privacy, where the noise is Gaussian.
        """
        return 2 * self.ratio

    def apart(self, rows: int = 1) -> Apart:
        """How well any two images are told apart, by so many rows of each."""
        one = Apart(self.mu) if self.limit is None else Apart(self.mu, self._along.mass, self.epsilon())
        return one.of_rows(rows)

    def epsilon(self, delta: float = 0.0) -> float:
        """The epsilon of differential privacy between any two images.

        Limited noise has one for a delta of 0, which holds for any other. Gaussian noise needs a delta
        above 0; its epsilon is worked out by dp-accounting.
        """
        if self.limit is None:
            return float(_accounting().get_epsilon_gaussian(1 / self.mu, delta)) if delta else math.inf
        return 2 * self.limit * math.log(2) - math.log(self._along.mass)

    def identification(self, candidates: int) -> float:
        """How often, at most, anybody picks the image of a row out of equally likely candidates.

        It assumes that beforehand all candidates are equally likely: who knows more already starts from
        more.

        >>> certificate = Certificate.for_bits(1.0, features=128)
        >>> round(certificate.identification(1_000), 3), round(certificate.identification(1_000_000), 6)
        (0.016, 1.6e-05)
        """
        gaussian = picked_from_gaussian(self.features, self.clip, self.sigma, candidates)
        return gaussian if self.limit is None else picked_from_limited(self._along, candidates, gaussian)

    @property
    def ratio(self) -> float:
        """C / sigma: the length of the longest features, in units of the noise."""
        return self.clip / self.sigma

    @property
    def _along(self) -> Along:
        """The number along the longest features."""
        assert self.limit is not None  # noqa: S101  (asked for limited noise alone)
        return Along(self.ratio, math.log(2) * self.limit)

    @property
    def lengths(self) -> list[Along]:
        """The same for lengths from 0, left out because nothing is told there, to the longest."""
        longest = self._along
        return [Along(longest.rho * part / (NORMS - 1), longest.limit) for part in range(1, NORMS)]

    def _check_limit(self, limit: float) -> None:
        """Refuse a limit below the usual one, for which the worst of all lengths is not the longest."""
        usual = usual_limit(self.ratio)
        if usual is None:
            raise ParameterError(
                f"noise of {self.sigma:g} is too small for a limit: the clip is {self.clip:g}"
            )
        least = usual / math.log(2)
        if not least * (1 - ROUNDING) <= limit <= HIGHEST_LIMIT:
            raise ParameterError(
                f"limit is a number of bits from {least:.4g}, for that clip and noise, to "
                f"{HIGHEST_LIMIT:g}, not {limit}"
            )


def _against_wider(one: Along, wider: float, features: int) -> float:
    """What rows tell against a normal distribution whose variances are those of the noise and so much more.

    In nats. Against any one distribution that is a bound; this one is about that of the rows themselves.
    """
    share = wider / (1 + wider)
    gained = features / 2 * (math.log1p(wider) - share)
    return one.information + gained - share / 2 * (one.square - 1)


def _enough(start: Certificate, holds: Callable[[Certificate], bool]) -> Certificate:
    """The least noise for which something holds that more noise makes truer.

    Raises:
        ParameterError: if that is more or less noise than formulas can be worked out for.
    """

    def of(scale: float) -> Certificate:
        return Certificate.for_sigma(start.sigma * scale, features=start.features, clip=start.clip)

    low, high = 1.0, 1.0
    while not holds(of(high)):
        low, high = high, 2 * high
    while low > SMALLEST and holds(of(low)):
        low, high = low / 2, low
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(of(middle)) else (middle, high)
    return of(high)


def bits_of_covariance(covariance: npt.NDArray[np.float64], sigma: float) -> float:
    """Bits at most if features have this covariance, (d, d): log2 det(I + covariance / sigma^2) / 2.

    Tighter than the certificate of Gaussian noise, but it leans on the data: it holds for images like those
    it is taken from.

    >>> round(bits_of_covariance(np.eye(2) / 2, sigma=1.0), 4)
    0.585
    """
    variances = np.maximum(np.linalg.eigvalsh(covariance), 0)
    return float(np.log1p(variances / sigma**2).sum() / (2 * math.log(2)))


@dataclass(frozen=True)
class Composed:
    """What several rows of one image, or of one person, tell together at most.

    Attributes:
        bits: on average.
        maximal_leakage: of guesses, as of one row.
        epsilon: of differential privacy.
    """

    bits: float
    maximal_leakage: float
    epsilon: float


def composed(certificates: Iterable[Certificate]) -> Composed:
    """Rows with independent noise, of the same image or of images that belong together: all add up.

    >>> one = Certificate.for_bits(1.0, features=128)
    >>> both = composed([one, one])
    >>> round(both.bits, 3), round(both.maximal_leakage, 2), round(both.epsilon / one.epsilon(), 3)
    (2.0, 8.0, 2.0)
    """
    parts = list(certificates)
    return Composed(
        sum(part.bits for part in parts),
        sum(part.maximal_leakage for part in parts),
        sum(part.epsilon() for part in parts),
    )


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
